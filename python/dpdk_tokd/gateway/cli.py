# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway: its options, and the server that runs the application.

The server is uvicorn with uvloop and httptools: it has TLS, unix sockets, draining and time limits,
and is kept by many. Measured with an application that only answers, 64 connections, CPU time a
request: uvicorn 31 us, granian 39 (its own interface) and 59 (ASGI), libmicrohttpd 10.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from importlib.metadata import version

try:
    import msgspec  # noqa: F401  # without it nothing below can be imported
    import uvicorn
except ImportError as missing:
    sys.exit(
        f"tokd-gateway: {missing.name} is missing: tools/setup installs it, elsewhere "
        "pip install 'dpdk-tokd[gateway]'"
    )

from .app import App, Limits
from .models import Model, Models

DRAIN_S = 30


def _model(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected NAME=FOLDER or NAME=FILE, for example llama=/models/llama3"
        )
    return name, path


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above 0")
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
        metavar="NAME=FOLDER_OR_FILE",
        help="a vocabulary and the name clients ask for; the first is meant where they name none",
    )
    add("--host", default="127.0.0.1", help="address to listen at (default %(default)s)")
    add("--port", type=int, default=8000, help="TCP port (default %(default)s)")
    add("--uds", metavar="PATH", help="listen at a unix socket instead")
    add(
        "--max-model-len",
        type=_positive,
        metavar="TOKENS",
        help="of each model's context; by default what its config.json says, else its "
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
        help="of a request (default %(default)s)",
    )
    add(
        "--max-requests",
        type=_positive,
        default=Limits().requests,
        metavar="N",
        help="in progress at once; more get 503 (default %(default)s)",
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
    add("--version", action="version", version=f"tokd-gateway {version('dpdk-tokd')}")
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level="INFO")
    keys = (*options.api_key, *filter(None, os.environ.get("TOKD_API_KEYS", "").split(",")))
    try:
        models = Models(
            (Model(name, path, options.max_model_len) for name, path in options.model),
            trust_request_chat_template=options.trust_request_chat_template,
        )
        for model in models.by_name.values():
            model.prepare()
    except (ValueError, OSError) as error:
        print(f"tokd-gateway: {error}", file=sys.stderr)
        return 2
    server = uvicorn.Server(
        uvicorn.Config(
            App(models, Limits(options.max_body, options.max_requests), keys),
            host=options.host,
            port=options.port,
            uds=options.uds,
            loop="uvloop",
            http="httptools",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            ssl_certfile=options.ssl_certfile,
            ssl_keyfile=options.ssl_keyfile,
            timeout_graceful_shutdown=DRAIN_S,
        )
    )
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
