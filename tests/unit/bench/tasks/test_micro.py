# SPDX-License-Identifier: BSD-3-Clause
"""The tasks micro-* and jitter, and tokd-micro: real runs, cut short, and what they refuse."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

micro = pytest.importorskip("bench.lab.micro", reason="run tools/setup")
from bench import task as tasks
from bench.lab.cpus import CPUS
from bench.programs import TOKD_MICRO
from bench.sweep import box as boxes
from bench.task import Context, Missing, WrongIds
from dpdk_tokd.fetch.packages import data_home
from ended import ended

ROOT = Path(__file__).resolve().parents[4]
MS = 20


@pytest.fixture(autouse=True)
def program() -> Path:
    if not TOKD_MICRO.is_file():
        pytest.skip(f"{TOKD_MICRO} is not built: run tools/setup")
    return TOKD_MICRO


def load(name: str) -> Any:
    return tasks.load(name).module


def measured(name: str, folder: Path, **parameters: Any) -> tasks.Report:
    """A trial, as tools/sweep makes one."""
    module = load(name)
    assert set(parameters) == set(module.PARAMETERS)
    context = Context(folder, True, [parameters], print)
    with context.stack:
        state = module.prepare(context)
        report = module.report(state, parameters, module.run(state, parameters))
    assert set(report.values) | set(report.samples) == set(module.METRICS)
    assert set(report.counts) == set(module.COUNTS)
    return report


def test_the_tsc_and_the_clock_are_read_together():
    first, then = micro.run("tsc", MS), micro.run("tsc", MS)
    ticks = then["tsc"] - first["tsc"]
    ns = then["monotonic_ns"] - first["monotonic_ns"]
    assert ns > 0 and 0.01 < ticks / ns < 10
    assert first["within_ns"] > 0


# ---- memory ----


def test_caches_are_read_as_the_kernel_tells_them(tmp_path):
    given = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"),
             ("3", "Unified", "105M")]  # fmt: skip
    for n, (level, kind, size) in enumerate(given):
        folder = tmp_path / f"index{n}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(value + "\n")
    sizes = micro.caches(tmp_path)
    assert sizes == {1: 48 << 10, 2: 2 << 20, 3: 105 << 20}
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9000000 kB\nMemAvailable:  4000000 kB\n")
    found = [micro.level_bytes(level, sizes, meminfo) for level in micro.LEVELS]
    assert found == [24 << 10, 1 << 20, 105 << 19, 420 << 20]
    meminfo.write_text("MemAvailable: 400000 kB\n")
    with pytest.raises(Missing, match="420 MiB, beyond all caches, are not free"):
        micro.level_bytes("dram", sizes, meminfo)
    for level, some, why in (
        ("l1", {}, "no cache sizes"), ("llc", {1: 1, 2: 2}, "L2 is the last"),
        ("l2", {1: 1, 3: 3}, "lists no L2"),
    ):  # fmt: skip
        with pytest.raises(Missing, match=why):
            micro.level_bytes(level, some, meminfo)


@pytest.mark.parametrize("size", [128, 4096, 3 << 20])
def test_memory_is_gone_through_as_often_as_is_said(size):
    raw = micro.run("chase", MS, bytes=size)  # which checks its own cycle
    assert raw["bytes"] == size and raw["ns"] >= MS * 1_000_000
    assert raw["times"] > 0 and raw["times"] % (size // 64) == 0  # whole turns of the cycle


def test_memory_that_the_machine_has_not_is_refused():
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") >= 128 << 30:
        pytest.skip("this machine has half of the most that tokd-micro takes")
    with pytest.raises(OSError, match="68719476736 bytes of memory: give half of this machine's"):
        micro.run("chase", MS, bytes=64 << 30)


@pytest.mark.parametrize(
    ("name", "parameters", "metric"),
    [
        ("micro-memory", {"level": "l1", "work": "read", "seconds": 1}, "bandwidth"),
        ("micro-memory", {"level": "l2", "work": "write", "seconds": 1}, "bandwidth"),
        ("micro-latency", {"level": "l1", "ms": MS}, "load"),
        ("micro-copy", {"source": "cache", "slot-kib": 4, "ms": MS}, "copy"),
    ],
)
def test_a_task_of_memory_reports(name, parameters, metric, tmp_path):
    if not micro.caches():
        pytest.skip("the kernel does not tell the sizes of caches")
    report = measured(name, tmp_path, **parameters)
    assert report.values[metric] > 0


# ---- text ----

TEXT = "It's 12 o'clock,  isn't\tit? Ünï-cödé 你好 \n\n  x" * 50


@pytest.mark.parametrize("how", ["pretokens", "loop", "memchr-blanks", "memchr-none"])
def test_text_is_scanned_to_the_same_places_as_python_finds(how, tmp_path, ranks_file):
    module = load("micro-scan")
    path = tmp_path / "text"
    path.write_text(TEXT, encoding="utf-8")
    found = module.places(how, TEXT.encode())
    assert (len(found) == 0) == (how == "memchr-none")
    right = len(found), int(found.sum())
    state = module.State(ranks_file, {("english", 1): path}, {("english", 1, how): right})
    parameters = {"corpus": "english", "how": how, "kib": 1, "ms": MS}
    raw = module.run(state, parameters)
    assert raw["bytes"] == len(TEXT.encode())
    assert module.report(state, parameters, raw).values["rate"] > 0
    wrong = module.State(ranks_file, state.files, {("english", 1, how): (right[0], right[1] + 1)})
    with pytest.raises(WrongIds, match="at other places"):
        module.report(wrong, parameters, raw)


def test_places_are_those_one_counts_by_hand():
    module = load("micro-scan")
    text = "ab 1é!".encode()
    assert module.places("loop", text).tolist() == [0, 2, 3, 4, 6]
    assert module.places("pretokens", text).tolist() == [0, 2, 4, 6]
    assert module.places("memchr-blanks", text).tolist() == [2]


@pytest.mark.slow
def test_a_corpus_is_scanned(tmp_path, ranks_file):
    if not (data_home() / "corpus" / "multi.txt").is_file():
        pytest.skip("no corpus: run tools/fetch-corpus")
    report = measured("micro-scan", tmp_path, corpus="multi", how="pretokens", kib=64, ms=MS)
    assert report.values["found"] > 0


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", "cut é".encode()[:-1]])
def test_text_that_is_not_utf8_is_refused(data, tmp_path, ranks_file):
    path = tmp_path / "text"
    path.write_bytes(data)
    with pytest.raises(OSError, match="give a file of text in UTF-8"):
        micro.run("scan", MS, how="pretokens", text=str(path), vocab=str(ranks_file))


# ---- datagrams ----


@pytest.mark.slow
@pytest.mark.parametrize("size", [14, 1376])
def test_datagrams_go_there_and_back(size, tmp_path):
    if shutil.which("sockperf") is None:
        pytest.skip("sockperf is not installed: apt-get install sockperf")
    if len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    report = measured("micro-udp", tmp_path, wire="loopback", bytes=size, seconds=1)
    assert len(report.samples["round-trip"]) > 100


def test_datagrams_times_are_those_of_the_log():
    # As sockperf 3.7 ping-pong --full-rtt --full-log wrote it, shortened.
    told = """------------------------------
