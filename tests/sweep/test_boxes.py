# SPDX-License-Identifier: BSD-3-Clause
"""Boxes that come along, cut down to seconds and run by tools/sweep: every row is there or says
why not, and says what its name says."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")

ROOT = Path(__file__).resolve().parents[2]
CPUS = len(os.sched_getaffinity(0))
Rows = list[dict[str, Any]]
# By task; what is not there stays as the box has it.
CUT = {
    "request-latency": {"neighbour": ["none"], "tokens": [512], "requests": [20]},
    "client-to-ids": {"corpus": ["english"], "tokens": [512], "requests": [20]},
    "replay": {"bytes": [20_000]},
}
AT_TWENTY = {"p99": "p50", "p90": "p50"}  # samples


def cut(name: str, more: dict[str, dict[str, list[Any]]]) -> dict[str, Any]:
    box = json.loads((ROOT / "boxes" / f"{name}.json").read_text())
    box["repeats"] = {"full": 1, "quick": 1}
    for test in box["tests"]:
        own = CUT[test["task"]] | more.get(test["task"], {})
        test["parameters"] |= {k: v for k, v in own.items() if k in test["parameters"]}
        test.pop("quick", None)
        told = [m.split(" ") for m in test["metrics"]]
        names = [" ".join([m[0], *(AT_TWENTY.get(w, w) for w in m[1:])]) for m in told]
        test["metrics"] = list(dict.fromkeys(names))
    return box


@pytest.fixture
def swept(tmp_path) -> Callable[..., tuple[dict[str, Any], list[Rows]]]:
    """Its result, and the rows of each table."""
    sweep = ROOT / "tools" / "sweep"
    if not (ROOT / "build" / "app" / "dpdk-tokd").is_file():
        pytest.skip("build/app/dpdk-tokd is not built: run tools/setup")

    def swept(name: str, **more: dict[str, list[Any]]) -> tuple[dict[str, Any], list[Rows]]:
        box, out = tmp_path / "box.json", tmp_path / "out"
        given = {task.replace("_", "-"): values for task, values in more.items()}
        box.write_text(json.dumps(cut(name, given)))
        done = subprocess.run(
            [sweep, box, "--out", out], capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads((out / "results.json").read_text())
        assert result["finished"] and result["ids_right"]
        tables = [table["rows"] for table in result["tables"]]
        for row in (row for rows in tables for row in rows):
            assert row["state"] == "done" or row["reason"], row["test"]
            if row["state"] == "done":
                assert row["ids_checked"] > 0 and row["counts"].get("no-answer", 0) == 0
        return result, tables

    return swept


needs_network = pytest.mark.skipif(
    os.geteuid() != 0 or CPUS < 2, reason="needs root, for network namespaces, and two CPUs"
)


def by(rows: Rows, parameter: str) -> dict[Any, dict[str, Any]]:
    return {row["parameters"][parameter]: row for row in rows}


def median(row: dict[str, Any], metric: str) -> float:
    return row["cells"][metric]["median"]


@needs_network
def test_ablations(swept):
    _, (host, copies, paths) = swept("ablations")
    rows = by(host, "without")
    for name in ("nothing", "affinity", "prompt-ids", "streaming", "everything"):
        assert rows[name]["state"] == "done", rows[name]["reason"]
        assert 0 < median(rows[name], "first-id p50") <= median(rows[name], "round-trip p50")
    rows = by(copies, "without")
    assert median(rows["zero-copy"], "copied") == 100
    assert median(rows["nothing"], "copied") < 50
    rows = by(paths, "system")
    assert {row["state"] for row in rows.values()} == {"done"}
    said = {name: " ".join(row["notes"]) for name, row in rows.items()}
    assert "net_af_packet" in said["tokd-af-packet"]
    assert "spins" in said["libtok-udp"] and "sleeps" in said["libtok-udp-sleep"]


@needs_network
def test_interference(swept):
    kinds = {"neighbour": ["none", "compress", "compile"]}
    _, (clients, inside) = swept(
        "interference",
        client_to_ids={"place": ["others", "server"], "system": ["tokd"]} | kinds,
        request_latency=kinds,
    )
    for row in clients:
        place, kind = row["parameters"]["place"], row["parameters"]["neighbour"]
        if place == "others" and kind != "none" and CPUS < 3:
            assert row["state"] == "missing" and "needs three" in row["reason"]
        else:
            assert row["state"] == "done", row["reason"]
            assert kind == "none" or row["cells"]["round-trip p50"]["ratio"]["median"] > 0
    assert {row["state"] for row in inside} == {"done"}


def test_workers(swept):
    _, (rows,) = swept("workers")
    for workers, row in by(rows, "workers").items():
        if workers > CPUS:
            assert row["state"] == "missing"
            assert row["reason"] == f"{workers} workers need {workers} CPUs, and there are {CPUS}"
        else:
            whole, each = median(row, "throughput"), median(row, "each")
            assert whole == pytest.approx(workers * each) and median(row, "slowest") <= each
    ids = {n: row["ids_checked"] / n for n, row in by(rows, "workers").items() if n <= CPUS}
    assert len(set(ids.values())) == 1
