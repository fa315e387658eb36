# SPDX-License-Identifier: BSD-3-Clause
"""Streams that take their chunks themselves, and those that are closed."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator

import dpdk_tokd
import numpy as np
import pytest
from samples import documents


def chunks(text: bytes, seed: int = 1) -> Iterator[bytes]:
    dice = random.Random(seed)
    while text:
        n = dice.choice([1, 2, 30, 2000])
        yield text[:n]
        text = text[n:]


def test_chunks_become_ids_as_they_come(gpt2) -> None:
    text = documents()[:20_000]
    taken = 0

    def counted() -> Iterator[bytes]:
        nonlocal taken
        for chunk in chunks(text):
            taken += len(chunk)
            yield chunk

    parts, seen = [], []
    for ids in gpt2.stream(counted()):
        assert len(ids) > 0
        parts.append(ids)
        seen.append(taken)
    assert np.concatenate(parts).tolist() == gpt2.encode(text).tolist()
    assert seen[0] < 100 and len({*seen}) > 10
    assert np.concatenate([*gpt2.stream(["Hel", b"lo, ", "world"])]).tolist() == [15496, 11, 995]
    assert [*gpt2.stream([])] == [*gpt2.stream(["", b""])] == []


def test_asynchronous_chunks(gpt2) -> None:
    text = documents()[:20_000]

    async def slowly() -> AsyncIterator[bytes]:
        for chunk in chunks(text):
            await asyncio.sleep(0)
            yield chunk

    async def ids() -> list[int]:
        return [id async for part in gpt2.stream(slowly()) for id in part.tolist()]

    assert asyncio.run(ids()) == gpt2.encode(text).tolist()


def test_what_are_no_chunks_is_refused(gpt2) -> None:
    for one in ("text", b"text", bytearray(b"text")):
        with pytest.raises(TypeError, match="^chunks: expected a list of texts, got one text"):
            gpt2.stream(one)
    with pytest.raises(TypeError, match="^chunks: expected a list of texts, got int"):
        gpt2.stream(5)
    with pytest.raises(TypeError, match="no chunks to iterate over: give stream"):
        next(iter(gpt2.stream()))
    with pytest.raises(TypeError, match="^text: expected str"):
        next(iter(gpt2.stream([5])))

    async def ask(stream: dpdk_tokd.Stream) -> None:
        async for _ in stream:
            pass

    with pytest.raises(TypeError, match="give stream.. an asynchronous iterable"):
        asyncio.run(ask(gpt2.stream(["a"])))
    with pytest.raises(TypeError, match="cannot create"):
        dpdk_tokd.Stream()


async def test_a_stream_is_closed_at_the_end_of_with(gpt2) -> None:
    with gpt2.stream() as stream:
        got = [*stream.feed("one "), *stream.feed("two"), *stream.finish()]
    assert got == gpt2.encode("one two").tolist()
    stream.close()
    for call in (lambda: stream.feed("a"), stream.finish):
        with pytest.raises(ValueError, match="the stream is closed"):
            call()
    assert stream.waiting == 0
    with pytest.raises(KeyError), gpt2.stream() as stream:
        raise KeyError

    for _ in range(2):
        with pytest.raises(ValueError, match="the stream is closed"):
            stream.feed("a")
        with pytest.raises(KeyError):
            async with gpt2.stream() as stream:
                raise KeyError
