# SPDX-License-Identifier: BSD-3-Clause
"""The client for asyncio: any number of texts at once. It drives libtokd-client from
the event loop, by its file descriptor and its next deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from copy import copy
from typing import Self, SupportsIndex

from .. import wire
from .._arguments import check_number
from .._native import libtokd as native
from ..tokenizer.batch import Uint32Ids
from ..tokenizer.decode import IdsLike, ids_for
from ..tokenizer.stream import Text
from .errors import array_of, check, check_options, decoding, opened, text_of
from .generation import AsyncGeneration, Made, Progress, Prompt

IN_FLIGHT = 256
REQUESTS_MAX = 65536
CLOSED = "the client was closed"


class AsyncClient:
    """Sends texts to an appliance, or to several, and returns their ids, or ids and returns their
    text, for tasks of one event loop.

    Any number of tasks may call it at once. A cancelled call, or a stream that is closed early,
    does not affect the others.
    """

    def __init__(
        self,
        host: str,
        port: int = wire.PORT,
        *,
        vocab: int = 0,
        timeout: float = 5.0,
        in_flight: int = IN_FLIGHT,
        mtu: int = 0,
    ) -> None:
        """As `Client`. The first text, or `async with`, opens the socket and may raise OSError, of
        which TimeoutError is one: no address for the name within `timeout`.

        in_flight: texts in flight at once, 1 to 65536; further calls wait.
        """
        timeout = check_options(host, port, vocab, timeout, mtu)
        check_number("in_flight", in_flight, REQUESTS_MAX, least=1)
        self._arguments = (host, port, vocab, timeout, in_flight, mtu)
        self._timeout = timeout
        self._slots = asyncio.Semaphore(in_flight)
        self._opening: asyncio.Task[Exception | None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._client: native.Client | None = None
        self._closed = False
        self._writing = False  # the socket is full: waiting until it is writable
        self._waiting: dict[native.Request, asyncio.Future[None]] = {}
        self._scheduled: asyncio.Handle | None = None  # a call of _run_due
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0  # of _timer: uvloop's has no when() for a time that has come

    @property
    def retransmits(self) -> int:
        """Packets of text sent again."""
        return self._stats()[0]

    @property
    def polls(self) -> int:
        """Packets without text."""
        return self._stats()[1]

    @property
    def resends(self) -> int:
        """Texts started again."""
        return self._stats()[2]

    @property
    def server_vocab(self) -> int:
        """Checksum of the vocabulary used; 0 before the first reply."""
        return self._stats()[3]

    @property
    def moved(self) -> int:
        """Texts started again at another appliance."""
        return self._stats()[4]

    @property
    def healthy(self) -> int:
        """Appliances that are not known to be down."""
        return self._stats()[5]

    def _stats(self) -> tuple[int, int, int, int, int, int]:
        return self._client.stats() if self._client is not None else (0, 0, 0, 0, 0, 0)

    async def tokenize(self, text: Text) -> Uint32Ids:
        """Ids of `text`: uint32, shape (n,), the caller's own. Errors as in `Client.tokenize`."""
        return array_of(await self._whole(text, 0))

    async def stream(self, text: Text) -> AsyncIterator[Uint32Ids]:
        """Ids of `text` in order as they arrive: arrays as `tokenize` gives.

        Errors as in `Client.tokenize`, also after some ids. Use `contextlib.aclosing` to cancel the
        text at once when leaving early.
        """
        async with aclosing(self._pieces(text, native.STREAM)) as pieces:
            async for ids in pieces:
                yield array_of(ids)

    async def detokenize(self, ids: IdsLike, *, skip_special_tokens: bool = False) -> str:
        """Text of `ids`. Arguments and errors as in `Client.detokenize`."""
        return text_of(await self._whole(ids_for(ids), decoding(skip_special_tokens)))

    async def detokenize_stream(
        self, ids: IdsLike, *, skip_special_tokens: bool = False
    ) -> AsyncIterator[str]:
        """Text of `ids` as it arrives, in whole characters; together what `Client.detokenize`
        gives. Arguments and errors as there, also after some text. To leave early, as `stream`."""
        flags = native.STREAM | decoding(skip_special_tokens)
        async with aclosing(self._pieces(ids_for(ids), flags)) as pieces:
            async for text in pieces:
                yield text_of(text)

    async def _whole(self, text: Text | Uint32Ids, flags: int) -> bytearray:
        client = await self._open()
        async with self._slots:
            request = self._submit(client, text, flags)
            try:
                await self._wait_for_news(request)
            finally:
                client.cancel(request)
        check(request)
        return request.ids()

    def generate(
        self, text: Text, max_tokens: SupportsIndex, *, skip_special_tokens: bool = True
    ) -> AsyncGeneration:
        """As `Client.generate`. To leave early, `async with` or `aclose`."""
        progress = Progress()
        prompt = Prompt(text, max_tokens, skip_special_tokens)
        return AsyncGeneration(progress, self._made(progress, prompt))

    async def _made(self, progress: Progress, prompt: Prompt) -> AsyncGenerator[Made, None]:
        progress.begun = True
        client = await self._slot_for(progress)
        if client is None:
            return
        try:
            request = self._submit(client, prompt.text, prompt.flags, prompt.limit)

            def cancel() -> None:
                client.cancel(request)
                self._schedule()  # the appliance may have to hear of it again
                self._wake([request])

            progress.cancel = cancel
            try:
                while True:
                    while (item := client.made(request)) is not None:
                        if (made := progress.taken(item)) is not None:
                            yield made
                    if request.finished:
                        break
                    if request.status < native.OK:
                        self._schedule()  # sending has failed: poll has the error
                    await self._wait_for_news(request)
                    if progress.closed:
                        return
            except (GeneratorExit, asyncio.CancelledError):
                progress.close()
                raise
            finally:
                cancel()
        finally:
            self._slots.release()
        check(request)

    async def _slot_for(self, progress: Progress) -> native.Client | None:
        """Wait for the opening and for a slot. None: another task closed the answer meanwhile."""
        waiting = asyncio.timeout(None)

        def cancel() -> None:
            if not waiting.expired():
                waiting.reschedule(0)

        try:
            async with waiting:
                progress.cancel = cancel
                client = await self._open()
                await self._slots.acquire()
        except TimeoutError:
            if not progress.closed:
                raise  # the opening's
            return None
        if not progress.closed:
            return client
        self._slots.release()
        return None

    async def _pieces(self, text: Text | Uint32Ids, flags: int) -> AsyncGenerator[bytearray, None]:
        """What a request asked for, as it arrives."""
        client = await self._open()
        async with self._slots:
            request = self._submit(client, text, flags)
            try:
                while True:
                    if (piece := request.take()) is not None:
                        yield piece
                    elif request.finished:
                        break
                    else:
                        await self._wait_for_news(request)
            finally:
                client.cancel(request)
        check(request)

    async def close(self) -> None:
        """Close the socket. Texts in flight fail with ConnectionAbortedError."""
        for handle in (self._scheduled, self._timer):
            if handle is not None:
                handle.cancel()
        self._scheduled = self._timer = None
        if self._client is not None:
            if not self._closed and not self._loop.is_closed():
                descriptor, _, _ = self._client.hooks()
                self._loop.remove_reader(descriptor)
                self._loop.remove_writer(descriptor)
            self._client.close()
            self._wake(self._waiting)
        self._closed = True

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self) -> native.Client:
        """The library's client. All who come before it is open wait for one attempt."""
        if self._closed:
            raise ConnectionAbortedError(CLOSED)
        loop = asyncio.get_running_loop()
        if self._client is None and self._opening is None:
            self._loop = loop
            self._opening = loop.create_task(self._attempt())
        if loop is not self._loop:
            raise RuntimeError("an AsyncClient is for one event loop: make one for each")
        if self._opening is not None:
            try:
                async with asyncio.timeout(self._timeout):
                    error = await asyncio.shield(self._opening)
            except TimeoutError:
                raise TimeoutError(
                    f"{self._arguments[0]}: no address within {self._timeout:g} s"
                ) from None
            if error is not None:
                raise copy(error)  # each one of its own
        if self._client is None or self._closed:
            raise ConnectionAbortedError(CLOSED)
        return self._client

    async def _attempt(self) -> Exception | None:
        """Open it, in a thread because that resolves the name. What failed is returned: perhaps
        nobody waits for it any more."""
        try:
            client = await self._loop.run_in_executor(None, opened, *self._arguments)
            if self._closed:
                client.close()
            else:
                self._loop.add_reader(client.hooks()[0], self._run_due)
                self._client = client
        except Exception as error:
            return error
        finally:
            self._opening = None
        return None

    def _submit(
        self, client: native.Client, text: Text | Uint32Ids, flags: int, limit: int = 0
    ) -> native.Request:
        request = client.submit(text, flags, limit)
        self._schedule()
        return request

    def _schedule(self) -> None:
        """Once for all that was submitted until then."""
        if self._scheduled is None and not self._closed:
            self._scheduled = self._loop.call_soon(self._run_due)

    async def _wait_for_news(self, request: native.Request) -> None:
        future = self._waiting[request] = self._loop.create_future()
        try:
            await future
        finally:
            del self._waiting[request]

    def _run_due(self) -> None:
        """Receive, do what is due, send, wake tasks with news, and set the timer."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        client = self._client
        if client is None or self._closed:
            return
        try:
            self._wake(client.poll())
        except MemoryError:  # what it did not name may be finished
            self._schedule()
            self._wake([request for request in self._waiting if request.finished])
            raise
        descriptor, writing, due = client.hooks()
        if writing and not self._writing:
            self._loop.add_writer(descriptor, self._run_due)
        elif self._writing and not writing:
            self._loop.remove_writer(descriptor)
        self._writing = writing
        if due is not None:
            self._set_timer(self._loop.time() + due)

    def _wake(self, requests: Iterable[native.Request]) -> None:
        for request in requests:
            future = self._waiting.get(request)
            if future is not None and not future.done():
                future.set_result(None)

    def _set_timer(self, at: float) -> None:
        """An early timer is harmless, and cheaper than setting a new one each time."""
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._on_timer)
        self._timer_at = at

    def _on_timer(self) -> None:
        self._timer = None
        self._run_due()
