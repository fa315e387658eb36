# SPDX-License-Identifier: BSD-3-Clause
"""How long texts take inside the appliance, and what share of the client's round trip that is."""

import argparse
import csv
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench.demo.measure import percentiles
from bench.lab.hugepages import hugepages
from bench.old import command
from bench.pair import CLIENT_CPU, Pair
from bench.say import say
from bench.texts import slices
from bench.texts.mix import cut
from bench.texts.slices import Slice
from dpdk_tokd.ops.telemetry import Telemetry

SIZES = {128: 1, 2048: 1}  # tokens, in equal parts
WARM_UP = 100  # requests, checked but not measured: caches are cold then
LIMIT_S = 300.0
DESCRIPTION = """\
dpdk-tokd and tokd-load-dpdk over net_memif, each pinned to a core; one request in flight, no
faults, text never sent before, of 128 and of 2048 tokens by turns. Shown are, for each size:

  wire to ring      of each record: t_rx to t_publish. t_rx is when the receive burst with the
                    packet returned, so when it was taken from the queue; how long it lay there is
                    not in it. Packets of one burst are tokenized one after the other: the later
                    ones' times have the earlier ones' in them
  whole text        of each request: t_rx of its first packet to t_publish of its last record
  round trip        of each request: begun by the client, until its last id has come and was checked
                    against the appliance's CRC
  inside            whole text / round trip of the same request, the median"""


def sizes(rows: list[dict[str, str]], pieces: list[Slice]) -> dict[str, dict[str, Any]]:
    """By size, of the requests that were answered without sending anything again."""
    found = {}
    for size in map(str, SIZES):
        own = [r for r in rows if pieces[int(r["index"])].size == size and r["retransmits"] == "0"]
        inside, trip = ([int(r[name]) for r in own] for name in ("text_to_last_id_ns", "ns"))
        records = [int(ns) for r in own for ns in r["wire_to_ring_ns"].split()]
        found[size] = {
            "wire_to_ring_us": percentiles(records),
            "whole_text_us": percentiles(inside),
            "round_trip_us": percentiles(trip),
            "inside": round(median(i / t for i, t in zip(inside, trip, strict=True)), 3),
        }
    return found


def run(args: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, Any]:
    say("cutting texts and computing the reference's ids")
    vocab, pieces, agreed = cut(len(SIZES) * args.requests + WARM_UP, SIZES)
    say(f"{len(pieces):,} texts; tiktoken agrees with tokenizers on {agreed:,} bytes")
    path, out = folder / "texts.bin", folder / "out.csv"
    slices.write(path, pieces)
    pair = stack.enter_context(Pair(vocab, folder, stack.enter_context(hugepages())))
    say(pair.ready)
    os.sched_setaffinity(0, {CLIENT_CPU})
    code, report, said = pair.load(path, f"--warmup={WARM_UP}", f"--out={out}", timeout_s=LIMIT_S)
    with Telemetry(pair.prefix) as telemetry:
        histogram = telemetry.histogram("wire_to_ring")
    with out.open() as file:
        rows = list(csv.DictReader(file))
    ended = pair.stop()
    return {
        "ok": code == ended == 0,
        "complaints": [said] if said else [],
        "sizes": sizes(rows, pieces),
        "histogram": {
            "records": histogram.count,
            "p50_us": round((histogram.percentile(0.50) or 0) * 1e6, 2),
            "p99_us": round((histogram.percentile(0.99) or 0) * 1e6, 2),
        },
        "load": report,
        "huge_pages": pair.huge,
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"  {'tokens':>6}  {'':14}{'p50 us':>10}{'p99 us':>10}{'samples':>10}"]
    for size, found in result["sizes"].items():
        for name in ("wire_to_ring", "whole_text", "round_trip"):
            one = found[f"{name}_us"]
            lines.append(
                f"  {size:>6}  {name.replace('_', ' '):14}{one['p50']:>10.1f}{one['p99']:>10.1f}"
                f"{one['samples']:>10,}"
            )
        lines.append(f"  {size:>6}  {'inside':14}{found['inside']:>10.0%}")
    own = result["histogram"]
    lines.append(
        f"the appliance's own histogram, both sizes and the warm-up: p50 {own['p50_us']:.1f} us, "
        f"p99 {own['p99_us']:.1f} us, {own['records']:,} records"
    )
    return "\n".join([*lines, *result["complaints"]])


def main() -> int:
    parser = command.parser("wire-to-ring", DESCRIPTION)
    parser.add_argument(
        "--requests", type=command.number(100, 2500), default=2000, help="of each size [2000]"
    )
    return command.main(parser.parse_args(), "wire-to-ring", run, table)


if __name__ == "__main__":
    sys.exit(main())
