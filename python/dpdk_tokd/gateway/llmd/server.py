# SPDX-License-Identifier: BSD-3-Clause
"""The gRPC server at a unix socket, beside uvicorn in the same process.

It is grpc's server with threads. Measured, CPU time of a Tokenize of 560 bytes, 64 in progress on
one connection: 150 us, and 205 by grpc.aio in uvicorn's event loop.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from http import HTTPStatus
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from ..app import App
from ..errors import Refused
from ..sockets import check_free
from .proto import POOL, SERVICE
from .service import Service

THREADS = 8  # long texts leave some for others
REFLECTIONS = 2  # at once: a client may ask for as long as it likes, which takes a thread
REFLECTION_S = 0.25  # in which the stream that a client has just left ends
DETAILS_MAX = 1000  # characters of an error, which is sent in a header
BODY_MAX = (1 << 31) - 1
MESSAGE_S = 5.0  # in which a client has to send its message: until then it has a thread
LAST_S = 0.1  # for the last answers to be sent, and for those who watch the health to read its end
OPTIONS = [  # as llm-d's server: proxies ping often
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
]

log = logging.getLogger("tokd-gateway")


class _Threads(futures.ThreadPoolExecutor):
    """in_progress: requests that have arrived and are not answered."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, name)
        self.in_progress: set[futures.Future[Any]] = set()

    def submit(self, *call: Any, **named: Any) -> futures.Future[Any]:
        request = super().submit(*call, **named)
        self.in_progress.add(request)
        request.add_done_callback(self.in_progress.discard)
        return request


class _Reflection(reflection.ReflectionServicer):  # type: ignore[misc]
    def __init__(self, names: Iterable[str], threads: _Threads) -> None:
        super().__init__(names, POOL)
        self._free = threading.Semaphore(REFLECTIONS)
        self._in_progress = threads.in_progress

    def ServerReflectionInfo(self, requests: Any, context: Any) -> Iterator[Any]:
        if not context.is_active():
            return
        alone = len(self._in_progress) <= REFLECTIONS + 1  # else others wait for this thread
        if not self._free.acquire(timeout=REFLECTION_S if alone else 0):
            why = f"{REFLECTIONS} clients use reflection: send it again"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, why)
        try:
            yield from super().ServerReflectionInfo(requests, context)
        finally:
            self._free.release()


class _Messages(grpc.ServerInterceptor):  # type: ignore[misc]
    """Takes the one message of a call, and ends calls whose message does not come."""

    def __init__(self) -> None:
        self._awaited: dict[Any, float] = {}  # by context: until when
        self._ended = threading.Event()
        self.end = self._ended.set

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        if handler is None or handler.request_streaming:
            return handler
        until = time.monotonic() + MESSAGE_S  # from its arrival, not from when it has a thread
        behavior, make = handler.unary_unary, grpc.stream_unary_rpc_method_handler
        if handler.response_streaming:
            behavior, make = handler.unary_stream, grpc.stream_stream_rpc_method_handler

        @functools.wraps(behavior)  # with the attributes that grpc looks for
        def call(messages: Iterator[Any], context: Any, *more: Any) -> Any:
            message = self._first(messages, context, until)
            if handler.request_deserializer is not None:
                try:
                    message = handler.request_deserializer(message)
                except Exception as error:
                    context.abort(grpc.StatusCode.INTERNAL, f"the message: {error}"[:DETAILS_MAX])
            return behavior(message, context, *more)

        return make(call, None, handler.response_serializer)

    def _first(self, messages: Iterator[bytes], context: Any, until: float) -> bytes:
        # A call that has waited for a thread is not late if its message is there.
        self._awaited[context] = max(until, time.monotonic() + MESSAGE_S / 50)
        try:
            for message in messages:
                return message
        finally:
            del self._awaited[context]
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "the call has no message: send one")
        raise AssertionError  # abort has raised

    def watch(self) -> None:
        while not self._ended.wait(MESSAGE_S / 5):
            now = time.monotonic()
            for context, until in self._awaited.copy().items():
                if now > until:
                    context.cancel()


def _apart(call: Callable[..., Any], threads: futures.Executor) -> Any:
    """The same call, in other threads than the server's."""
    call = functools.partial(call)
    call.experimental_thread_pool = threads  # type: ignore[attr-defined]
    return call


