# SPDX-License-Identifier: BSD-3-Clause
"""The client for asyncio: any number of texts at once on one socket. The protocol is engine.py's."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from . import wire
from ._udp import connected, peer_name
from .engine import Engine, Exchange, joined, to_bytes
from .tokenizer import Ids, Text

IN_FLIGHT = 256


class _Endpoint(asyncio.DatagramProtocol):
    """What the loop calls; it all goes to the client."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._client._took(data)

    def error_received(self, exc: OSError) -> None:
        self._client._failed(exc)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client._failed(exc or ConnectionAbortedError("the client was closed"))

    def pause_writing(self) -> None:
        self._client._pause(True)

    def resume_writing(self) -> None:
        self._client._pause(False)


class AsyncClient:
    """Sends texts to an appliance and returns their ids, for tasks of one event loop.

    Any number of tasks may call it at once. A call that is cancelled, or a stream that is left, is
    forgotten; the others go on. Counters are those of `Client`.
    """

    def __init__(
        self,
        host: str,
        port: int = wire.PORT,
        *,
        vocab: int = 0,
        timeout: float = 5.0,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        """As `Client`. The socket is opened by the first text, or by `async with`; OSError is raised
        there.

        in_flight: texts under way at once; further calls wait for their turn.
        """
        if in_flight < 1:
            raise ValueError(f"in_flight={in_flight}: give at least 1")
        self._address = (host, port)
        self._engine = Engine(peer_name(host, port), vocab=vocab, timeout=timeout)
        self._room = asyncio.Semaphore(in_flight)
        self._opening = asyncio.Lock()
        self._transport: asyncio.DatagramTransport | None = None
        self._closed = False
        self._paused = False
        self._waiting: dict[Exchange, asyncio.Future[None]] = {}
        self._soon: asyncio.Handle | None = None  # a turn that is about to be
        self._timer: asyncio.TimerHandle | None = None

    @property
    def retransmits(self) -> int:
        return self._engine.retransmits

    @property
    def polls(self) -> int:
        return self._engine.polls

    @property
    def resends(self) -> int:
        return self._engine.resends

    @property
    def server_vocab(self) -> int:
        return self._engine.server_vocab

    async def tokenize(self, text: Text) -> Ids:
        """Ids of `text`: uint32, shape (n,), the caller's own. Errors as in `Client.tokenize`."""
        return joined([ids async for _, ids in self._follow(text, False)])

    def tokenize_stream(self, text: Text) -> AsyncIterator[tuple[int, Ids]]:
        """Ids of `text` in order as they arrive: (index of the first, uint32 of shape (n,)).

        Errors as in `Client.tokenize`, also after ids have been given out. Whoever leaves it early
        and wants it forgotten at once uses `contextlib.aclosing`.
        """
        return self._follow(text, True)

    async def close(self) -> None:
        """Close the socket. Texts under way fail with ConnectionAbortedError."""
        self._closed = True
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None
        if self._transport is not None:
            self._transport.close()
            self._transport = None
            self._failed(ConnectionAbortedError("the client was closed"))

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _open(self) -> None:
        async with self._opening:
            if self._closed:
                raise ConnectionAbortedError("the client was closed")
            if self._transport is not None:
                return
            loop = asyncio.get_running_loop()
            host, port = self._address
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            self._transport, _ = await loop.create_datagram_endpoint(
                lambda: _Endpoint(self), sock=connected(found)
            )

    async def _follow(self, text: Text, stream: bool) -> AsyncIterator[tuple[int, Ids]]:
        data = to_bytes(text)
        await self._open()
        async with self._room:
            if self._closed:
                raise ConnectionAbortedError("the client was closed")
            exchange = self._engine.begin(data, stream=stream)
            try:
                self._turn_soon()
                while True:
                    for piece in exchange.take():
                        yield piece
                    if exchange.finished and not exchange.pieces:
                        break
                    await self._news_of(exchange)
            finally:
                self._engine.cancel(exchange)
        if exchange.error is not None:
            raise exchange.error

    async def _news_of(self, exchange: Exchange) -> None:
        if exchange.finished or exchange.pieces:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting[exchange] = future
        try:
            await future
        finally:
            del self._waiting[exchange]

    def _took(self, packet: bytes) -> None:
        self._engine.take(packet, time.monotonic())
        self._turn_soon()

    def _failed(self, error: Exception) -> None:
        self._engine.fail_all(error)
        self._tell()

    def _pause(self, paused: bool) -> None:
        self._paused = paused
        self._turn_soon()

    def _turn_soon(self) -> None:
        """One turn for all that the loop has to hand, not one for each datagram."""
        if self._soon is None and not self._closed:
            self._soon = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Do what is due, send, wake who has news, and set the clock."""
        self._soon = None
        now = time.monotonic()
        self._engine.tick(now)
        if self._transport is not None and not self._paused:
            for header, text in self._engine.packets(now):
                self._transport.sendto(b"".join((header, text)))
        self._tell()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self._engine.deadline()
        if deadline is not None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, deadline - now), self._turn_soon)

    def _tell(self) -> None:
        for exchange in self._engine.news():
            future = self._waiting.get(exchange)
            if future is not None and not future.done():
                future.set_result(None)
