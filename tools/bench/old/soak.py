# SPDX-License-Identifier: BSD-3-Clause
"""Many requests over a wire with faults: every id right, each text once, and memory flat."""

import argparse
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.lab import memory
from bench.lab.hugepages import hugepages
from bench.old import command
from bench.pair import CLIENT_CPU, LoadFailed, Pair
from bench.say import say
from bench.texts import slices
from bench.texts.mix import MIX, cut
from dpdk_tokd.ops.telemetry import Telemetry

# Requests after which memory is compared, but at most half of all. Every table has been used once
# by then, and half of the texts kept are such whose last acknowledgement was lost: that is the
# appliance's bound. Their ids are what the side store holds.
WARM_UP = 150_000
LEAST = 20_000
CLIENTS = 64
# Goes round every 1,600 requests or so, while the table has 4,096 texts: what clients have not
# acknowledged then, for want of a lost packet, goes to the side store.
SMALL_RING = ("--ring-size", "1M")
SAMPLE_S = 0.02
SLOWEST = 500  # requests a second; slower than that, something hangs
LEAST_SAMPLES = 10
IDLE_S = 12.0  # beyond the appliance's --done-timeout
DESCRIPTION = """\
dpdk-tokd and tokd-load-dpdk over net_memif, each pinned to a core. The generator keeps requests of
mixed lengths in flight, from 64 UDP ports, and loses, reorders and doubles packets of both
directions. It compares all ids of every answer with those of Hugging Face tokenizers, and reads the
token ring as a registered reader, where each text must stand once, whole and right. Meanwhile the
memory of the appliance is sampled: the last tenth of the run must not need more than the first."""


def idle(telemetry: Telemetry, before: dict[str, int]) -> dict[str, int]:
    """What is still in use when all texts are forgotten, beyond what was before any."""
    deadline = time.monotonic() + IDLE_S
    while True:
        now = memory.sample(telemetry)
        left = {name: now[name] - before[name] for name in memory.OF_WORKER}
        if not any(left.values()) or time.monotonic() > deadline:
            return left
        time.sleep(0.2)


def run(args: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, Any]:
    say("cutting texts and computing the reference's ids")
    vocab, pieces, agreed = cut(args.texts, MIX)
    say(f"{len(pieces):,} texts; tiktoken agrees with tokenizers on {agreed:,} bytes")
    path = folder / "texts.bin"
    slices.write(path, pieces)
    huge = stack.enter_context(hugepages())
    pair = stack.enter_context(Pair(vocab, folder, huge, *SMALL_RING))
    say(pair.ready)
    os.sched_setaffinity(0, {CLIENT_CPU})
    faults = [f"--loss={args.loss}", f"--reorder={args.reorder}", f"--duplicate={args.duplicate}"]
    options = [*faults, f"--clients={CLIENTS}", f"--in-flight={memory.IN_FLIGHT // CLIENTS}"]
    telemetry = stack.enter_context(Telemetry(pair.prefix))
    before = memory.sample(telemetry)
    say(f"{args.requests:,} requests, {' '.join(faults)}")
    with memory.Sampler(pair.prefix, SAMPLE_S) as sampler:
        code, report, said = pair.load(
            path, *options, f"--requests={args.requests}", f"--seed={args.seed}",
            timeout_s=60 + args.requests / SLOWEST,
        )  # fmt: skip
    say(f"idle, until the appliance has forgotten all texts: at most {IDLE_S:.0f} s")
    left = idle(telemetry, before)
    warm_up = min(WARM_UP, args.requests // 2)
    during = [s for s in sampler.samples if warm_up <= s["done"] < args.requests]
    if len(during) < LEAST_SAMPLES:
        raise LoadFailed(f"{len(during)} samples while it ran: give it more --requests")
    held = memory.compare(during)
    counters = telemetry.counters()
    ended = pair.stop()
    return {
        "ok": code == ended == 0
        and not any(left.values())
        and all(one["flat"] for one in held.values()),
        "load": report,
        "complaints": [said] if said else [],
        "memory": held,
        "samples": len(during),
        "warm_up": warm_up,
        "left_when_idle": left,
        "counters": {name: n for name, n in counters.items() if n},
        "exit_code": ended,
        "texts": len(pieces),
        "huge_pages": pair.huge,
    }


def table(result: dict[str, Any]) -> str:
    load, ring = result["load"], result["load"]["ring"]
    lines = [
        f"{load['right']:,} of {load['requests']:,} answers right, {load['ids']:,} ids, in "
        f"{load['seconds']:.1f} s; {load['retransmits']:,} packets of text sent again, "
        f"{load['asks']:,} questions asked",
    ]
    for name in ("to_appliance", "from_appliance"):
        way = load[name]
        lines.append(
            f"{name.replace('_', ' ')}: {way['packets']:,} packets, {way['lost']:,} lost, "
            f"{way['reordered']:,} reordered, {way['duplicated']:,} doubled"
        )
    lines += [
        f"token ring: {ring['texts']:,} texts in {ring['records']:,} records, {ring['ids']:,} ids; "
        f"lost {ring['lost']}, wrong {ring['wrong']}, doubled {ring['doubled']}",
        f"{result['samples']:,} samples after the first {result['warm_up']:,} requests; mean over "
        "the first and over the last tenth of them:",
        f"  {'':14}{'first tenth':>14}{'last tenth':>14}{'most':>14}{'may rise by':>14}",
    ]
    for name, one in result["memory"].items():
        lines.append(
            f"  {name:14}{one['first_tenth']:>14,}{one['last_tenth']:>14,}{one['most']:>14,}"
            f"{one['slack']:>14,}  {one['unit']}{'' if one['flat'] else '  GROWS'}"
        )
    left = ", ".join(f"{name} {n}" for name, n in result["left_when_idle"].items() if n)
    lines.append(f"in use when idle, beyond what was at the start: {left or 'nothing'}")
    return "\n".join([*lines, *result["complaints"]])


def main() -> int:
    parser = command.parser("soak", DESCRIPTION)
    parser.add_argument(
        "--requests", type=command.number(LEAST, 1 << 31), default=1_000_000, help="[1000000]"
    )
    parser.add_argument(
        "--texts", type=command.number(100, 50_000), default=20_000, help="different ones [20000]"
    )
    for name, share in (("loss", "2%"), ("reorder", "2%"), ("duplicate", "1%")):
        parser.add_argument(
            f"--{name}", type=command.share, default=share, help=f"[{share}%]", metavar="SHARE"
        )
    parser.add_argument(
        "--seed", type=command.number(0, 1 << 63), default=1, help="of the dice [1]"
    )
    return command.main(parser.parse_args(), "soak", run, table)


if __name__ == "__main__":
    sys.exit(main())
