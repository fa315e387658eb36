# SPDX-License-Identifier: BSD-3-Clause
"""Boxes that come along, cut down to seconds and run by tools/sweep: every row is there or says
why not, and says what its name says."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench.lab.machine import bluefield_here, gpu_here
from ended import ended

ROOT = Path(__file__).resolve().parents[3]
CPUS = len(os.sched_getaffinity(0))
Rows = list[dict[str, Any]]
# By task; what is not there stays as the box has it.
CUT = {
    "request-latency": {"neighbour": ["none"], "tokens": [512], "requests": [20]},
    "client-to-ids": {"corpus": ["english"], "tokens": [512], "requests": [20]},
    "replay": {"bytes": [20_000]},
    "queues": {"characters": [100_000]},
    "stages": {"requests": [100]},
    "pipeline": {"requests": [20]},
    "answers": {"neighbour": ["none"], "requests": [20]},
    "train": {"vocab-size": [2000], "megabytes": [1]},
    "open-loop": {"texts": [20], "seconds": [0.5], "load": [40, 80], "limit": [30_000]},
}
AT_TWENTY = dict.fromkeys(("p90", "p99", "p99.9", "p99.99"), "p50")  # samples


def told(metric: str) -> str:
    """What can be told of it with so few samples."""
    return " ".join(AT_TWENTY.get(word, word) for word in metric.split(" "))


def cut(name: str, only: str, more: dict[str, dict[str, list[Any]]]) -> dict[str, Any]:
    """`only`: of its tasks; "": all."""
    box = json.loads((ROOT / "boxes" / f"{name}.json").read_text())
    box["tests"] = [test for test in box["tests"] if only in ("", test["task"])]
    box["repeats"] = {"full": 1, "quick": 1}
    for test in box["tests"]:
        own = CUT[test["task"]] | more.get(test["task"], {})
        test["parameters"] |= {k: v for k, v in own.items() if k in test["parameters"]}
        test.pop("quick", None)
        test["metrics"] = list(dict.fromkeys(map(told, test["metrics"])))
        if "knee" in test:
            knee = test["knee"]
            for key in ("least", "generator"):
                knee[key] = {told(metric): value for metric, value in knee[key].items()}
            knee["metric"] = told(knee["metric"])
    return box


@pytest.fixture
def swept(tmp_path) -> Callable[..., tuple[dict[str, Any], list[Rows]]]:
    """Its result, and the rows of each table."""
    sweep = ROOT / "tools" / "sweep"
    if not (ROOT / "build" / "app" / "dpdk-tokd").is_file():
        pytest.skip("build/app/dpdk-tokd is not built: run tools/setup")

    def swept(
        name: str, only: str = "", **more: dict[str, list[Any]]
    ) -> tuple[dict[str, Any], list[Rows]]:
        box, out = tmp_path / "box.json", tmp_path / "out"
        given = {task.replace("_", "-"): values for task, values in more.items()}
        box.write_text(json.dumps(cut(name, only, given)))
        done = ended(sweep, box, "--out", out, timeout=900)
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


def check_ratio(row: dict[str, Any], rows: Rows, metric: str, baseline: dict[str, Any]) -> None:
    """To that row which differs in the baseline alone."""
    (base,) = (r for r in rows if r["parameters"] == row["parameters"] | baseline)
    times = median(row, metric) / median(base, metric)
    assert row["cells"][metric]["ratio"]["median"] == pytest.approx(times)


@needs_network
def test_ablations(swept):
    _, (host, copies, paths) = swept("ablations")
    rows = by(host, "without")
    for name in ("nothing", "affinity", "prompt-ids", "streaming", "everything"):
        assert rows[name]["state"] == "done", rows[name]["reason"]
        # By the worker's clock, and in it what the client's clock has.
        assert 0 < median(rows[name], "inside p50") < median(rows[name], "round-trip p50")
        # The same texts, of which some are a token longer.
        assert rows[name]["ids_checked"] == rows["nothing"]["ids_checked"]
        assert rows[name]["ids_checked"] == pytest.approx(20 * 512, abs=20)
    rows = by(copies, "without")
    assert median(rows["zero-copy"], "copied") == 100
    assert median(rows["nothing"], "copied") < 50
    rows = by(paths, "system")
    assert {row["state"] for row in rows.values()} == {"done"}
    said = {name: " ".join(row["notes"]) for name, row in rows.items()}
    assert "net_af_packet" in said["tokd-af-packet"]
    assert "spins" in said["libtok-udp"] and "sleeps" in said["libtok-udp-sleep"]


@needs_network
def test_answers(swept):
    _, (rows,) = swept("answers", answers={"streams": [1, 3]})
    for row in rows:
        assert row["ids_checked"] == 20 * 64
        assert min(median(row, f"{name} p50") for name in ("first-id", "per-id")) > 0


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
            assert row["ids_checked"] == 20 * 512
            if kind != "none":
                check_ratio(row, clients, "round-trip p50", {"neighbour": "none"})
    assert {row["state"] for row in inside} == {"done"}


def test_workers(swept):
    _, (rows, queues) = swept("workers")
    for workers, row in by(rows, "workers").items():
        if workers > CPUS:
            assert row["state"] == "missing"
            assert (
                row["reason"] == f"{workers} workers need {workers} CPUs, this machine has {CPUS}"
            )
        else:
            if workers > 1:
                check_ratio(row, rows, "throughput", {"workers": 1})
    ids = {n: row["ids_checked"] / n for n, row in by(rows, "workers").items() if n <= CPUS}
    assert len(set(ids.values())) == 1
    for row in queues:
        if os.geteuid() == 0 and CPUS > 1:
            assert row["state"] == "done" and median(row, "throughput") > 0
    assert len({row["ids_checked"] for row in queues}) == 1


@needs_network
@pytest.mark.parametrize(("name", "rows"), [("wire-to-ring", 2), ("train", 4)])
def test_small_boxes(swept, name, rows):
    _, (found,) = swept(name)
    assert [row["state"] for row in found] == ["done"] * rows
    if name == "wire-to-ring":
        assert all(0 < median(row, "share") < 100 for row in found)


@needs_network
def test_pintok(swept):
    systems = ["tokd", "rust-udp", "python-udp"]
    result, (rows,) = swept("pintok", client_to_ids={"system": systems})
    found = by(rows, "system")
    assert {row["state"] for row in rows} == {"done"} and list(found) == systems
    for row in rows:
        assert row["ids_checked"] == 20 * 512
        if row["parameters"]["system"] != "rust-udp":
            check_ratio(row, rows, "round-trip p50", {"system": "rust-udp"})
    assert "one worker" in " ".join(found["tokd"]["notes"])
    beside = result["tables"][0]["published"]["systems"]
    for system, theirs in {"tokd": (216, 846), "python-udp": (2596, 846)}.items():
        (cell,) = beside[system]
        here = median(found["rust-udp"], "round-trip p50") / median(found[system], "round-trip p50")
        assert (cell["metric"], cell["theirs"], cell["their_base"]) == ("round-trip p50", *theirs)
        assert cell["times"]["median"] == pytest.approx(here)


@needs_network
def test_nthu(swept):
    result, (rows,) = swept("nthu", only="pipeline")
    has_gpu, by_pipeline = gpu_here(), by(rows, "pipeline")
    assert by_pipeline["cpu"]["state"] == "done"
    found = result["tables"][0]["stage_table"]
    stages = {
        (r["parameters"]["pipeline"], r["stage"]): r
        for r in found["rows"]
        if r["parameters"]["vocabulary"] == "gpt2"
    }
    # Their figures, each beside the same stage of ours or the reason why there is none.
    for pipeline, tokenize, total in (("dpu", 531, 1588), ("cpu", 332, 1389), ("gpu", 9235, 10292)):
        assert stages[pipeline, "tokenize"]["theirs"][0] == tokenize
        assert stages[pipeline, "total"]["theirs"][0] == total
    if not bluefield_here():
        assert stages["dpu", "total"]["cells"]["p50"] == {"refused": "not run: no BlueField"}
    cpu = {stage: row["cells"]["p50"]["median"]
           for (pipeline, stage), row in stages.items()
           if pipeline == "cpu" and "median" in row["cells"]["p50"]}  # fmt: skip
    assert 0 < cpu["tokenize"] < cpu["taken-to-published"] * 1.1 and cpu["total"] > 0
    assert all(row["clock"] for (pipeline, _), row in stages.items() if pipeline == "cpu")
    # Without a GPU no stage of the pipeline gpu that is the device's has a figure.
    for name in ("visible-to-written", "posted-to-visible", "tokenize", "total"):
        assert has_gpu or "not run" in stages["gpu", name]["cells"]["p50"]["refused"]


@needs_network
def test_load_latency(swept):
    systems = ["tokd", "rust-udp"]
    result, tables = swept("load-latency", open_loop={"system": systems})
    for rows, table in zip(tables, result["tables"], strict=True):
        assert {row["state"] for row in rows} == {"done"}
        lines = [line["parameters"] for line in table["knee"]["lines"]]
        kinds = {tuple(row["parameters"][name] for name in ("arrivals", "system")) for row in rows}
        assert len(lines) == len(kinds) == (4 if table is result["tables"][0] else 2)
    per_second, of_capacity = tables
    for row in per_second:
        # By a schedule: neither the system nor the arrivals change how many are sent.
        assert row["ids_checked"] == 128 * row["parameters"]["load"] / 2
    for row in of_capacity:
        (capacity,) = re.findall(r"100% are ([\d,]+) requests/s", " ".join(row["notes"]))
        rate = int(capacity.replace(",", "")) * row["parameters"]["load"] / 100
        answered, counts = row["ids_checked"] / 128, row["counts"]
        sent = answered + counts["not-sent"] + counts["turned-away"]
        assert sent == pytest.approx(rate / 2, abs=2)
