# SPDX-License-Identifier: BSD-3-Clause
"""What a second worker on a second queue brings: throughput over af_packet, by turns."""

import argparse
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import replay
from bench.appliance import READY_S
from bench.lab.net import Veth, inside, namespace, veth
from bench.old import command
from bench.pair import CPUS
from bench.programs import TOKD_CLIENT
from bench.say import say
from bench.texts import fetch_corpus, fetch_vocab, reference
from bench.texts.packages import data_home
from dpdk_tokd.ops.telemetry import Telemetry

WORKER_CPUS = CPUS[::-1][:2]  # worker 0 on the last, as everywhere; worker 1 on the one before
CLIENTS = 8  # sockets, and so flows, for the kernel to spread over the queues
IN_FLIGHT = 32
LINE_BYTES = 4096
RUN_S = 120.0
# By chance the kernel's hash puts all flows on one of two queues: 2 * (1/2)^8, 0.8% of the runs.
TRIES = 3
DESCRIPTION = f"""\
dpdk-tokd with one worker and one queue, and with two of each, by turns.

First without clients: each worker replays a capture by net_pcap, which shows what they do side by
side, in text tokenized per second of busy time; all ids in the token rings are compared. Then on
net_af_packet: {CLIENTS} clients send the same texts, each from a socket of its own, {IN_FLIGHT} at
once. Every id is compared with Hugging Face tokenizers, and each stream must have stayed on one
worker. A run in which a worker got no flow is repeated, {TRIES} times in all. Workers poll without
ever sleeping; the clients run on whatever CPU the kernel gives them, beside the workers if there is
no other."""


@dataclass(frozen=True)
class Share:
    """What one client sends, a text a line, and what it must print."""

    texts: Path
    ids: bytes
    size: int


@dataclass(frozen=True)
class Run:
    seconds: float
    ids_equal: bool
    streams: list[int]  # of each worker
    stayed: bool  # no worker got a packet of another's stream
    busy: list[float]  # of each worker's time


def lines_of(text: str) -> list[str]:
    """All of a corpus in texts of about LINE_BYTES characters, without line ends."""
    flat = " ".join(text.splitlines())
    return [flat[i : i + LINE_BYTES] for i in range(0, len(flat), LINE_BYTES)]


def shares(folder: Path, most: int, vocab: Path, corpora: dict[str, Path]) -> list[Share]:
    """The corpora, dealt to the clients."""
    tokenizer = reference.load_gpt2(vocab)
    found = []
    texts = [line for c in corpora.values() for line in lines_of(c.read_text("utf-8")[:most])]
    for i in range(CLIENTS):
        own = texts[i::CLIENTS]
        path = folder / f"texts{i}"
        path.write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
        ids = (" ".join(map(str, reference.ids(tokenizer, line))) for line in own)
        found.append(Share(path, "".join(f"{line}\n" for line in ids).encode(), path.stat().st_size))
    return found


def run(
    link: Veth, where: str, workers: int, vocab: Path, parts: list[Share], folder: Path
) -> Run:
    prefix = f"tokd-workers-{os.getpid()}"
    client = inside(where, str(TOKD_CLIENT), "--lines", "--in-flight", str(IN_FLIGHT), link.server)
    # A queue that is full would hand packets to the other: room for all that can be under way.
    device = f"net_af_packet0,iface={link.near},qpairs={workers},framecnt=8192"
    own = ["--ip", link.server, "--vocab", str(vocab)]
    with replay.appliance(device, WORKER_CPUS[:workers], own, folder, prefix) as server:
        server.wait_for("ready:", READY_S)
        outputs = [folder / f"ids{i}" for i in range(CLIENTS)]
        begun = time.monotonic()
        running: list[subprocess.Popen[bytes]] = []
        try:
            for part, output in zip(parts, outputs, strict=True):
                with part.texts.open("rb") as texts, output.open("wb") as ids:
                    running.append(subprocess.Popen(client, stdin=texts, stdout=ids))
            codes = [one.wait(RUN_S) for one in running]
        finally:
            for one in running:
                one.kill()  # nothing, to one that has ended
                one.wait()
        seconds = time.monotonic() - begun
        with Telemetry(prefix) as t:
            counters = [t.counters(w) for w in range(workers)]
    cycles = [[c[f"cycles_{k}"] for k in ("busy", "backpressured", "idle")] for c in counters]
    equal = all(o.read_bytes() == p.ids for o, p in zip(outputs, parts, strict=True))
    return Run(
        seconds,
        equal and not any(codes),
        [c["streams_done"] for c in counters],
        all(c["streams_opened"] == c["streams_done"] and not c["drop_unknown"] for c in counters),
        [round(c[0] / sum(c), 3) for c in cycles],
    )


