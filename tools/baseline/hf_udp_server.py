#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conventional way: Hugging Face `tokenizers` behind a kernel UDP socket, in one thread.

One datagram of text in, one datagram of uint32 ids (little-endian) out. Of the library's calls
the fastest on this machine is taken. It spins on its socket, as dpdk-tokd does on its queue, so
that no wake-up of a sleeping process is held against it; --block waits the ordinary way.
"""

import argparse
import os
import signal
import socket
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import numpy as np
import reference  # before tokenizers: it sets the library to one thread
from tokenizers import Tokenizer

Call = Callable[[str], list[int]]
DATAGRAM_MAX = 65507
ROUNDS = 5


def calls(tokenizer: Tokenizer) -> dict[str, Call]:
    """The library's ways to the same ids."""
    found: dict[str, Call] = {
        "encode": lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    }
    if hasattr(tokenizer, "encode_batch_fast"):
        found["encode_batch_fast"] = lambda text: (
            tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        )
    if hasattr(tokenizer, "encode_fast"):
        found["encode_fast"] = lambda text: (
            tokenizer.encode_fast(text, add_special_tokens=False).ids
        )
    return found


def seconds(call: Call, samples: list[str]) -> float:
    begin = time.perf_counter()
    for text in samples:
        call(text)
    return time.perf_counter() - begin


def fastest(tokenizer: Tokenizer, samples: list[str]) -> tuple[str, Call]:
    """By the median of some rounds after one to warm up, the calls taking turns."""
    candidates = calls(tokenizer)
    took: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS + 1):
        for name, call in candidates.items():
            took[name].append(seconds(call, samples))
    size = sum(len(text.encode()) for text in samples)
    for name, times in took.items():
        median = statistics.median(times[1:])
        print(f"hf_udp_server: {name}: {1e9 * median / size:.0f} ns a byte", flush=True)
    best = min(candidates, key=lambda name: statistics.median(took[name][1:]))
    return best, candidates[best]


def serve(server: socket.socket, call: Call, block: bool) -> None:
    buffer = bytearray(DATAGRAM_MAX)
    view = memoryview(buffer)
    flags = 0 if block else socket.MSG_DONTWAIT
    while True:
        try:
            n, peer = server.recvfrom_into(buffer, DATAGRAM_MAX, flags)
        except BlockingIOError:
            continue
        ids = call(str(view[:n], "utf-8", "replace"))
        server.sendto(np.array(ids, dtype="<u4").tobytes(), peer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True, metavar="IP:PORT")
    parser.add_argument("--ranks", required=True, type=Path, help="gpt2.tiktoken")
    parser.add_argument("--sample", required=True, type=Path, help="text to choose the call on")
    parser.add_argument("--cpu", type=int, help="run on this CPU")
    parser.add_argument("--block", action="store_true", help="sleep until a datagram comes")
    args = parser.parse_args()
    if args.cpu is not None:
        os.sched_setaffinity(0, {args.cpu})
    tokenizer = reference.load_gpt2(args.ranks)
    text = args.sample.read_text(encoding="utf-8")
    samples = [text[i : i + 2000] for i in range(0, len(text), 2000)]
    name, call = fastest(tokenizer, samples)
    ip, _, port = args.listen.rpartition(":")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        server.bind((ip, int(port)))
        print(f"ready: {args.listen}, {name}", flush=True)
        serve(server, call, args.block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
