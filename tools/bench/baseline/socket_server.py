#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A conventional server: a tokenizer behind a kernel socket, well tuned, in one thread.

--transport udp: one datagram of text in, one datagram of uint32 ids (little-endian) out. tcp: the
same on a connection, each message after its length in bytes as such a uint32.

It selects the fastest of the tokenizer's calls on this machine. --loop thread spins on its socket,
as dpdk-tokd does on its queue, so that no wake-up counts against it (--block sleeps), and serves
one connection at a time. --loop asyncio serves many and waits in epoll, by uvloop if installed. It
calls the tokenizer in the loop, since handing the text to a thread would only add time.
"""

import argparse
import asyncio
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.baseline import engines
from bench.baseline.engines import Call

DATAGRAM_MAX = 65507
TEXT_MAX = 1 << 20  # bytes of a text over TCP; a connection that announces more is closed
SOCKET_BUFFER = 4 << 20
FORCE = {socket.SO_RCVBUF: 33, socket.SO_SNDBUF: 32}  # SO_*BUFFORCE of Linux, which Python lacks
LENGTH = struct.Struct("<I")
SAMPLE = 2000  # bytes


def bound(kind: socket.SocketKind, ip: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for option, force in FORCE.items():
        try:  # beyond the system's limit, as root: queued datagrams must not be lost
            made.setsockopt(socket.SOL_SOCKET, force, SOCKET_BUFFER)
        except PermissionError:
            made.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER)
    made.bind((ip, port))
    return made


# ---- one thread ----


def udp_thread(server: socket.socket, call: Call, block: bool) -> None:
    view = memoryview(bytearray(DATAGRAM_MAX))
    flags = 0 if block else socket.MSG_DONTWAIT
    while True:
        try:
            n, peer = server.recvfrom_into(view, DATAGRAM_MAX, flags)
        except BlockingIOError:
            continue
        answer = call(view[:n])
        if len(answer) <= DATAGRAM_MAX:  # else no answer: it does not fit a datagram
            server.sendto(answer, peer)


def _connection(peer: socket.socket, call: Call, block: bool) -> None:
    """Serve one connection until it ends or announces too long a text."""
    view = memoryview(bytearray(LENGTH.size + TEXT_MAX))
    flags = 0 if block else socket.MSG_DONTWAIT
    have = 0
    while True:
        try:
            n = peer.recv_into(view[have:], 0, flags)
        except BlockingIOError:
            continue
        if n == 0:
            return
        have += n
        at = 0
        while have - at >= LENGTH.size:
            (length,) = LENGTH.unpack_from(view, at)
            if length > TEXT_MAX:
                return
            end = at + LENGTH.size + length
            if have < end:
                break
            answer = call(view[at + LENGTH.size : end])
            peer.setblocking(True)
            peer.sendall(LENGTH.pack(len(answer)) + answer)
            at = end
        have -= at
        if at and have:
            view[:have] = view[at : at + have]


def tcp_thread(server: socket.socket, call: Call, block: bool) -> None:
    server.listen()
    while True:
        peer, _ = server.accept()
        with peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                _connection(peer, call, block)
            except ConnectionError:
                continue


# ---- asyncio ----


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, call: Call) -> None:
        self._call = call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._call(memoryview(data))
        if len(answer) <= DATAGRAM_MAX:
            self._transport.sendto(answer, addr)


class Connection(asyncio.Protocol):
    """TCP_NODELAY is asyncio's default."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._have = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._have += data
        while len(self._have) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._have)
            if length > TEXT_MAX:
                self._transport.abort()
                return
            end = LENGTH.size + length
            if len(self._have) < end:
                return
            answer = self._call(memoryview(bytes(self._have[LENGTH.size : end])))
            self._transport.write(LENGTH.pack(len(answer)) + answer)
            del self._have[:end]


async def _asyncio(server: socket.socket, call: Call, transport: str) -> None:
    loop = asyncio.get_running_loop()
    if transport == "udp":
        await loop.create_datagram_endpoint(lambda: Datagrams(call), sock=server)
    else:
        await loop.create_server(lambda: Connection(call), sock=server)
    await loop.create_future()  # SIGTERM ends the program


def best_loop() -> tuple[str, Callable[[], asyncio.AbstractEventLoop]]:
    try:
        import uvloop
    except ImportError:
        return "asyncio without uvloop", asyncio.new_event_loop
    return f"asyncio by uvloop {uvloop.__version__}", uvloop.new_event_loop


# ---- the program ----


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--listen", required=True, metavar="IP:PORT")
    parser.add_argument("--ranks", required=True, type=Path, help="gpt2.tiktoken")
    parser.add_argument("--sample", required=True, type=Path, help="text to select the call")
    parser.add_argument("--engine", choices=[*engines.LOADERS], default="tokenizers")
    parser.add_argument("--transport", choices=["udp", "tcp"], default="udp")
    parser.add_argument("--loop", choices=["thread", "asyncio"], default="thread")
    parser.add_argument("--json", type=Path, help="GPT-2's tokenizer.json; without it, derived")
    parser.add_argument("--cpu", type=int, help="run on this CPU")
    parser.add_argument("--block", action="store_true", help="sleep until a packet comes")
    return parser.parse_args()


def load(args: argparse.Namespace) -> dict[str, Call]:
    with tempfile.TemporaryDirectory(prefix="tokd-baseline-") as folder:
        made = args.json or Path(folder, "tokenizer.json")
        if args.json is None and args.engine in ("tokenizers", "python", "fastokens"):
            engines.write_json(args.ranks, made)
        ways = engines.load(args.engine, engines.Files("gpt2", args.ranks, made)).ways
    return {name: way.served() for name, way in ways.items()}


def main() -> int:
    args = options()
    if args.cpu is not None:
        os.sched_setaffinity(0, {args.cpu})
    if why := engines.obstacle(args.engine):
        print(f"socket_server: --engine {args.engine}: {why}", file=sys.stderr)
        return 2
    try:
        calls = load(args)
    except engines.CannotLoad as error:
        print(f"socket_server: --engine {args.engine}: {error}", file=sys.stderr)
        return 2
    text = args.sample.read_text(encoding="utf-8")
    samples = [
        memoryview(text[i : i + SAMPLE].encode()) for i in range(0, max(1, len(text)), SAMPLE)
    ]
    name, ns = engines.fastest(calls, dict.fromkeys(calls, samples))
    for each, took in ns.items():
        per_byte = took / max(1, sum(map(len, samples)))
        print(f"socket_server: {each}: {per_byte:.0f} ns a byte", flush=True)
    ip, _, port = args.listen.rpartition(":")
    kind = socket.SOCK_DGRAM if args.transport == "udp" else socket.SOCK_STREAM
    with bound(kind, ip, int(port)) as server:
        loop_name, new_loop = best_loop()
        if args.loop == "thread":
            loop_name = "one thread that sleeps" if args.block else "one thread that spins"
        if args.transport == "tcp":
            server.listen()
        where = ":".join(map(str, server.getsockname()))
        print(f"ready: {where}, {args.engine} {name}, {args.transport}, {loop_name}", flush=True)
        if args.loop == "asyncio":
            server.setblocking(False)
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(_asyncio(server, calls[name], args.transport))
        elif args.transport == "udp":
            udp_thread(server, calls[name], args.block)
        else:
            tcp_thread(server, calls[name], args.block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
