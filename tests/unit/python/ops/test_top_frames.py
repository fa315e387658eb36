# SPDX-License-Identifier: BSD-3-Clause
"""What tokd-top makes of two snapshots."""

import dataclasses
import re

import pytest

pytest.importorskip("dpdk_tokd", reason="pip install ./python")
from dpdk_tokd.ops.telemetry import Histogram, Snapshot
from dpdk_tokd.ops.top import bar, frame, human, microseconds, paint

HZ = 1_000_000_000
ROWS = ("  0 ", "  1 ", "all ")


def snapshot(time_s: float, n: int, *, instance: str = "a", workers: int = 2) -> Snapshot:
    """Everything counted `n` times; worker 1 is backpressured for half of its time."""
    info = {
        "version": "1",
        "state": "serving",
        "instance": instance,
        "uptime_s": 3725,
        "port_name": "net_af_packet0",
        "driver": "net_af_packet",
        "link": "down",
        "vocab": f"/{'folder/' * 9}{'model' * 9}",
        "vocab_checksum": "68850f16",
        "tsc_hz": HZ,
        "workers": workers,
        "port": 0,
    }
    counters = {"rx_packets": n, "streams_done": n, "ids": 10 * n, "text_bytes": 1000 * n}
    drops = {"drop_arp": 0, "drop_ether": n, "tx_full": 2 * n, "tx_packets": n, "drop_old": 5}
    worker = {"lcore": 3, "open_streams": 4, "ring_bytes": 100, "ring_held": 25}
    counts = [0] * 512
    counts[20] = n  # up to 21 * 32 ticks
    return Snapshot(
        time_s,
        info,
        [worker | {"busy": n, "backpressured": n * w, "idle": 0} for w in range(workers)],
        [counters | drops] * workers,
        {},
        {"wire_to_ring": [Histogram(tuple(counts), n * 1e-6, HZ, 5, 4)] * workers},
        {2: {"state": "reading", "pid": 77, "lag_bytes": 640, "lag_worker": 1}},
        {"ipackets": n, "opackets": n, "imissed": n, "rx_nombuf": 0},
        [],
    )


def test_a_frame_is_of_what_came_between() -> None:
    lines = frame(snapshot(12.0, 3_000_000), snapshot(10.0, 1_000_000))
    text = "\n".join(lines)
    assert "up 1:02:05" in lines[0] and "last 2.0 s" in lines[0]
    assert all(len(line) <= 80 for line in lines)
    first, second, both = (next(s for s in lines if s.startswith(n)).split() for n in ROWS)
    assert first[:5] == ["0", "3", "########", "100%", "0%"]
    assert second[2:5] == ["####!!!!", "50%", "50%"]
    assert both[1:4] == ["#####!!!", "67%", "33%"]
    #                     pkts/s  texts/s ids/s    B/s     p50    p99   open ring
    assert first[5:] == ["1.0M", "1.0M", "10.0M", "1.0G", "0.7", "0.7", "4", "25%"]
    assert both[4:] == ["2.0M", "2.0M", "20.0M", "2.0G", "0.7", "0.7", "8", "25%"]
    assert "since its start: 6.0M packets, 6.0M texts, 60.0M ids" in lines
    assert "1.0M missed/s" in text and "mbuf" not in text
    assert "drops: 6.0M/s, 18.0M since its start" in lines
    drops = [s.split() for s in lines if s.startswith(("  drop_", "  tx_"))]
    assert drops == [["tx_full", "4.0M/s", "12.0M"], ["drop_ether", "2.0M/s", "6.0M"]]
    assert "drop_old" not in text and "drop_arp" not in text and "tx_packets" not in text
    assert lines[-1].split() == ["2", "reading", "77", "640", "1"]


@pytest.mark.parametrize("other", [snapshot(10.0, 900, instance="b"), None])
def test_after_a_restart_it_begins_anew(other: Snapshot | None) -> None:
    lines = frame(snapshot(12.0, 3725, workers=1), other)
    assert "since its start" in lines[0]
    assert lines[4].split()[5] == "1"  # 3725 packets in 3725 s


def test_nothing_happened() -> None:
    then = snapshot(1.0, 5)
    lines = frame(dataclasses.replace(then, time_s=2.0, readers={}), then)
    assert lines[4].split()[3:11] == ["0%", "0%", "0", "0", "0", "0", "-", "-"]
    assert "drops: 0/s, 40 since its start" in lines and "readers: none" in lines
    shown = [s.split()[0] for s in lines if s.startswith(("  drop_", "  tx_"))]
    assert shown == ["tx_full", "drop_ether", "drop_old"]


def test_a_tap_has_no_lag() -> None:
    then = snapshot(1.0, 5)
    tap = {3: {"mode": "tap", "state": "tapping", "pid": 78}}
    lines = frame(dataclasses.replace(then, time_s=2.0, readers=then.readers | tap), then)
    assert lines[-1].split() == ["3", "tapping", "78", "-", "-"]


def test_gpu_sinks_have_a_line() -> None:
    then = dataclasses.replace(snapshot(1.0, 5), sinks=["running", "no agent"])
    posted = {"sink_slots": 3000, "sink_tokens": 90_000, "sink_shed": 7}
    now = dataclasses.replace(then, time_s=3.0, counters=[c | posted for c in then.counters])
    line = frame(now, then)[-1]
    assert line.startswith("GPU sinks: 1 no agent, 1 running; 3.0k slots/s, 90.0k ids/s; 14 shed,")


def test_numbers_fit_their_columns() -> None:
    for e in range(-3, 17):
        for digits in (1.0, 1.5, 9.94, 9.95, 9.996, 9.9999):
            assert len(human(digits * 10**e)) <= 6, digits * 10**e
            assert len(microseconds(digits * 10**e / 1e6)) <= 7
    assert [human(n) for n in (0, 950, 999.4, 999.6, 1200, 589_123, 34_560_000)] == [
        "0", "950", "999", "1.0k", "1.2k", "589k", "34.6M"
    ]  # fmt: skip
    assert microseconds(1.25e-6) == "1.2" and microseconds(0.5) == "500ms"
    assert microseconds(None) == "-"


def test_a_small_share_is_seen_in_the_bar() -> None:
    assert bar(0, 0) == "........"
    assert bar(1, 0) == "########"
    assert bar(0.001, 0.001) == "#!......"
    assert bar(0.999, 0.001) == "#######!"
    assert bar(0.6, 0.2) == "#####!!."


def test_colours_change_nothing_else() -> None:
    lines = frame(snapshot(12.0, 3_000_000), snapshot(10.0, 1_000_000))
    painted = [paint(line) for line in lines]
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in painted] == lines
    assert "  0   3 \x1b[32m########\x1b[33m\x1b[0m 100%" in painted[4]
    assert sum(line.startswith("\x1b[31m  ") for line in painted) == 2  # drops
