# SPDX-License-Identifier: BSD-3-Clause
"""The application, raw ASGI: routes, limits, keys, request ids, errors."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from .. import __version__
from .derender import derender_chat, derender_completion
from .errors import Refused, bad_request
from .models import Models
from .render import messages_render, render_chat, render_completion, request_name, responses_render
from .tokenize import detokenize, tokenize

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

THREAD_BYTES = 32 << 10  # a longer body is worked on in a thread: others do not wait for it
REQUEST_ID_MAX = 128  # bytes of a client's own

log = logging.getLogger("tokd-gateway")


@dataclass(frozen=True, slots=True)
class Limits:
    """body: bytes of a request. requests: in progress at once, more are refused."""

    body: int = 16 << 20
    requests: int = 1024


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


class App:
    """The ASGI application. keys: any of them is accepted; none: everybody is."""

    def __init__(
        self, models: Models, limits: Limits | None = None, keys: tuple[str, ...] = ()
    ) -> None:
        self.models = models
        self.limits = limits or Limits()
        self.keys = tuple(key.encode() for key in keys)
        self.in_progress = 0
        listed = _models(models, int(time.time()))
        version = msgspec.json.encode({"version": __version__})
        self.fixed: dict[str, bytes] = {
            "/health": b"",
            "/ping": b"",
            "/ready": b"",
            "/v1/models": listed,
            "/version": version,
        }
        self.work: dict[str, Callable[[Models, bytes], bytes]] = {
            "/detokenize": detokenize,
            "/tokenize": tokenize,
            "/v1/chat/completions/derender": derender_chat,
            "/v1/chat/completions/render": render_chat,
            "/v1/completions/derender": derender_completion,
            "/v1/completions/render": render_completion,
            "/v1/messages/render": messages_render,
            "/v1/responses/render": responses_render,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = dict(scope["headers"])
        own = request.get(b"x-request-id", b"")[:REQUEST_ID_MAX]
        request_name.set(own.decode("latin-1") or None)
        name = own or uuid.uuid4().hex.encode()
        status = HTTPStatus.OK
        more: tuple[tuple[bytes, bytes], ...] = ()
        try:
            body = await self._answer(scope, request, receive)
        except Refused as refused:
            status, more, body = refused.status, refused.headers, refused.body
        except _HungUp:
            return
        except Exception:
            log.exception("request %s: %s", name.decode("latin-1"), scope["path"])
            failed = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "an error of the gateway: its log")
            status, body = failed.status, failed.body
        headers: Headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", name),
            *more,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        path, method = scope["path"], scope["method"]
        work = self.work.get(path)
        if work is None and path not in self.fixed:
            raise Refused(HTTPStatus.NOT_FOUND, "Not Found")
        wanted = "POST" if work is not None else "GET"
        if method != wanted and not (path == "/ping" and method == "POST"):
            raise Refused(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Method Not Allowed",
                headers=((b"allow", wanted.encode()),),
            )
        if self.keys and (work is not None or path == "/v1/models"):
            self._check_key(headers.get(b"authorization", b""))
        if work is None:
            return self.fixed[path]
        media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if media != b"application/json":
            raise bad_request("Unsupported Media Type: Only 'application/json' is allowed")
        if self.in_progress >= self.limits.requests:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self.in_progress} requests are in progress: send it again",
                headers=((b"retry-after", b"1"),),
            )
        self.in_progress += 1
        try:
            body = await self._body(headers, receive)
            if len(body) > THREAD_BYTES:
                return await asyncio.to_thread(work, self.models, body)
            return work(self.models, body)
        finally:
            self.in_progress -= 1

    def _check_key(self, authorization: bytes) -> None:
        kind, _, given = authorization.partition(b" ")
        right = [hmac.compare_digest(given, key) for key in self.keys]  # all: in constant time
        if kind.lower() != b"bearer" or not any(right):
            raise Refused(HTTPStatus.UNAUTHORIZED, "Unauthorized")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self.limits.body
        length = headers.get(b"content-length", b"0")
        parts, have = [], 0
        if length.isdigit() and len(length) < 20:
            have = int(length)
        while have <= most:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _HungUp
            parts.append(message.get("body", b""))
            have = sum(map(len, parts))
            if not message.get("more_body", False):
                break
        if have > most:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body has more than {most} bytes: shorten it, or raise --max-body",
            )
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _HungUp(Exception):
    """The client does not wait for an answer."""
