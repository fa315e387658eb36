# SPDX-License-Identifier: BSD-3-Clause
"""Parts of tools/demo that need neither root nor a wire."""

import sys

import numpy as np
import pytest
from bench import appliance as servers
from bench.demo import measure, plan, report
from bench.lab.net import Veth
from bench.process import NotReady, Process
from bench.texts.slices import SIZES, Slice


def piece(n: int) -> Slice:
    return Slice("english", SIZES[n % 4], f"text {n}", np.array([n], np.uint32))


@pytest.mark.parametrize(
    ("ns", "p50", "p99"),
    [([7000], 7.0, 7.0), ([1000, 2000], 1.0, 2.0), ([i * 1000 for i in range(100, 0, -1)], 50, 99)],
)
def test_percentiles_are_times_that_were_measured(ns, p50, p99):
    assert measure.percentiles(ns) == {"p50": p50, "p99": p99, "samples": len(ns)}


@pytest.mark.parametrize("count", [60, 600, 1201, 8040])
def test_rounds_send_everything_once_under_ids_of_its_own(count):
    pieces = [piece(n) for n in range(count)]
    rounds = plan.rounds(pieces)
    first = [p for part in rounds if not part.again for p in part.slices]
    assert first == pieces
    assert rounds[-1].again and rounds[-1].slices == rounds[-2].slices
    starts = [part.first_id for part in rounds]
    ends = [part.first_id + len(part.slices) for part in rounds]
    assert starts == [1, *ends[:-1]]
    assert max(len(part.slices) for part in rounds) <= plan.ROUND


def test_a_wrong_answer_has_no_time():
    times = measure.Times()
    times.add(piece(0), 1000, True, 0)
    times.add(piece(4), 1, False, 2)
    assert report.by_size(times) == {"128": {"p50": 1.0, "p99": 1.0, "samples": 1}}
    assert (times.wrong, times.retransmits) == (1, 2)


def result(**more: object) -> dict[str, object]:
    figures = {size: {"p50": 10.0, "p99": 20.0, "samples": 3} for size in SIZES}
    slower = {size: {"p50": 250.0, "p99": 900.0, "samples": 3} for size in SIZES}
    return {
        "ids_equal": True, "ids": 5, "text_bytes": 9, "ring": {"ids": 6}, "load_average_before": 0.1,
        "rtt_us": figures, "baseline_us": slower, "repeated_us": {}, "echo_us": figures, "tokenizer_us": figures,
    } | more  # fmt: skip


def test_the_table_has_a_column_for_each_size():
    assert report.table(result()).count("25 x") == len(SIZES)
    assert "after 10 us" in report.meaning(result()) and "takes 25 x as long." in report.meaning(
        result()
    )
    assert "do not count" not in report.table(result())


def test_a_ratio_of_a_busy_machine_is_marked_where_it_stands():
    busy = result(load_average_before=3.0)
    lines = report.table(busy).splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("  baseline/dpdk-tokd"))
    assert lines[at].count("25 x ?") == len(SIZES)
    assert "these ratios do not count" in lines[at + 1] and "load average 3.0" in lines[at + 1]
    assert "takes 25 x ? as long" in report.meaning(busy)


@pytest.mark.parametrize(("equal", "said"), [(True, "yes, all ("), (False, "NO (")])
def test_the_verdict_says_whether_ids_are_equal(equal, said):
    assert report.verdict(result(ids_equal=equal)).startswith(f"ids equal the reference's: {said}")


def test_a_program_that_ends_early_is_not_ready(tmp_path):
    command = [sys.executable, "-c", "print('no port'); raise SystemExit(3)"]
    told = pytest.raises(NotReady, match=r"thing ended with 3:\s+no port")
    with Process("thing", command, tmp_path / "log") as process, told:
        process.wait_for("ready:", 10)


@pytest.mark.parametrize(
    ("works", "huge_pages", "driver", "memory"),
    [
        ({"af_xdp", "in-memory"}, True, "net_af_xdp", True),
        ({"af_packet", "in-memory"}, True, "net_af_packet", True),
        ({"af_packet", "no-huge"}, True, "net_af_packet", False),
        ({"af_xdp", "no-huge"}, False, "net_af_xdp", False),
    ],
)
def test_dpdk_tokd_is_started_the_best_way_that_works(
    tmp_path, monkeypatch, capsys, works, huge_pages, driver, memory
):
    """A stand-in is ready only if its arguments hold all of `works`."""
    program = tmp_path / "dpdk-tokd"
    conditions = " && ".join(f'[ "${{0#*{word}}}" != "$0" ]' for word in sorted(works))
    program.write_text(
        f'#!/bin/bash\nset -- "$*"\nBASH_ARGV0=$1\n{conditions} && echo ready: && exec sleep 60\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(servers, "DPDK_TOKD", program)
    link = Veth("near", "far", "10.99.0.1", "10.99.0.2")
    with servers.best_on_veth(link, tmp_path, tmp_path, 0, huge_pages) as appliance:
        assert (appliance.driver, appliance.huge_pages) == (driver, memory)
    first = (driver, memory) == ("net_af_xdp", huge_pages)
    assert ("ended with" in capsys.readouterr().err) is not first


def test_a_paused_program_can_be_stopped(tmp_path):
    with Process("sleeper", ["sleep", "60"], tmp_path / "log") as process:
        process.pause()
        assert process.stop() != 0
