# SPDX-License-Identifier: BSD-3-Clause
"""The application, raw ASGI: routes, limits, keys, request ids, errors."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import msgspec

from .. import __version__
from .._cpus import cpus
from . import metrics, tei
from .derender import derender_chat, derender_completion
from .embed import Embeddings
from .errors import Refused, as_tei, bad_request, busy
from .models import Models
from .render import messages_render, render_chat, render_completion, request_name, responses_render
from .tokenize import detokenize, is_prompt, tokenize

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Made = bytes | Awaitable[bytes]
Work = Callable[[Models, bytes], Made]
Given = TypeVar("Given")

# A longer body is worked on in a thread, so that others do not wait. What a shorter one may ask for
# takes 5 ms at most, measured for every path.
THREAD_BYTES = 1 << 10
PROMPT_BYTES = {"/tokenize": 32 << 10, "/v1/completions/render": 4 << 10}  # likewise, of one prompt
CHAT_BYTES = {"/v1/chat/completions/render": 4 << 10}
BODIES = 16  # of the longest kind: memory of all in progress, and of answers that are not taken
BODY_S = 30.0  # a client has to send its body
BY_APPLIANCES = (
    "/detokenize",
    "/tokenize",
    "/v1/chat/completions/derender",
    "/v1/completions/derender",
)
BY_TEMPLATE = ("/tokenize", "/v1/chat/completions/render")  # of the request, where that is allowed
REQUEST_ID = re.compile(rb"[!-~]{1,128}")  # a client's own, as it may stand in a log
JSON = b"application/json"
HUNG_UP = 499  # in metrics and log, as nginx has it

log = logging.getLogger("tokd-gateway")


@dataclass(frozen=True, slots=True)
class Limits:
    """body: bytes of a request. requests: in progress at once, by HTTP and gRPC together."""

    body: int = 16 << 20
    requests: int = 1024


@dataclass(slots=True)
class Request:
    """begun: by time.perf_counter. arrived: bytes of its body."""

    name: bytes
    method: str
    path: str
    headers: Mapping[bytes, bytes]
    begun: float
    arrived: int = 0


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes


def _models(models: Models, started: int) -> bytes:
    cards: list[dict[str, object]] = [
        {
            "id": model.name,
            "object": "model",
            "created": started,
            "owned_by": "dpdk-tokd",
            "root": model.path,
            "parent": None,
            "max_model_len": model.max_model_len,
            "permission": [],
        }
        for model in models.by_name.values()
    ]
    return msgspec.json.encode({"object": "list", "data": cards})


def too_slow() -> Refused:
    return Refused(HTTPStatus.REQUEST_TIMEOUT, f"the request has not arrived within {BODY_S:g} s")


def short_bytes(path: str) -> int:
    """A longer body is long by its size alone."""
    return PROMPT_BYTES.get(path) or CHAT_BYTES.get(path, THREAD_BYTES)


def is_long(path: str, body: bytes) -> bool:
    """Is it to be worked on in a thread?"""
    if len(body) <= THREAD_BYTES:
        return False
    return len(body) > short_bytes(path) or (path in PROMPT_BYTES and not is_prompt(body))


class App:
    """The ASGI application. keys: any of them is accepted; none: everybody is."""

    def __init__(
        self,
        models: Models,
        limits: Limits | None = None,
        keys: tuple[str, ...] = (),
        log_requests: bool = False,
    ) -> None:
        self.models = models
        self.limits = limits or Limits()
        self.keys = tuple(key.encode() for key in keys)
        self.log_requests = log_requests
        self.in_progress = 0  # by HTTP
        self.by_grpc: Sized = ()  # likewise
        self.bytes_held = 0  # of bodies in progress
        self.unread: dict[asyncio.Transport, None] = {}  # of slow clients; the first is the oldest
        self._threads = ThreadPoolExecutor(cpus())
        self.metrics = metrics.Metrics(models, self.requests)
        self._start = os.urandom(8).hex().encode()
        self._numbers = itertools.count()
        listed = _models(models, int(time.time()))
        version = msgspec.json.encode({"version": __version__})
        self.embeddings = Embeddings(models)
        self.fixed: dict[str, Callable[[], Made]] = {
            "/health": bytes,
            "/info": lambda: tei.info(models, self.embeddings.embedders, self.limits.requests),
            "/metrics": self.metrics.page,
            "/ping": bytes,
            "/ready": self._ready,
            "/v1/models": lambda: listed,
            "/version": lambda: version,
        }
        # What `work` gives is there at once; `later` may give what is to be waited for.
        self.work: dict[str, Work] = {
            "/decode": tei.decode,
            "/detokenize": detokenize,
            "/tokenize": tokenize,
            "/v1/chat/completions/derender": derender_chat,
            "/v1/chat/completions/render": render_chat,
            "/v1/completions/derender": derender_completion,
            "/v1/completions/render": render_completion,
            "/v1/messages/render": messages_render,
            "/v1/responses/render": responses_render,
        }
        self.later: dict[str, Work] = dict(self.embeddings.work)
        self.in_threads = BY_TEMPLATE if models.trust_request_chat_template else ()
        remote = [m.appliances for m in models.by_name.values() if m.appliances is not None]
        for appliances in remote:
            appliances.threads = self._threads
        for path in {*self.in_threads, *(BY_APPLIANCES if remote else ())}:
            self.later[path] = self.work.pop(path)
        self.paths = {*self.work, *self.later, *self.fixed}  # in metrics; others are "other"
        self.tei = frozenset(("/decode", "/embed", "/info", "/"))

    async def _ready(self) -> bytes:
        await self.models.check()
        return b""

    def requests(self) -> int:
        """In progress."""
        return self.in_progress + len(self.by_grpc)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = self.begun(scope["method"], scope["path"], dict(scope["headers"]))
        try:
            work = self._admitted(request)
            if work is not None:
                body = await self._worked(request, work, receive)
            else:
                made = self.fixed[request.path]()
                body = made if isinstance(made, bytes) else await made
        except _HungUp:
            self.hung_up(request)
            return
        except Exception as error:
            answer = self.refused(request, error)
        else:
            answer = self._answered(request, body)
        start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        await send(start)
        await send({"type": "http.response.body", "body": answer.body})

    def begun(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> Request:
        """Its name is the client's own, or one like no other."""
        name = headers.get(b"x-request-id")
        if name is None or not REQUEST_ID.fullmatch(name):
            name = b"%b%016x" % (self._start, next(self._numbers))
        return Request(name, method, path, headers, time.perf_counter())

    def _admitted(self, request: Request) -> Work | None:
        """What its body is given to; None: the path is fixed. Refused: neither."""
        path, method = request.path, request.method
        work = self.work.get(path) or self.later.get(path)
        if work is None and path not in self.fixed:
            raise Refused(HTTPStatus.NOT_FOUND, "Not Found")
        methods = ("POST",) if work is not None else ("GET", "HEAD")
        if method not in methods and not (path == "/ping" and method == "POST"):
            raise Refused(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Method Not Allowed",
                headers=((b"allow", ", ".join(methods).encode()),),
            )
        if self.keys and (work is not None or path in ("/info", "/v1/models")):
            self._check_key(request.headers.get(b"authorization", b""))
        if work is None:
            return None
        media = request.headers.get(b"content-type", b"")
        if media != JSON and media.partition(b";")[0].strip().lower() != JSON:
            raise bad_request("Unsupported Media Type: Only 'application/json' is allowed")
        return work

    def check_busy(self, others: int) -> None:
        """Refused: `others` requests are too many in progress to take one more."""
        if others >= self.limits.requests:
            raise busy(f"{others} requests are in progress")

    async def _worked(self, request: Request, work: Work, receive: Receive) -> bytes:
        self.check_busy(self.requests())
        self.in_progress += 1
        try:
            try:
                async with asyncio.timeout(BODY_S):
                    body = await self._body(request, receive)
            except TimeoutError:
                raise too_slow() from None
            if is_long(request.path, body) or request.path in self.in_threads:
                loop = asyncio.get_running_loop()
                later = loop.run_in_executor(self._threads, self._made, request, work, body)
                made = await _wanted(later, receive)
            else:
                made = self._made(request, work, body)
            return made if isinstance(made, bytes) else await _wanted(made, receive)
        finally:
            self.in_progress -= 1
            self.bytes_held -= request.arrived

    def hold(self, transport: asyncio.Transport) -> None:
        """Its client takes an answer slowly. If all such answers are too much, who has had the
        longest time is closed; not who is alone."""
        self.unread[transport] = None
        sizes = {one: one.get_write_buffer_size() for one in self.unread}
        while len(sizes) > 1 and sum(sizes.values()) > self.limits.body * BODIES:
            oldest = next(iter(sizes))
            del sizes[oldest], self.unread[oldest]
            oldest.abort()

    def _made(self, request: Request, work: Work, body: bytes) -> Made:
        given = request.headers.get(b"x-request-id") == request.name
        request_name.set(request.name.decode() if given else None)
        return work(self.models, body)

    async def _body(self, request: Request, receive: Receive) -> bytes:
        length = request.headers.get(b"content-length", b"0")
        if length.isdigit() and len(length) < 20:
            self._check_size(int(length))
        parts, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _HungUp
            part = message.get("body", b"")
            parts.append(part)
            request.arrived += len(part)
            self.bytes_held += len(part)
            self._check_size(request.arrived)
            if self.bytes_held > self.limits.body * BODIES:
                raise busy(f"bodies of {self.bytes_held} bytes are in progress")
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check_size(self, size: int) -> None:
        most = self.limits.body
        if size > most:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body has more than {most} bytes: shorten it, or raise --max-body",
            )

    def _check_key(self, authorization: bytes) -> None:
        kind, _, given = authorization.partition(b" ")
        right = [hmac.compare_digest(given, key) for key in self.keys]  # all: in constant time
        if kind.lower() != b"bearer" or not any(right):
            scheme = (b"www-authenticate", b"Bearer")
            raise Refused(HTTPStatus.UNAUTHORIZED, "Unauthorized", headers=(scheme,))

    def answer(self, request: Request, body: bytes) -> Answer:
        """To a short request that has arrived whole."""
        try:
            self._admitted(request)
            made = self._made(request, self.work[request.path], body)
            assert isinstance(made, bytes)
            return self._answered(request, made)
        except Exception as error:
            return self.refused(request, error)

    def _answered(self, request: Request, body: bytes) -> Answer:
        media = metrics.MEDIA if request.path == "/metrics" else JSON
        return self._finished(request, HTTPStatus.OK, media, (), body)

    def refused(self, request: Request, error: Exception) -> Answer:
        """The answer for an exception of the others."""
        if isinstance(error, (OverflowError, RecursionError)):
            error = bad_request(f"a number is too large, or the nesting too deep: {error}")
        if not isinstance(error, Refused):
            log.error("request %s: %s", request.name.decode(), request.path, exc_info=error)
            error = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "an error of the gateway: its log")
        if request.path in self.tei:
            error = as_tei(error)
        return self._finished(request, error.status, JSON, error.headers, error.body)

    def _finished(
        self,
        request: Request,
        status: int,
        media: bytes,
        more: tuple[tuple[bytes, bytes], ...],
        body: bytes,
    ) -> Answer:
        self.note(request, int(status), len(body))
        headers = [
            (b"content-type", media),
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", request.name),
            *more,
        ]
        return Answer(status, headers, body)

    def hung_up(self, request: Request) -> None:
        self.note(request, HUNG_UP, 0)

    def note(self, request: Request, status: object, size: int) -> None:
        """In the metrics, and where it is asked for in the log; from any thread."""
        seconds = time.perf_counter() - request.begun
        path = request.path if request.path in self.paths else "other"
        self.metrics.count(path, str(status), seconds, request.arrived, size)
        if self.log_requests:
            log.info(
                "request %s: %s %s: %s, %d bytes in, %d out, %.3f ms",
                request.name.decode(),
                request.method,
                path,
                status,
                request.arrived,
                size,
                seconds * 1e3,
            )


class _HungUp(Exception):
    """The client does not wait for an answer."""


async def _wanted(made: Awaitable[Given], receive: Receive) -> Given:
    """_HungUp: the client is gone, and what has not begun for it does not."""
    work, gone = asyncio.ensure_future(made), asyncio.ensure_future(receive())
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise _HungUp
        return work.result()
    finally:
        work.cancel()
        gone.cancel()
