# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway: its options, and the server that runs the application.

The server is uvicorn with uvloop and httptools: it has TLS, unix sockets, draining and time limits,
and is kept by many. Measured with an application that only answers, 64 connections, CPU time a
request: uvicorn 31 us, granian 39 (its own interface) and 59 (ASGI), libmicrohttpd 10.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from importlib.metadata import version
from types import FrameType
from typing import TYPE_CHECKING

try:
    import msgspec  # noqa: F401  # without these nothing below can be imported
    import prometheus_client  # noqa: F401
    import uvicorn
except ImportError as missing:
    sys.exit(
        f"tokd-gateway: {missing.name} is missing: tools/setup installs it, elsewhere "
        "pip install 'dpdk-tokd[gateway]'"
    )

from .app import App, Limits
from .appliances import attach
from .models import BATCH_MAX, TOKENS_MAX, Model, Models
from .protocol import Protocol
from .sockets import listen

if TYPE_CHECKING:
    from .llmd.server import GrpcServer

DRAIN_S = 30
UNIX_MAX = 107  # bytes of a socket's path

log = logging.getLogger("tokd-gateway")


def _model(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected NAME=VOCAB, for example llama=/models/llama3 or gpt2=gpt2"
        )
    return name, path


def _unix(text: str) -> str:
    path = text.removeprefix("unix:")
    if path in ("", text) or path.startswith("//"):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected unix:PATH, for example unix:/tmp/tokenizer/tokenizer-uds.socket"
        )
    if len(path.encode()) > UNIX_MAX:
        raise argparse.ArgumentTypeError(f"{text!r}: the path is longer than {UNIX_MAX} bytes")
    return text


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above 0")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0 to 65535")
    return int(text)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="tokd-gateway",
        description="Serves tokenizers by HTTP, in the shapes of vLLM's servers.",
    )
    add = made.add_argument
    add(
        "--model",
        type=_model,
        action="append",
        required=True,
        metavar="NAME=VOCAB",
        help="the name clients ask for, and a vocabulary: its folder, file, or name in the search "
        "path; requests without a name use the first",
    )
    add("--host", default="127.0.0.1", help="address to listen at (default %(default)s)")
    add(
        "--port",
        type=_port,
        default=8000,
        help="TCP port; 0: any that is free (default %(default)s)",
    )
    add(
        "--uds",
        metavar="PATH",
        help="listen at a unix socket instead; the umask says who may connect",
    )
    add(
        "--appliance",
        metavar="HOST[:PORT],...",
        help="tokenize plain prompts and decode ids there: appliances (dpdk-tokd) with the "
        "vocabularies of all models, separated by commas",
    )
    add(
        "--grpc",
        type=_unix,
        metavar="unix:PATH",
        help="serve llm-d's TokenizationService by gRPC as well, at this socket",
    )
    add(
        "--max-model-len",
        type=_positive,
        metavar="TOKENS",
        help="context length of each model; default: its config.json, else its "
        "tokenizer_config.json, else 1048576",
    )
    add(
        "--trust-request-chat-template",
        action="store_true",
        help="let requests bring chat templates of their own; for clients that are trusted",
    )
    add(
        "--max-body",
        type=_positive,
        default=Limits().body,
        metavar="BYTES",
        help="longest body of a request (default %(default)s)",
    )
    add(
        "--max-tokens",
        type=_positive,
        default=TOKENS_MAX,
        metavar="N",
        help="most tokens of a request (default %(default)s)",
    )
    add(
        "--max-batch",
        type=_positive,
        default=BATCH_MAX,
        metavar="N",
        help="most texts of a request (default %(default)s)",
    )
    add(
        "--max-requests",
        type=_positive,
        default=Limits().requests,
        metavar="N",
        help="most requests in progress, by HTTP and gRPC together; more get 503 (default %(default)s)",
    )
    add(
        "--api-key",
        action="append",
        default=[],
        metavar="KEY",
        help="accept these keys only; or by $TOKD_API_KEYS, separated by commas, which other "
        "users of this host cannot read",
    )
    add("--ssl-certfile", metavar="PEM", help="serve TLS with this certificate")
    add("--ssl-keyfile", metavar="PEM", help="and this key")
    add("--log-requests", action="store_true", help="log a line for each request, with its id")
    add("--version", action="version", version=f"tokd-gateway {version('dpdk-tokd')}")
    return made


class Server(uvicorn.Server):
    """Tells systemd when it is ready, and when it ends, with gRPC if there is."""

    grpc: GrpcServer | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            log.warning("a second signal: ending at once")
            os._exit(1)
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.grpc is not None:
            self.grpc.start()
        _notify(b"READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _notify(b"STOPPING=1")
        async with asyncio.TaskGroup() as both:
            both.create_task(super().shutdown(sockets))
            if self.grpc is not None:
                both.create_task(asyncio.to_thread(self.grpc.stop, DRAIN_S))


def _notify(state: bytes) -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect("\0" + address[1:] if address[0] == "@" else address)
            notify.send(state)


def _listen(path: str) -> socket.socket:
    try:
        listening = listen(path)
    except OSError as error:
        raise OSError(f"--uds {path}: {error}") from None
    log.info("HTTP at %s", path)
    return listening


def _end(*_: object) -> None:
    """SIGINT or SIGTERM, which uvicorn raises again when it has drained."""
    sys.exit(0)


def _grpc(app: App, address: str) -> GrpcServer:
    try:
        from .llmd.server import GrpcServer
    except ImportError as missing:
        raise OSError(
            f"--grpc: {missing.name} is missing: tools/setup installs it, elsewhere "
            "pip install 'dpdk-tokd[grpc]'"
        ) from None
    return GrpcServer(app, address)


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.ssl_keyfile is not None and options.ssl_certfile is None:
        print("tokd-gateway: --ssl-keyfile: give --ssl-certfile as well", file=sys.stderr)
        return 2
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level="INFO")
    named = os.environ.get("TOKD_API_KEYS")
    keys = (*options.api_key, *([] if named is None else named.split(",")))
    if not all(keys):
        print("tokd-gateway: --api-key, TOKD_API_KEYS: an empty key", file=sys.stderr)
        return 2
    try:
        models = Models(
            (Model(name, path, options.max_model_len) for name, path in options.model),
            options.max_tokens,
            options.max_batch,
            trust_request_chat_template=options.trust_request_chat_template,
        )
        if options.appliance is not None:
            attach(models, options.appliance, options.max_requests)
        for model in models.by_name.values():
            model.prepare()
    except (ValueError, OSError) as error:
        print(f"tokd-gateway: {error}", file=sys.stderr)
        return 2
    limits = Limits(options.max_body, options.max_requests)
    app = App(models, limits, keys, options.log_requests)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        loop="uvloop",
        http=Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        ssl_certfile=options.ssl_certfile,
        ssl_keyfile=options.ssl_keyfile,
        timeout_graceful_shutdown=DRAIN_S,
    )
    try:
        config.load()
    except OSError as error:  # it does not name the file
        files = " and ".join(filter(None, (options.ssl_certfile, options.ssl_keyfile)))
        print(f"tokd-gateway: TLS by {files}: {error}", file=sys.stderr)
        return 1
    server = Server(config)
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
    try:
        if options.grpc:
            server.grpc = _grpc(app, options.grpc)
        server.run([_listen(options.uds)] if options.uds else None)
    except OSError as error:  # of a unix socket
        print(f"tokd-gateway: {error}", file=sys.stderr)
    except SystemExit:  # uvicorn's own, or that of _end
        pass
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