sockperf: ========= Printing statistics for Server No: 0
sockperf: # dropped messages = 3; # duplicated messages = 0; # out-of-order messages = 0
sockperf: ---> percentile 50.000 =   12.037
------------------------------
packet, txTime(sec), rxTime(sec), rtt(usec)
0, 2.472149148, 2.472166714, 17.566
1, 2.472166744, 2.472183098, 16.354
------------------------------
"""
    assert load("micro-udp").parse_times(told) == ([17.566, 16.354], 3)
    assert load("micro-udp").parse_times("sockperf: no messages were received") == ([], 0)


# ---- jitter ----


def test_what_the_loop_loses_is_told(tmp_path):
    if shutil.which("oslat") is None:
        pytest.skip("oslat is not installed: apt-get install rt-tests")
    report = measured("jitter", tmp_path, without="nothing", neighbour="none", seconds=1)
    values = report.values
    assert 0 <= values["lost"] <= 100 and values["longest"] >= 1
    assert values["gaps-10us"] >= values["gaps-100us"] >= values["gaps-1ms"] >= 0


def test_passes_are_counted_by_how_long_they_took():
    module = load("jitter")
    passes = {"1": 1_000_000, "2": 10, "11": 4, "101": 2, "1024": 1}  # the last: 5 ms
    avg = (1_000_000 + 2 * 10 + 11 * 4 + 101 * 2 + 5000) / 1_000_017
    raw = {"histogram": passes, "avg": avg, "max": 5000, "duration": 2.0}
    values = module.report(None, {}, module.Raw(raw, 0.5, [])).values
    assert values["lost"] == pytest.approx(100 * 5266 / 2e6)
    assert [values[f"gaps-{n}"] for n in ("10us", "100us", "1ms")] == [3.5, 1.5, 0.5]
    assert (values["longest"], values["interrupts"]) == (5000, 0.5)


@pytest.mark.parametrize(
    ("name", "tool", "package"),
    [("jitter", "oslat", "rt-tests"), ("micro-udp", "sockperf", "sockperf"),
     ("micro-memory", "stress-ng", "stress-ng")],
)  # fmt: skip
def test_a_tool_that_is_not_installed_is_missing(name, tool, package, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks.shutil, "which", lambda _: None)
    with pytest.raises(Missing, match=f"^{tool} is not installed: apt-get install {package}$"):
        load(name).prepare(Context(tmp_path, True, [], print))


# ---- RDMA ----


def test_rdma_tells_all_that_is_lacking(monkeypatch, tmp_path):
    module = load("micro-rdma")
    context = Context(tmp_path, True, [], print)
    monkeypatch.setattr(module, "rdma_devices", list)
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    with pytest.raises(Missing, match=r"no RDMA device.*apt-get install perftest"):
        module.prepare(context)
    monkeypatch.setattr(module, "rdma_devices", lambda: ["rxe0"])
    with pytest.raises(Missing, match="^ib_write_lat is not installed"):
        module.prepare(context)


def test_rdma_times_are_those_of_lines_with_a_number_each():
    # As ib_write_lat -F -H -U of perftest 4.5 printed over soft-RoCE, shortened.
    told = """ rdma_cm QPs\t : OFF
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0013 PSN 0x52abfe
#, usec
1, 18.4124
2, 1e+03
3, 17.5912
#, usec
1, 17.5912
2, 18.4124
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
 64      4          17.59          1000.00      18.41    \t       30.57
