# SPDX-License-Identifier: BSD-3-Clause
"""tools/demo --sink gpu: text in, embeddings out, by tokd-gpu on the CPU."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dpdk_tokd.ops.telemetry import Histogram, Telemetry

from bench.appliance import Consumer, best_on_veth
from bench.demo import report
from bench.demo.measure import percentiles
from bench.lab.hugepages import hugepages
from bench.lab.net import inside, namespace, veth
from bench.log import log
from bench.process import NotReady
from bench.texts import slices

TABLE = "random:50257x768:1"  # as many rows as GPT-2's, as long
OUT_BYTES = "128M"  # the longest text's rows, many times
RUN_S = 300
STAGES = (
    ("posted to embedded, as the worker reads it", "posted_to_embedded_us", "slots"),
    ("visible to embedded", "embed_us", "pieces"),
    ("embedded to handed out", "hand_out_us", "pieces"),
)


def _percentiles(times: Histogram) -> dict[str, float | int]:
    """In us, as measure.percentiles; upper ends of buckets at most 6% wide."""
    share = {"p50": 0.5, "p99": 0.99}
    found = {name: round((times.percentile(part) or 0.0) * 1e6, 2) for name, part in share.items()}
    return found | {"samples": times.count}


def show(
    pieces: list[slices.Slice], vocab: Path, folder: Path, stack: ExitStack, cpus: tuple[int, int]
) -> dict[str, Any]:
    """`cpus`: the client's and the worker's; the consumer's threads share both."""
    client_cpu, server_cpu = cpus
    client = stack.enter_context(namespace("client"))
    link = stack.enter_context(veth(0, client, None))
    huge = stack.enter_context(hugepages())
    options = ["--device", "cpu", "--producers", "1", "--out-bytes", OUT_BYTES]
    agent = stack.enter_context(Consumer(folder, TABLE, *options))
    log(agent.ready)
    sink = ["--sink", f"gpu=shm:{agent.socket}"]
    appliance = stack.enter_context(best_on_veth(link, vocab, folder, server_cpu, huge, sink))
    log(appliance.ready)
    sent, result = folder / "embedded.bin", folder / "embedded.json"
    slices.write(sent, pieces)
    command = [sys.executable, "-m", "bench.demo.embeddings", link.server, str(link.port)]
    command += [str(agent.subscribers), str(sent), TABLE, str(result), str(client_cpu)]
    run = subprocess.run(
        inside(client, *command), capture_output=True, text=True, check=False, timeout=RUN_S
    )
    if run.returncode != 0:
        raise NotReady(f"the subscriber failed:\n{run.stderr}\n{agent.tail()}\n{appliance.tail()}")
    with Telemetry(folder=appliance.telemetry) as telemetry:
        posted = _percentiles(telemetry.histogram("posted_to_done"))
    log(f"dpdk-tokd ended with {appliance.stop()}, tokd-gpu with {agent.stop()}")
    found = json.loads(result.read_text())
    sizes: dict[str, dict[str, list[int]]] = {"ids_us": {}, "whole_us": {}}
    for piece, ids_ns, whole_ns in zip(pieces, found["ids_ns"], found["whole_ns"], strict=True):
        sizes["ids_us"].setdefault(piece.size, []).append(ids_ns)
        sizes["whole_us"].setdefault(piece.size, []).append(whole_ns)
    return {
        "ids_equal": found["wrong_ids"] == 0,
        "embeddings_equal": found["wrong_rows"] == 0,
        "requests": len(pieces),
        "rows": found["rows"],
        "posted_to_embedded_us": posted,
        "embed_us": percentiles(found["embed_ns"]),
        "hand_out_us": percentiles(found["hand_out_ns"]),
        **{name: {s: percentiles(ns) for s, ns in by.items()} for name, by in sizes.items()},
        "device": "cpu",
        "table": TABLE,
        "driver": appliance.driver,
        "huge_pages": appliance.huge_pages,
        "machine": report.machine(),
    }


def table(result: dict[str, Any]) -> str:
    lines = ["us from a Python client's call, p50 (p99): to all ids, to all embeddings"]
    for size, ids in result["ids_us"].items():
        whole = result["whole_us"][size]
        lines.append(
            f"  {size:>6}  {ids['p50']:>10,.1f} ({ids['p99']:,.1f})"
            f"  {whole['p50']:>10,.1f} ({whole['p99']:,.1f})  of {ids['samples']}"
        )
    for name, key, what in STAGES:
        found = result[key]
        lines.append(
            f"  {name}: {found['p50']:,.1f} ({found['p99']:,.1f}), {found['samples']} {what}"
        )
    return "\n".join(lines)