class GrpcServer:
    """address: "unix:PATH". OSError: the socket cannot be made."""

    def __init__(self, app: App, address: str) -> None:
        path = address.removeprefix("unix:")
        if not os.path.isdir(folder := os.path.dirname(path) or "."):
            raise OSError(f"--grpc {address}: there is no folder {folder}: mkdir -m 700 it")
        self.address = address
        self.service = Service(app.models)
        self.threads = _Threads(THREADS, "grpc")
        self.messages = _Messages()
        app.by_grpc = self.threads.in_progress
        limits = app.limits
        self.server = grpc.server(
            self.threads,
            options=[*OPTIONS, ("grpc.max_receive_message_length", min(limits.body, BODY_MAX))],
            interceptors=[self.messages],
            maximum_concurrent_rpcs=limits.requests,
        )
        paths = {name: f"/{SERVICE.full_name}/{name}" for name in self.service.calls}
        app.paths.update(paths.values())
        calls = {n: _handler(app, paths[n], work) for n, work in self.service.calls.items()}
        handler = grpc.method_handlers_generic_handler(SERVICE.full_name, calls)
        self.server.add_generic_rpc_handlers((handler,))
        # In a thread of its own: a probe does not wait for a thread that long texts have.
        apart = futures.ThreadPoolExecutor(1, "grpc-health")
        self.health = health.HealthServicer(experimental_thread_pool=apart)
        self.health.Check = _apart(self.health.Check, apart)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)
        for name in ("", SERVICE.full_name):
            self.health.set(name, health_pb2.HealthCheckResponse.SERVING)
        for other in (health_pb2, reflection_pb2):
            POOL.AddSerializedFile(other.DESCRIPTOR.serialized_pb)
        names = (SERVICE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        # In threads of their own, one of them to refuse: the end does not wait for who asks on.
        pool = _Threads(REFLECTIONS + 1, "grpc-reflection")
        shown = _Reflection(names, pool)
        shown.ServerReflectionInfo = _apart(  # type: ignore[method-assign]
            shown.ServerReflectionInfo, pool
        )
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(shown, self.server)
        try:
            check_free(path)
            self.server.add_insecure_port(address)
        except (OSError, RuntimeError) as error:
            raise OSError(f"--grpc {address}: {error}") from None

    def start(self) -> None:
        self.server.start()
        threading.Thread(target=self.messages.watch, name="grpc-messages", daemon=True).start()
        log.info("gRPC at %s", self.address)

    def stop(self, seconds: float) -> None:
        """Let requests in progress end, and wait for that."""
        self.health.enter_graceful_shutdown()
        self.server.stop(seconds)
        futures.wait(self.threads.in_progress.copy(), timeout=seconds)
        self.server.stop(LAST_S).wait()  # who watches the health would stay for ever
        self.threads.shutdown(wait=False)
        self.messages.end()


CODES = {
    HTTPStatus.NOT_IMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
    HTTPStatus.SERVICE_UNAVAILABLE: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
FAULTS = (ValueError, DecodeError, OverflowError, RecursionError)  # of a request


def _handler(app: App, path: str, work: Callable[[bytes], bytes]) -> Any:
    def call(body: bytes, context: Any) -> bytes:
        names = (value for name, value in context.invocation_metadata() if name == "x-request-id")
        request = app.begun("gRPC", path, {b"x-request-id": next(names, "").encode()})
        request.arrived = len(body)
        code = grpc.StatusCode.INTERNAL  # as llm-d's server has it, whatever the fault
        try:
            app.check_busy(app.requests() - 1)  # it is one of these itself
            answer = work(body)
        except Refused as refused:
            code, why = CODES.get(refused.status, code), str(refused)
        except FAULTS as error:
            why = str(error)
        except Exception:
            log.exception("request %s: %s", request.name.decode(), path)
            why = "an error of the gateway: its log"
        else:
            app.note(request, "OK", len(answer))
            return answer
        app.note(request, code.name, 0)
        context.abort(code, why[:DETAILS_MAX])
        raise AssertionError  # abort has raised

    return grpc.unary_unary_rpc_method_handler(call)
