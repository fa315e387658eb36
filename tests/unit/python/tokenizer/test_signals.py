# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C, or any signal whose handler raises an exception, ends what takes long."""

import functools
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import dpdk_tokd
import pytest

MB = 1 << 20
WORDS = "Some words of a text, which comes again and again until there are a lot of them. "


class Raised(Exception):
    pass


@pytest.fixture
def soon() -> Iterator[Callable[[], None]]:
    """Has a handler raise an exception after some processor time."""

    def handle(*_: object) -> None:
        raise Raised

    before = signal.signal(signal.SIGPROF, handle)
    yield lambda: signal.setitimer(signal.ITIMER_PROF, 0.02)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@functools.cache
def text() -> str:
    return WORDS * (160 * MB // len(WORDS))


@functools.cache
def whole_text() -> str:
    """Has no place where a text is divided."""
    return text().replace(" ", "\n")


@functools.cache
def long_text() -> str:
    return text() * 2


CALLS: dict[str, Callable[[Any], object]] = {
    "one thread": lambda tok: tok.encode_batch([text()[:MB]] * 320, threads=1),
    "two threads": lambda tok: tok.encode_batch([text()[:MB]] * 320, threads=2),
    "one text": lambda tok: tok.encode(long_text()),
    "one text, whole": lambda tok: tok.encode(whole_text()),
    "one text, whole, in a batch": lambda tok: tok.encode_batch([whole_text()]),
    "whole texts, one thread": lambda tok: tok.encode_batch(
        [whole_text()[: 80 * MB]] * 2, threads=1
    ),
    "whole texts, two threads": lambda tok: tok.encode_batch(
        [whole_text()[: 80 * MB]] * 2, threads=2
    ),
}


@pytest.mark.parametrize("how", CALLS)
def test_a_long_call_is_interrupted(
    gpt2: Any, soon: Callable[[], None], how: str, request: pytest.FixtureRequest
) -> None:
    if len(cpus := os.sched_getaffinity(0)) == 1 and how == "one text":
        pytest.skip("one CPU: a text is not divided")
    # Many CPUs would be done before the first look.
    os.sched_setaffinity(0, sorted(cpus)[:2])
    request.addfinalizer(lambda: os.sched_setaffinity(0, cpus))
    for make in (text, whole_text, long_text):  # which takes as long as some of the calls
        make()
    begun = time.process_time()
    CALLS[how](gpt2)
    whole = time.process_time() - begun
    begun = time.process_time()
    soon()
    with pytest.raises(Raised):
        CALLS[how](gpt2)
    assert time.process_time() - begun < whole / 2
    assert gpt2.encode_batch(["Hello", "Hello"]).tolist() == [[15496], [15496]]


def no_utf8() -> object:
    return text() * 2 + "\u20ac\ud800"


# What is wrong is seen at the end.
WRONG: dict[str, tuple[Callable[[Any, Any], object], Callable[[], object]]] = {
    "not ASCII": (lambda tok, text: tok.encode(text), no_utf8),
    "not ASCII, in a batch": (lambda tok, text: tok.encode_batch([text]), no_utf8),
    "not ASCII, in a stream": (lambda tok, text: tok.stream().feed(text), no_utf8),
    "many": (lambda tok, texts: tok.encode_batch(texts), lambda: [""] * 10_000_000 + [None]),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_call_is_interrupted_before_it_encodes(
    gpt2: Any, soon: Callable[[], None], how: str
) -> None:
    call, make = WRONG[how]
    what = make()
    soon()
    with pytest.raises(Raised):
        call(gpt2, what)


def test_a_stream_that_is_interrupted_is_closed(gpt2: Any, soon: Callable[[], None]) -> None:
    stream = gpt2.stream()
    soon()
    with pytest.raises(Raised):
        stream.feed(text())
    with pytest.raises(ValueError, match="the stream is closed"):
        stream.feed("more")


def test_making_encoders_for_many_threads_is_interrupted(
    gpt2_file: Any, soon: Callable[[], None]
) -> None:
    tokenizer = dpdk_tokd.Tokenizer.load(str(gpt2_file))
    soon()
    with pytest.raises(Raised):
        tokenizer.encode_batch([WORDS * 100] * 400, threads=40)