"""
    assert load("micro-rdma").parse_times(told) == [18.4124, 1000.0, 17.5912]
    assert load("micro-rdma").parse_times("Couldn't connect to 127.0.0.1:1, 2\n3, 4\n") == []


def test_rdma_is_measured_where_there_is_a_device(tmp_path):
    module = load("micro-rdma")
    try:
        module.prepare(Context(tmp_path, True, [], print))
    except Missing as why:
        pytest.skip(str(why))
    for verb in module.VERBS:
        report = measured("micro-rdma", tmp_path, verb=verb, bytes=64, requests=1000)
        assert len(report.samples["round-trip"]) == 999  # between two of perftest's time stamps


# ---- options, and the box ----


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "give one of chase, copy, scan"),
        (["copy", "--bytes=100", "--from=200", "--ms=1"], "--bytes 100: give a multiple of 64"),
        (["chase", "--bytes=64", "--ms=1"], "--bytes 64: out of range; give 128"),
        (["copy", "--bytes=128", "--from=64", "--ms=1"], "--from 64: give --bytes at least"),
    ],
)
def test_options_that_cannot_be_are_refused(options, complaint):
    done = ended(TOKD_MICRO, *options)
    assert done.returncode == 2 and complaint in done.stderr


def test_an_unknown_way_to_scan_is_refused(tmp_path, ranks_file):
    path = tmp_path / "text"
    path.write_text("x")
    with pytest.raises(OSError, match="give pretokens, memchr-blanks, memchr-none or loop"):
        micro.run("scan", MS, how="regex", text=str(path), vocab=str(ranks_file))


@pytest.mark.parametrize("quick", [True, False])
def test_the_box_asks_for_every_task(quick):
    box = boxes.load(ROOT / "boxes" / "machine.json", quick)
    made = {path.name for path in tasks.TASKS.glob("micro-*")}
    assert {entry.task.name for entry in box.entries} == made