def run_on_all(
    link: Veth, where: str, workers: int, vocab: Path, parts: list[Share], folder: Path
) -> Run:
    """As run(), once more where a worker got no stream: that measures fewer workers."""
    for _ in range(TRIES):
        one = run(link, where, workers, vocab, parts, folder)
        if all(one.streams):
            break
        say(f"the kernel gave a worker no flow (streams of each: {one.streams}): once more")
    return one


def measure_replay(
    rounds: int, most: int, vocab: Path, corpora: dict[str, Path], folder: Path
) -> dict[str, Any]:
    """Without clients: what the workers themselves can do, side by side."""
    texts = replay.texts(vocab, corpora, most)
    captures = replay.captures(folder, texts, 2)
    rates: dict[int, list[float]] = {1: [], 2: []}
    ids = 0
    for i in range(rounds):
        for workers, done in rates.items():
            one = replay.replay(WORKER_CPUS[:workers], vocab, texts, captures, folder)
            done.append(round(sum(one.mb_per_s), 1))
            ids += one.ids
            say(f"replay {i + 1} of {rounds}, {workers} workers: {done[-1]} MB/s")
    ratios = sorted(two / one for one, two in zip(*rates.values(), strict=True))
    mb_per_s = {n: statistics.median(done) for n, done in rates.items()}
    return {"mb_per_s": mb_per_s, "ids_compared": ids} | spread(ratios)


def spread(ratios: list[float]) -> dict[str, Any]:
    """Of two workers to one, round by round."""
    ratios = sorted(ratios)
    return {
        "ratio": {
            "p50": round(statistics.median(ratios), 2),
            "least": round(ratios[0], 2),
            "most": round(ratios[-1], 2),
            "rounds": len(ratios),
        }
    }


def measure(
    rounds: int, most: int, vocab: Path, corpora: dict[str, Path], folder: Path, stack: ExitStack
) -> dict[str, Any]:
    where = stack.enter_context(namespace("client"))
    link = stack.enter_context(veth(0, where, None))
    say("the reference's ids")
    parts = shares(folder, most, vocab, corpora)
    size = sum(part.size for part in parts)
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for i in range(rounds):
        for workers, done in runs.items():
            done.append(run_on_all(link, where, workers, vocab, parts, folder))
            say(f"round {i + 1} of {rounds}, {workers} workers: {done[-1]}")
    ratios = [one.seconds / two.seconds for one, two in zip(*runs.values(), strict=True)]
    return {
        "bytes": size,
        "mb_per_s": {n: round(size / 1e6 / statistics.median(r.seconds for r in done), 1)
                     for n, done in runs.items()},
        "streams": runs[2][-1].streams,
        "busy": {n: done[-1].busy for n, done in runs.items()},
        "ids_equal": all(r.ids_equal for done in runs.values() for r in done),
        "all_served": all(all(r.streams) for done in runs.values() for r in done),
        "streams_stayed": all(r.stayed for done in runs.values() for r in done),
    } | spread(ratios)  # fmt: skip


def table(result: dict[str, Any]) -> str:
    rows = [f"{'MB of text a second':<20}{'one worker':>12}{'two':>8}   ratio, least to most"]
    for name in ("replay", "af_packet"):
        one, two = result[name]["mb_per_s"].values()
        r = result[name]["ratio"]
        rows.append(f"{name:<20}{one:>12}{two:>8}   {r['p50']}, {r['least']} to {r['most']}")
    return "\n".join(rows)


def measure_both(args: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, Any]:
    vocab = fetch_vocab.fetch("gpt2", data_home() / "vocab")
    corpora = fetch_corpus.fetch(data_home() / "corpus")
    alone = measure_replay(args.rounds, args.characters, vocab, corpora, folder)
    served = measure(args.rounds, args.characters, vocab, corpora, folder, stack)
    return {
        "replay": alone,
        "af_packet": served,
        "cpus": {"workers": WORKER_CPUS, "clients": CPUS},
        "ok": served["ids_equal"] and served["streams_stayed"] and served["all_served"],
    }


def main() -> int:
    parser = command.parser("workers", DESCRIPTION)
    parser.add_argument(
        "--rounds", type=command.number(1, 1000), default=7,
        help="of one worker and of two each [7]",
    )  # fmt: skip
    parser.add_argument(
        "--characters", type=command.number(100_000, 10_000_000), default=6_000_000,
        help="of each corpus, at most [6000000]",
    )  # fmt: skip
    return command.main(parser.parse_args(), "workers", measure_both, table)


if __name__ == "__main__":
    sys.exit(main())
