# SPDX-License-Identifier: BSD-3-Clause
"""One round of requests to one server by tokd-load, and the times of all rounds."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from bench import load
from bench.demo.plan import WARM_UP, Round
from bench.lab.net import Veth
from bench.process import json_of
from bench.programs import TOK
from bench.texts import slices

ALONE_S = 120.0


@dataclass
class Times:
    """Round-trip times in ns of the requests whose ids were right, by size and by corpus."""

    by_size: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    by_corpus: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    wrong: int = 0
    retransmits: int = 0

    def add(self, piece: slices.Slice, ns: int, ok: bool, retransmits: int) -> None:
        self.retransmits += retransmits
        if not ok:
            self.wrong += 1
            return
        self.by_size[piece.size].append(ns)
        self.by_corpus[piece.corpus, piece.size].append(ns)


def percentiles(ns: list[int]) -> dict[str, float | int]:
    """In us, by nearest rank: each is a measured time. `samples` shows how far to trust p99."""
    ordered = sorted(ns)
    ranks = {"p50": math.ceil(0.50 * len(ns)), "p99": math.ceil(0.99 * len(ns))}
    found = {name: round(ordered[rank - 1] / 1000, 2) for name, rank in ranks.items()}
    return found | {"samples": len(ns)}


def tokenizer_alone(pieces: list[slices.Slice], vocab: Path, folder: Path, cpu: int) -> Times:
    """The time of a call of libtok for each, never seen before, in a process of its own."""
    path = folder / "alone.bin"
    slices.write(path, pieces)
    command: list[str | Path] = [TOK, "bench", "--json", "--vocab", vocab, "--slices", path]
    times = Times()
    for piece, ns in zip(pieces, json_of(command, [cpu], ALONE_S)["first"]["ns"], strict=True):
        times.add(piece, ns, True, 0)
    return times


def run_round(
    which: Round, mode: str, link: Veth, namespace: str, folder: Path, cpu: int, times: Times
) -> str:
    """Send a round; returns the errors of tokd-load, if any."""
    sent = folder / "round.bin"
    slices.write(sent, which.slices)
    equal, rows, said = load.run(
        link, namespace, sent, cpu, mode, "--first-id", which.first_id, warm_up=WARM_UP
    )
    for row in rows:
        piece = which.slices[int(row["index"])]
        times.add(piece, int(row["ns"]), row["ok"] == "1", int(row["retransmits"]))
    if not equal and times.wrong == 0:
        times.wrong += 1  # in the warm-up, or the client itself failed
    return f"{mode}: {said}" if said else ""
