# SPDX-License-Identifier: BSD-3-Clause
"""Clients whose process comes late: answers lie in the socket while time-outs are due."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Iterator

import google_crc32c
import numpy as np
import pytest
from dpdk_tokd import AsyncClient, Client, wire
from dpdk_tokd.client import udp

TEXTS = [f"text {i}".encode() for i in range(1000)]


class Answerer:
    """An appliance that answers when the test says so. A byte is an id."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.data = 0  # packets of text that came

    def answer(self) -> int:
        """Answer each packet of text that has come; how many there were."""
        before = self.data
        while True:
            try:
                packet, peer = self.socket.recvfrom(2048)
            except BlockingIOError:
                return self.data - before
            req = wire.Req._make(wire.REQ.unpack_from(packet))
            if req.type != wire.DATA:
                continue
            self.data += 1
            ids = np.frombuffer(packet, np.uint8, offset=wire.REQ.size).astype("<u4").tobytes()
            n = len(ids) // 4
            head = (wire.MAGIC, wire.VERSION, wire.REPLY, wire.F_DONE, req.epoch, 5, req.stream_id)
            crc = google_crc32c.value(ids)
            reply = (*head, 1, wire.WINDOW, 0, 0, n, n, crc, 0, n)
            self.socket.sendto(wire.REP.pack(*reply) + ids, peer)


@pytest.fixture
def answerer() -> Iterator[Answerer]:
    one = Answerer()
    yield one
    one.socket.close()


def test_a_loop_that_was_blocked_reads_what_came_before_it_sends_again(answerer: Answerer) -> None:
    """Each flight of 256 is answered at once, and found 50 ms later, when each of them is overdue."""

    async def work() -> None:
        async with AsyncClient("127.0.0.1", answerer.port) as client:
            every = asyncio.gather(*map(client.tokenize, TEXTS))
            while not every.done():
                await asyncio.sleep(0)
                if answerer.answer():
                    time.sleep(0.05)
            got = await every
            assert [bytes(ids.astype("u1")) for ids in got] == TEXTS
            assert client.retransmits == 0 and answerer.data == len(TEXTS)

    asyncio.run(work())


def test_a_caller_that_was_away_reads_what_came_before_it_sends_again(answerer: Answerer) -> None:
    with Client("127.0.0.1", answerer.port) as client:
        streams = [client._begin(text, False) for text in TEXTS[:256]]
        client._send()
        assert answerer.answer() == 256
        time.sleep(0.05)
        while not all(stream.finished for stream in streams):
            client._turn()
        assert client.retransmits == 0


def test_a_flood_does_not_hold_off_the_time_limit(answerer: Answerer, monkeypatch) -> None:
    """What comes is never drained here, as if more came whenever something was read."""
    monkeypatch.setattr(udp, "UNREAD_MOST", 4 * udp.RECEIVE_BURST)

    class Flooded:
        def recv(self, room: int) -> bytes:
            return b"noise"

    with Client("127.0.0.1", answerer.port) as client:
        incoming = udp.Incoming(Flooded(), client._engine)  # type: ignore[arg-type]
        seen = []
        for _ in range(8):
            assert incoming.take_burst() == udp.RECEIVE_BURST
            seen.append(incoming.drained)
        assert seen == [False, False, False, True] * 2


def test_a_kernel_that_has_no_room_is_waited_for(answerer: Answerer, monkeypatch) -> None:
    async def work() -> None:
        async with AsyncClient("127.0.0.1", answerer.port) as client:
            real, calls = client._socket, 0

            class Full:
                """Takes every third datagram only."""

                def send(self, packet: bytes) -> int:
                    nonlocal calls
                    calls += 1
                    if calls % 3:
                        raise BlockingIOError(errno.EAGAIN, "full")
                    return real.send(packet)

                def __getattr__(self, name: str) -> object:
                    return getattr(real, name)

            client._socket = Full()  # type: ignore[assignment]
            every = asyncio.gather(*map(client.tokenize, TEXTS[:100]))
            while not every.done():
                answerer.answer()
                await asyncio.sleep(0)
            assert [bytes(ids.astype("u1")) for ids in await every] == TEXTS[:100]
            for _ in range(1000):  # the last acknowledgements go as well
                await asyncio.sleep(0)
            assert not client._unsent and not client._full

    asyncio.run(work())
