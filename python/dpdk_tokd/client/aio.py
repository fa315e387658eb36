# SPDX-License-Identifier: BSD-3-Clause
"""The client for asyncio: any number of texts at once on one socket. The protocol is engine.py's."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from .. import wire
from .udp import Incoming, connected, is_passing, naming, peer_name
from ..tokenizer.batch import Ids
from .engine import Engine, Exchange, joined, to_bytes
from ..tokenizer.tokenizer import Text

IN_FLIGHT = 256


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
        self._peer = peer_name(host, port)
        self._engine = Engine(self._peer, vocab=vocab, timeout=timeout)
        self._room = asyncio.Semaphore(in_flight)
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop
        self._socket: socket.socket | None = None
        self._incoming: Incoming
        self._unsent: deque[bytes] = deque()
        self._full = False  # the kernel had no room for the first of them
        self._closed = False
        self._waiting: dict[Exchange, asyncio.Future[None]] = {}
        self._soon: asyncio.Handle | None = None  # a turn that is about to be
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

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
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None
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
            if self._socket is not None:
                return
            self._loop = asyncio.get_running_loop()
            host, port = self._address
            with naming(self._peer):
                found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
                if self._closed:
                    raise ConnectionAbortedError("the client was closed")
                self._socket = connected(found)
            self._incoming = Incoming(self._socket, self._engine)
            self._loop.add_reader(self._socket, self._turn)

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

    def _failed(self, error: Exception) -> None:
        self._engine.fail_all(error)
        self._tell()

    def _turn_soon(self) -> None:
        """One turn for all texts that are begun meanwhile."""
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Take in a burst, do what is due, send, wake who has news, and set the clock.

        The loop may come late: then answers lie unread, and the time of their texts is over only in
        appearance. So nothing is taken for lost before all that has come is read; while there is
        more, the loop calls again, after whatever else it has to do.
        """
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._socket is None:
            return
        try:
            with naming(self._peer):
                self._incoming.take_burst()
                if self._incoming.drained:
                    self._engine.tick(time.monotonic())
                self._send(self._socket)
        except OSError as error:  # unreachable, refused: that is so for all
            self._engine.fail_all(error)
        self._tell()
        if self._incoming.drained:
            self._set_timer()

    def _send(self, to: socket.socket) -> None:
        """All that is to go. While the kernel has no room, nothing more is asked of the engine."""
        while True:
            if not self._unsent:
                packets = self._engine.packets(time.monotonic())
                self._unsent.extend(b"".join(parts) for parts in packets)
                if not self._unsent:
                    break
            try:
                to.send(self._unsent[0])
            except OSError as error:
                if not is_passing(error):
                    self._unsent.clear()
                    raise
                if not self._full:
                    self._full = True
                    self._loop.add_writer(to, self._turn)
                return
            self._unsent.popleft()
        if self._full:
            self._full = False
            self._loop.remove_writer(to)

    def _set_timer(self) -> None:
        """One that rings early does no harm, and is cheaper than one set anew at each turn."""
        deadline = self._engine.deadline()
        if deadline is None or (self._timer is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_later(max(0.0, deadline - time.monotonic()), self._rang)

    def _rang(self) -> None:
        self._timer = None
        self._turn()

    def _tell(self) -> None:
        for exchange in self._engine.news():
            future = self._waiting.get(exchange)
            if future is not None and not future.done():
                future.set_result(None)
