# SPDX-License-Identifier: BSD-3-Clause
"""Clients show that their address is theirs, when the appliance asks them to."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from dpdk_tokd import AsyncClient, Client, Reason, wire
from netlab import SERVER_IP, NetAppliance, NetLab
from raw_client import RawStream

STREAMS = 8
TEXT_PORT = 9001
TEXT = b"some text of a few words"


@pytest.fixture
def appliance(start) -> NetAppliance:
    return start("--streams", str(STREAMS), "--text-port", str(TEXT_PORT))


@pytest.fixture
def crowd(lab: NetLab, appliance: NetAppliance) -> Iterator[RawStream]:
    """Streams that never end: one more than half of the table."""
    with RawStream(lab) as stream:
        for i in range(STREAMS // 2 + 1):
            stream.send(stream.data(b"x", flags=wire.F_FIRST, stream_id=i))
        appliance.wait_counters(lambda c: c["streams_opened"] == STREAMS // 2 + 1)
        yield stream


def test_a_client_validates_itself_once(lab, appliance, crowd, gpt2):
    with lab.call(lambda: Client(SERVER_IP)) as client:
        for _ in range(3):
            assert client.tokenize(TEXT).tolist() == gpt2.encode(TEXT).tolist()
        again = client.retransmits  # some, if the worker was off its CPU
    counters = appliance.counters()
    assert 1 <= counters["drop_validate"] <= 1 + again
    assert 3 <= counters["cookie_right"] <= 3 + again
    assert counters["cookie_wrong"] == 0
    assert counters["rx_duplicate"] <= again


def test_texts_at_once_are_all_answered(lab, appliance, crowd, gpt2):
    texts = [TEXT * n for n in range(1, 3)]

    async def all_of_them() -> int:
        async with AsyncClient(SERVER_IP) as client:
            got = await asyncio.gather(*map(client.tokenize, texts))
            assert [ids.tolist() for ids in got] == [gpt2.encode(t).tolist() for t in texts]
            return client.retransmits

    again = lab.call(lambda: asyncio.run(all_of_them()))
    assert 1 <= appliance.counters()["drop_validate"] <= 2 + again


def test_a_client_without_cookies_is_refused_and_stores_nothing(appliance, crowd):
    packet = crowd.data(TEXT, flags=wire.F_FIRST | wire.F_LAST, stream_id=99)
    crowd.send(packet, packet)
    replies = crowd.replies()
    assert [r.reason for r in replies] == [Reason.VALIDATE] * 2
    assert replies[0].sack == replies[1].sack != 0
    assert appliance.counters()["streams_opened"] == STREAMS // 2 + 1


def test_the_text_port_is_shut_to_a_crowd(lab, appliance, crowd):
    with lab.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        s.settimeout(2)
        s.connect((SERVER_IP, TEXT_PORT))
        s.send(TEXT)
        assert s.recv(4096).startswith(b"error: too many texts at once")
