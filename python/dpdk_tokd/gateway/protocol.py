# SPDX-License-Identifier: BSD-3-Clause
"""uvicorn's HTTP, which answers short requests at once and closes clients that are too slow.

What ASGI takes for a request (a task, an event, messages in dicts) is more than its tokens take.
So a POST of known length that asks for little work goes around it. All else is uvicorn's:
parsing, pipelines, TLS, keeping connections, and every other request.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from .app import BODY_S, Answer, App, Request, is_long, short_bytes, too_slow

HEAD_BYTES = 64 << 10  # of a request's head; likewise what lies between parts of its body
ANSWER_S = 30.0  # in which a client has to take some of an answer


class _Wrong(HttpParserError):
    """A head that the parser takes, but should not."""


class Protocol(HttpToolsProtocol):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._gateway = cast(App, self.config.app)
        self._short: Request | None = None  # whose body arrives
        self._body: list[bytes] = []
        self._limit: asyncio.TimerHandle | None = None  # of the time a request may take to arrive
        self._unread: asyncio.TimerHandle | None = None  # likewise, some of an answer to be taken
        self._draining = False
        self._unused = 0  # bytes since the last whole head, part of a body, or end of a request
        self._asks_upgrade = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit = self.loop.call_later(BODY_S, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unlimit()
        self._unwatch()
        self._gateway.unread.pop(self.transport, None)
        request = self._taken()
        if request is not None:
            self._gateway.hung_up(request)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unused += len(data)
        try:
            self._feed(data)
        except HttpParserError as error:
            why = error.__context__
            self._reject(str(why) if isinstance(why, _Wrong) else "Invalid HTTP request received.")
            return
        if self._unused > HEAD_BYTES:
            self._reject(f"More than {HEAD_BYTES} bytes of head.")
            return
        if self.timeout_keep_alive_task is not None or not self._idle():
            self._unlimit()
        elif self._limit is None:
            self._limit = self.loop.call_later(BODY_S, self._too_slow)

    def shutdown(self) -> None:
        self._draining = True
        if self._short is None:
            super().shutdown()
            self._watch_closing()

    def pause_writing(self) -> None:
        """No further answer is written until the client has taken most of those before."""
        super().pause_writing()
        self._watch()
        self._gateway.hold(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unwatch()
        self._gateway.unread.pop(self.transport, None)
        self._watch_closing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_closing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_closing()

    def on_message_begin(self) -> None:
        self._unset_keepalive_if_required()  # of the request before, in the same bytes
        self._unlimit()  # likewise
        self._asks_upgrade = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._unused = 0
        self._asks_upgrade = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if self._asks_upgrade:
            return
        headers = dict(self.headers)
        self._check_head(headers)
        if self._is_short(headers):
            self._gateway.in_progress += 1
            self._short = self._gateway.begun("POST", self.url.decode(), headers)
        else:
            super().on_headers_complete()
        self.headers = []  # for those after the body: the request's are in its scope

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        if self._short is None:
            super().on_body(body)
        else:
            self._body.append(body)
            self._short.arrived += len(body)

    def on_message_complete(self) -> None:
        self._unused = 0
        if self._asks_upgrade:
            return
        request = self._taken()
        if request is None:
            super().on_message_complete()
            return
        body = b"".join(self._body)
        self._body.clear()
        if is_long(request.path, body):
            super().on_headers_complete()
            super().on_body(body)
            super().on_message_complete()
            if self._draining:
                super().shutdown()
            return
        keep = self.parser.should_keep_alive() and not self._draining
        self._send(self._gateway.answer(request, body), keep)

    def _feed(self, data: bytes) -> None:
        """A request that asks for another protocol is taken as one that does not: Java's clients
        ask for HTTP/2. The parser would leave its body out."""
        rest: bytes | memoryview = data
        while rest:
            try:
                self.parser.feed_data(rest)
                return
            except HttpParserUpgrade as upgrade:
                if not self._asks_upgrade:
                    raise HttpParserError from None
                rest = memoryview(rest)[upgrade.args[0] :]
            line = self.parser.get_method(), self.url, self.parser.get_http_version().encode()
            kept = (b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade")
            self.parser = HttpRequestParser(self)  # the other has ended
            self.parser.feed_data(b"%b %b HTTP/%b\r\n%b\r\n" % (*line, b"".join(kept)))

    def _check_head(self, headers: dict[bytes, bytes]) -> None:
        """_Wrong: it leaves open what it asks for (RFC 9112, 3.2), or where it ends (6.1)."""
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise _Wrong(f"Host: {hosts} fields: expected one.")
        if b"transfer-encoding" in headers and self.parser.get_http_version() == "1.0":
            raise _Wrong("Transfer-Encoding: HTTP/1.0 has none.")

    def _reject(self, why: str) -> None:
        self.logger.warning(why)
        self.send_400_response(why)
        self._watch_closing()

    def _idle(self) -> bool:
        """uvicorn has no request in work."""
        return self.cycle is None or self.cycle.response_complete

    def _is_short(self, headers: dict[bytes, bytes]) -> bool:
        gateway = self._gateway
        length = headers.get(b"content-length", b"")
        path = self.url.decode("latin-1")
        return (
            self.parser.get_method() == b"POST"
            and path in gateway.work
            and length.isdigit()
            and len(length) < 10
            and int(length) <= min(short_bytes(path), gateway.limits.body)
            and gateway.requests() < gateway.limits.requests
            and self.parser.get_http_version() == "1.1"
            and not self.expect_100_continue
            and self._idle()
            and not self.flow.write_paused
        )

    def _taken(self) -> Request | None:
        """The short request, which is in progress no longer."""
        request, self._short = self._short, None
        if request is not None:
            self._gateway.in_progress -= 1
        return request

    def _send(self, answer: Answer, keep: bool) -> None:
        parts = [STATUS_LINE[answer.status]]
        for name, value in (*self.server_state.default_headers, *answer.headers):
            parts += (name, b": ", value, b"\r\n")
        if not keep:
            parts.append(b"connection: close\r\n")
        parts += (b"\r\n", answer.body)
        self.transport.write(b"".join(parts))
        self.server_state.total_requests += 1
        if keep:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        else:
            self.transport.close()
            self._watch_closing()

    def _too_slow(self) -> None:
        self._limit = None
        request = self._taken()
        if request is None:
            self.transport.close()
            self._watch_closing()
        else:
            self._send(self._gateway.refused(request, too_slow()), keep=False)

    def _watch_closing(self) -> None:
        """A connection that is closed stays open until all answers are taken."""
        if self.transport.is_closing():
            self._watch()

    def _watch(self, before: int = sys.maxsize) -> None:
        """before: bytes that the client has not taken."""
        if self._unread is None:
            self._unread = self.loop.call_later(ANSWER_S, self._check_taken, before)

    def _check_taken(self, before: int) -> None:
        """However slowly, it has to take what is left."""
        self._unread = None
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        elif left > 0:
            self._watch(left)

    def _unwatch(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _unlimit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
