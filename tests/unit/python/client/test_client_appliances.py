# SPDX-License-Identifier: BSD-3-Clause
"""`Client` and `AsyncClient` of two appliances, one of which a test kills.

The choice, health and moving are the C library's: tests/unit/client/test_appliances.c.
"""

import asyncio
import time
from collections.abc import Iterator

import pytest
from dpdk_tokd import AsyncClient, Client, Reason, wire
from text_appliance import Appliance

VOCAB = 5
TEXTS = [f"text {i}".encode() for i in range(200)]
Pair = tuple[Appliance, Appliance]


@pytest.fixture
def pair() -> Iterator[Pair]:
    both = Appliance(), Appliance()
    for one in both:
        one.start()
    yield both
    for one in both:
        one.stop()


def hosts(pair: Pair) -> str:
    return ",".join(f"127.0.0.1:{one.port}" for one in pair)


def test_what_a_dead_one_had_comes_from_the_other(pair: Pair) -> None:
    with Client(hosts(pair), vocab=VOCAB) as client:
        for _ in range(2):
            got = client.tokenize_many(TEXTS)
            assert [bytes(ids.astype("u1")) for ids in got] == TEXTS
        assert all(one.data > 50 for one in pair)
        assert client.moved == 0 and client.healthy == 2
        pair[0].answering = False
        got = client.tokenize_many(TEXTS)
        assert [bytes(ids.astype("u1")) for ids in got] == TEXTS
        assert client.moved > 0 and client.healthy == 1


async def test_a_loop_finds_it_healthy_again(pair: Pair) -> None:
    """By its timer: nothing is asked meanwhile."""

    async with AsyncClient(hosts(pair), vocab=VOCAB) as client:
        pair[1].answering = False
        got = await asyncio.gather(*map(client.tokenize, TEXTS))
        assert [bytes(ids.astype("u1")) for ids in got] == TEXTS
        assert client.moved > 0 and client.healthy == 1
        pair[1].answering = True
        until = time.monotonic() + 20
        while client.healthy < 2:
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        before = pair[1].data
        await asyncio.gather(*map(client.tokenize, TEXTS))
        assert pair[1].data > before


def test_a_stream_that_moves_gives_each_id_once(pair: Pair) -> None:
    """Its first appliance stops after half of the ids."""

    def half(one: Appliance, req: wire.Req, text: bytes) -> list[bytes]:
        if sum(one.data for one in pair) > 1:
            return one.done(req, text)
        return [
            *one.done(req, text, flags=0, n_ids=len(text) // 2),
            *one.fail(req, Reason.SHUTDOWN),
        ]

    for one in pair:
        one.reply = lambda req, text, one=one: half(one, req, text)
    with Client(hosts(pair), vocab=VOCAB) as client:
        pieces = list(client.stream("a longer text"))
        assert b"".join(bytes(ids.astype("u1")) for ids in pieces) == b"a longer text"
        assert client.moved == 1


def test_several_need_a_vocabulary() -> None:
    with pytest.raises(ValueError, match="2 appliances: give the checksum of the vocabulary"):
        Client("127.0.0.1:1,127.0.0.1:2")
