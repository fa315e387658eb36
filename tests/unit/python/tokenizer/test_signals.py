# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C, or any signal whose handler raises an exception, ends what takes long."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

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


@pytest.mark.parametrize("how", ["one thread", "two threads", "one text"])
def test_a_long_call_is_interrupted(
    gpt2: Any, soon: Callable[[], None], how: str, request: pytest.FixtureRequest
) -> None:
    text = WORDS * (MB // len(WORDS))
    if how != "one text":
        threads = 1 + (how == "two threads")
        texts, call = [text] * 160, lambda given: gpt2.encode_batch(given, threads=threads)
    else:
        if len(cpus := os.sched_getaffinity(0)) == 1:
            pytest.skip("one CPU: a text is not divided")
        # Many CPUs would be done before the first look.
        os.sched_setaffinity(0, sorted(cpus)[:2])
        request.addfinalizer(lambda: os.sched_setaffinity(0, cpus))
        texts, call = text * 160, gpt2.encode
    begun = time.process_time()
    call(texts)
    whole = time.process_time() - begun
    begun = time.process_time()
    soon()
    with pytest.raises(Raised):
        call(texts)
    assert time.process_time() - begun < whole / 2
    assert gpt2.encode_batch(["Hello", "Hello"]).tolist() == [[15496], [15496]]
