# SPDX-License-Identifier: BSD-3-Clause
"""Many requests over a lossy network: every id right, each text once, memory flat."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.appliance import MEMIF_IP, Appliance, on_memif
from bench.lab import memory
from bench.lab.cpus import WORKER_CPU, need_two_cpus, on_client_cpu
from bench.lab.hugepages import hugepages
from bench.load import load_memif
from bench.programs import DPDK_TOKD, TOKD_LOAD_DPDK
from bench.task import Context, Number, Report, Value, need
from bench.texts import mix, slices
from dpdk_tokd.ops.telemetry import Telemetry

# Requests after which memory is compared, at most half of all. By then every table has been used
# once, and half of the finished texts lack their last acknowledgement, which is the appliance's
# limit. The side store holds their ids.
WARM_UP = 150_000
CLIENTS = 64
# Wraps about every 1,600 requests, while the table has 4,096 texts: ids that are not acknowledged
# by then, because a packet was lost, go to the side store.
SMALL_RING = ("--ring-size", "1M")
SAMPLE_S = 0.02
SLOWEST = 500  # requests per second; slower means that something hangs
LEAST_SAMPLES = 10
IDLE_S = 12.0  # beyond the appliance's --done-timeout
HELP = (
    "dpdk-tokd and tokd-load-dpdk over shared memory (net_memif), one core each. The generator keeps "
    f"{memory.IN_FLIGHT} requests of mixed lengths in flight from {CLIENTS} UDP ports, and drops, "
    "reorders and duplicates packets in both directions. It compares all ids of every answer with "
    "Hugging Face tokenizers, and reads the token ring as a registered reader: each text must be there "
    "once, whole and right. A trial fails if the appliance's memory is higher in the last tenth than "
    "in the first, or if anything is in use after all texts have expired. Repeat n uses seed n."
)
PARAMETERS = {
    "requests": Number(20_000, 1 << 31, "of each trial"),
    "texts": Number(100, 50_000, "different ones"),
    **{
        name: Number(0, 100, "% of the packets in each direction", whole=False)
        for name in ("loss", "reorder", "duplicate")
    },
}
METRICS = {
    "rate": Value("requests/s", better="higher"),
    "ids": Value("M", better="neither"),
    **{
        figure.name: Value(figure.unit, help="last tenth of the run minus the first")
        for figure in memory.FIGURES
    },
}
COUNTS = {
    "lost": "packets dropped, both directions",
    "reordered": "packets reordered",
    "duplicated": "packets duplicated",
    "sent-again": "packets of text sent again",
}
CHECKS_IDS = True
WAYS = ("to_appliance", "from_appliance")


@dataclass(frozen=True)
class State:
    folder: Path
    vocab: Path
    sent: dict[int, Path]  # files of texts, by their number
    huge: bool


@dataclass(frozen=True)
class Raw:
    load: dict[str, Any]  # tokd-load-dpdk's report
    held: dict[str, dict[str, Any]]  # memory, by figure
    samples: int
    exit_code: int


def prepare(context: Context) -> State:
    need_two_cpus()
    need(DPDK_TOKD, TOKD_LOAD_DPDK)
    sent = {}
    for count in {test["texts"] for test in context.tests}:
        vocab, pieces, agreed = mix.cut(count, mix.MIX)
        context.log(f"soak: tiktoken agrees with tokenizers on {agreed:,} bytes")
        sent[count] = context.folder / f"{count}.bin"
        slices.write(sent[count], pieces)
    return State(context.folder, vocab, sent, context.stack.enter_context(hugepages()))


def _idle(telemetry: Telemetry, before: dict[str, int]) -> None:
    """Raises OSError if more is in use after all texts have expired than before the first."""
    deadline = time.monotonic() + IDLE_S
    while True:
        now = memory.sample(telemetry)
        left = {name: now[name] - before[name] for name in memory.OF_WORKER}
        if not any(left.values()):
            return
        if time.monotonic() > deadline:
            raise OSError(f"still in use {IDLE_S:.0f} s after the last text: {left}")
        time.sleep(0.2)


def run(state: State, parameters: dict[str, Any], repeat: int) -> Raw:
    requests = parameters["requests"]
    options = [f"--{name}={parameters[name]}%" for name in ("loss", "reorder", "duplicate")]
    options += [f"--clients={CLIENTS}", f"--in-flight={memory.IN_FLIGHT // CLIENTS}"]
    options += [f"--requests={requests}", f"--seed={repeat}"]
    with (
        on_client_cpu(),
        Appliance(
            on_memif(state.folder), MEMIF_IP, state.vocab, state.folder, [WORKER_CPU], state.huge,
            *SMALL_RING,
        ) as appliance,
        Telemetry(folder=appliance.telemetry) as telemetry,
    ):  # fmt: skip
        before = memory.sample(telemetry)
        with memory.Sampler(appliance.telemetry, SAMPLE_S) as sampler:
            load, _ = load_memif(
                appliance, state.sent[parameters["texts"]], *options,
                timeout_s=60 + requests / SLOWEST,
            )  # fmt: skip
        _idle(telemetry, before)
        exit_code = appliance.stop()
    warm_up = min(WARM_UP, requests // 2)
    during = [s for s in sampler.samples if warm_up <= s["done"] < requests]
    if len(during) < LEAST_SAMPLES:
        raise OSError(f"only {len(during)} samples of memory: raise `requests`")
    return Raw(load, memory.compare(during), len(during), exit_code)


def report(_state: State, _parameters: dict[str, Any], raw: Raw) -> Report:
    grows = {name: one for name, one in raw.held.items() if not one["flat"]}
    if grows:
        raise OSError(f"memory grows: {grows}")
    if raw.exit_code != 0:
        raise OSError(f"dpdk-tokd ended with {raw.exit_code}")
    kinds = {name: sum(raw.load[way][name] for way in WAYS) for name in list(COUNTS)[:3]}
    return Report(
        values={
            "rate": raw.load["requests"] / raw.load["seconds"],
            "ids": raw.load["ids"] / 1e6,
            **{name: one["last_tenth"] - one["first_tenth"] for name, one in raw.held.items()},
        },
        counts=kinds | {"sent-again": raw.load["retransmits"]},
        ids_checked=raw.load["ids"] + raw.load["ring"]["ids"],
        notes=[f"{raw.samples:,} samples of memory"],
    )
