# SPDX-License-Identifier: BSD-3-Clause
"""What the telemetry commands answer, on texts replayed from a file."""

import re
from pathlib import Path

import pytest
from bench.programs import ROOT
from dpdk_tokd.ops.telemetry import STAGES

TEXTS = 50
OF_OTHERS = STAGES[-4:]  # nothing is decoded, and there is no sink


def all_help(appliance) -> dict[str, str]:
    names: dict[str, str] = {}
    while page := appliance.telemetry(f"/tokd/help,{len(names)}"):
        assert not names.keys() & page.keys()
        names |= page
    return names


def test_every_counter_is_there_at_zero_and_explained(start, gpt2_file: Path) -> None:
    appliance = start("--vocab", str(gpt2_file), eal=["--vdev=net_ring0"]).ready()
    counters = appliance.telemetry("/tokd/counters")
    assert {n for n, v in counters.items() if v} <= {"cycles_idle"}
    told = all_help(appliance)
    assert set(told) == set(counters) | set(STAGES)
    assert appliance.telemetry("/tokd/help,drop_arp") == {"drop_arp": told["drop_arp"]}
    for bad in ("drop_", "-1", "1x", "99999999999999999999"):
        assert appliance.telemetry(f"/tokd/help,{bad}") is None
    for command in appliance.telemetry("/"):
        if command.startswith("/tokd/"):
            assert len(appliance.telemetry(f"/help,{command}")[command]) > 10


def test_the_document_has_every_command_counter_and_stage(start, gpt2_file: Path) -> None:
    appliance = start("--vocab", str(gpt2_file)).ready()
    document = (ROOT / "doc/reference/telemetry.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|$", document, re.MULTILINE))
    told = all_help(appliance)
    for name, text in told.items():
        assert rows.get(name) == text, f"doc/reference/telemetry.md wants: | `{name}` | {text} |"
    counters = document.partition("\n## Counters\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", counters, re.MULTILINE)) <= told.keys()
    for command in appliance.telemetry("/"):
        if command.startswith("/tokd/"):
            assert f"`{command}" in document


def test_histograms_count_what_the_counters_count(start_replay, gpt2_file: Path) -> None:
    appliance = start_replay(TEXTS)
    appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["streams_done"] == TEXTS)
    all_stages = appliance.telemetry("/tokd/histograms")
    assert tuple(all_stages) == STAGES
    assert [all_stages[stage]["count"] for stage in OF_OTHERS] == [0] * len(OF_OTHERS)
    for stage in STAGES[: -len(OF_OTHERS)]:
        summary = all_stages[stage]
        assert summary["count"] == TEXTS, stage
        limits = [summary[k] for k in ("p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns")]
        assert limits == sorted(limits) and 0 < limits[-1] < 60e9, stage
        assert limits[0] * TEXTS / 2 <= summary["sum_ns"] * 1.1 <= limits[-1] * TEXTS * 1.1
        full = appliance.telemetry(f"/tokd/histograms,{stage}")
        assert len(full["buckets"]) == 512 and sum(full["buckets"]) == TEXTS
        assert full.items() >= summary.items()
        assert appliance.telemetry(f"/tokd/histograms,{stage},0") == full
    assert appliance.telemetry("/tokd/histograms,0") == all_stages
    assert all_stages["tokenizer"]["max_ns"] <= all_stages["text_to_last_id"]["max_ns"]
    for bad in ("1", "-1", "wire", "wire_to_ring,1", "wire_to_ring,x", "tokenizer_", "0,tokenizer"):
        assert appliance.telemetry(f"/tokd/histograms,{bad}") is None, bad
    assert appliance.stop() == 0
    assert re.search(
        rf"wire_to_ring +p50 \d+ ns, p99 \d+ ns, max \d+ ns of {TEXTS} ", appliance.said()
    )


def test_workers_time_is_told_in_cycles_us_and_shares(start_replay) -> None:
    appliance = start_replay(TEXTS)
    appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["streams_done"] == TEXTS)
    worker = appliance.telemetry("/tokd/workers")["0"]
    info = appliance.telemetry("/tokd/info")
    assert (info["driver"], worker["queue"]) == ("net_pcap", 0)
    hz = info["tsc_hz"]
    kinds = ("busy", "backpressured", "idle")
    for kind in kinds:
        assert worker[f"{kind}_us"] == pytest.approx(worker[kind] * 1e6 / hz, abs=1)
    assert sum(worker[f"{kind}_permille"] for kind in kinds) == pytest.approx(1000, abs=2)
    assert worker["busy"] > 0 and worker["idle"] > 0
    assert worker["ring_bytes"] == 16 << 20
    for bad in ("1", "-1", "x"):
        assert appliance.telemetry(f"/tokd/workers,{bad}") is None


def test_what_a_worker_holds_is_told_with_its_bound(start_replay) -> None:
    appliance = start_replay(TEXTS)
    appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["streams_done"] == TEXTS)
    worker = appliance.telemetry("/tokd/workers")["0"]
    assert worker["open_streams"] == worker["held_mbufs"] == worker["side_used"] == 0
    assert worker["streams"] == TEXTS  # finished, and kept for --done-timeout
    assert worker["mbufs"] == 8192 and 0 <= worker["mbufs_in_use"] < 8192
    assert worker["side_bytes"] == 4 << 20


def test_a_long_option_is_seen_to_be_shortened(start, gpt2_file: Path, tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 5)
    folder.mkdir(parents=True)
    (folder / gpt2_file.name).symlink_to(gpt2_file)
    appliance = start("--vocab", str(folder / gpt2_file.name)).ready()
    shown = appliance.telemetry("/tokd/config")["vocab"]
    assert len(shown) == 127 and shown.endswith("...")
    assert str(folder).startswith(shown.removesuffix("..."))
