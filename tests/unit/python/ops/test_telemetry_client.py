# SPDX-License-Identifier: BSD-3-Clause
"""dpdk_tokd.ops.telemetry against sockets that answer what a test says, and its arithmetic."""

import json
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("dpdk_tokd", reason="pip install ./python")
from dpdk_tokd.ops.telemetry import Histogram, Telemetry, TelemetryError, file_prefixes

GREETING = json.dumps({"version": "DPDK 22.11", "pid": 1, "max_output_len": 16384}).encode()
HZ = 2_000_000_000
EMPTY = Histogram((0,) * 512, 0.0, HZ, 5, 4)

Answer = Callable[[str], bytes]


@contextmanager
def server(folder: Path, answer: Answer, greeting: bytes = GREETING) -> Iterator[None]:
    """A telemetry socket under the prefix "p" that serves one connection after the other."""
    path = folder / "p" / "dpdk_telemetry.v2"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    one, _ = listening.accept()
                except OSError:
                    return
                with one:
                    if greeting:
                        one.send(greeting)
                    while asked := one.recv(1024):
                        if told := answer(asked.decode()):
                            one.send(told)
                        else:
                            break

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def by_table(table: dict[str, object]) -> Answer:
    """Answers as DPDK does: the command without its parameters is the key."""
    return lambda asked: json.dumps({asked.split(",")[0]: table.get(asked)}).encode()


def bucket(ticks: int) -> int:
    """app/dpdk-tokd/datapath/histogram.h, said again."""
    units = ticks >> 5
    shift = max(units.bit_length() - 5, 0)
    return min((shift << 4) + (units >> shift), 511)


def test_commands_carry_parameters_and_answers(tmp_path: Path) -> None:
    table = {"/tokd/counters,3": {"ids": 7}, "/tokd/info": {"workers": 1}}
    with server(tmp_path, by_table(table)), Telemetry("p", folder=tmp_path) as t:
        assert t.pid == 1
        assert t.counters(3) == {"ids": 7}
        assert t.command("/tokd/counters", 4) is None
        with pytest.raises(TelemetryError, match="no answer to /tokd/counters,4: this is not"):
            t.counters(4)
        for bad in ("tokd", "/a,b", "/" + "x" * 55, "/a b"):
            with pytest.raises(ValueError, match="a command begins with /"):
                t.command(bad)


def test_pages_are_put_together(tmp_path: Path) -> None:
    table: dict[str, object] = {"/tokd/info": {"workers": 20}}
    table["/tokd/workers,0"] = {str(w): {"lcore": w + 1} for w in range(16)}
    table["/tokd/workers,16"] = {str(w): {"lcore": w + 1} for w in range(16, 20)}
    table |= {"/tokd/help,0": {"a": "A", "b": "B"}, "/tokd/help,2": {"c": "C"}, "/tokd/help,3": {}}
    with server(tmp_path, by_table(table)), Telemetry("p", folder=tmp_path) as t:
        assert [w["lcore"] for w in t.workers()] == list(range(1, 21))
        assert t.help() == {"a": "A", "b": "B", "c": "C"}
        del table["/tokd/workers,16"]
        with pytest.raises(TelemetryError, match="no answer to /tokd/workers,16"):
            t.workers()
        table["/tokd/workers,16"] = {}
        with pytest.raises(TelemetryError, match="16 of 20 workers"):
            t.workers()
        table["/tokd/help,2"] = {"a": "A"}  # would go on for ever
        with pytest.raises(TelemetryError, match="repeats itself"):
            t.help()


def test_sinks_come_in_pages_and_only_where_there_are_some(tmp_path: Path) -> None:
    table: dict[str, object] = {"/tokd/sink,0": {}}
    with server(tmp_path, by_table(table)), Telemetry("p", folder=tmp_path) as t:
        assert t.sinks(17) == []
        table["/tokd/sink,0"] = {str(w): {"state": "running"} for w in range(16)}
        table["/tokd/sink,16"] = {"16": {"state": "no agent"}}
        assert t.sinks(17) == ["running"] * 16 + ["no agent"]
        table["/tokd/sink,16"] = {"16": {"state": 1}}
        with pytest.raises(TelemetryError, match="/tokd/sink answers"):
            t.sinks(17)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "closed without an answer"),
        (b"{", "no answer of DPDK's telemetry"),
        (b"\xff\xfe", "no answer of DPDK's telemetry"),
        (b"[1]", "no answer of DPDK's telemetry"),
        (b'{"/other": 1}', "answered /other to /tokd/info"),
        (b'{"/tokd/info": "' + b"x" * 20000 + b'"}', "16385 bytes, of at most 16384"),
        (b'{"/tokd/info": 3}', "no answer to /tokd/info"),
        (b'{"/tokd/info": {}}', "lacks version"),
    ],
)
def test_nonsense_is_an_error_in_one_line(tmp_path: Path, answer: bytes, message: str) -> None:
    with server(tmp_path, lambda _: answer), Telemetry("p", folder=tmp_path) as t:
        with pytest.raises(TelemetryError, match=message) as e:
            t.snapshot()
        assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("greeting", "message"),
    [
        (b"hello", "no answer of DPDK's telemetry"),
        (b"{}", "pid is None"),
        (b'{"pid": 1, "max_output_len": 0}', "announces answers of 0 bytes"),
        (b'{"pid": 1, "max_output_len": 99999999999}', "of at most 1048576"),
        (b'{"pid": 1, "max_output_len": true}', "is True, not a number"),
    ],
)
def test_a_strange_greeting_is_refused(tmp_path: Path, greeting: bytes, message: str) -> None:
    with server(tmp_path, lambda _: b"", greeting):
        with pytest.raises(TelemetryError, match=message):
            Telemetry("p", folder=tmp_path)


def test_silence_is_a_timeout(tmp_path: Path) -> None:
    with server(tmp_path, lambda _: b"", b""):
        with pytest.raises(TelemetryError, match="no answer within 0.1 s"):
            Telemetry("p", folder=tmp_path, timeout=0.1)


def test_who_is_not_there_is_told_with_who_is(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="prefixes in .*: none"):
        Telemetry("p", folder=tmp_path)
    with server(tmp_path, lambda _: b""):
        assert file_prefixes(tmp_path) == ["p"]
        with pytest.raises(TelemetryError, match="is dpdk-tokd running.*: p; for "):
            Telemetry("q", folder=tmp_path)
    with pytest.raises(TelemetryError, match="no process listens"):
        Telemetry("p", folder=tmp_path)
    with pytest.raises(TelemetryError, match="--file-prefix"):
        Telemetry("x" * 200, folder=tmp_path)  # no path of a socket is so long


def test_the_folder_is_that_of_dpdk_telemetry_py(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpdk_tokd.ops.telemetry import runtime_dir

    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/own")
    assert runtime_dir() == Path("/run/own/dpdk")
    monkeypatch.delenv("RUNTIME_DIRECTORY")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert runtime_dir() == Path("/var/run/dpdk")
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert runtime_dir() == Path("/run/user/1000/dpdk")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert runtime_dir() == Path("/tmp/dpdk")


@pytest.mark.parametrize("field", ["buckets", "tsc_hz", "unit_shift", "sub_bits", "sum_ns"])
@pytest.mark.parametrize("value", [None, "x", -1, [], [-1], [1.5], 10**6])
def test_a_histogram_that_makes_no_sense(tmp_path: Path, field: str, value: object) -> None:
    good = {"buckets": [1], "sum_ns": 1, "tsc_hz": HZ, "unit_shift": 5, "sub_bits": 4}
    table: dict[str, object] = {"/tokd/histograms,tokenizer": good | {field: value}}
    with server(tmp_path, by_table(table)), Telemetry("p", folder=tmp_path) as t:
        if (field in ("tsc_hz", "sum_ns") and value == 10**6) or (
            field == "sum_ns" and value == -1
        ):
            t.histogram("tokenizer")
        else:
            with pytest.raises(TelemetryError):
                t.histogram("tokenizer")


def test_percentiles_and_bounds_against_a_sorted_list() -> None:
    rng = random.Random(1)
    values = sorted(int(2 ** rng.uniform(0, 39.9)) for _ in range(5000))
    counts = [0] * 512
    for v in values:
        counts[bucket(v)] += 1
        assert v / HZ < EMPTY.bound(bucket(v))
        assert bucket(v) == 0 or v / HZ >= EMPTY.bound(bucket(v) - 1)
    h = Histogram(tuple(counts), sum(values) / HZ, HZ, 5, 4)
    assert h.count == 5000 and h.bound(511) == 2**40 / HZ
    for share in (0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 1.0):
        true = values[max(-(-round(share * 5000 * 1000) // 1000), 1) - 1] / HZ
        shown = h.percentile(share)
        assert shown is not None and true < shown <= true * (1 + 1 / 16) + 32 / HZ
    bounds = (1e-8, 1e-6, 5e-6, 1e-3, 1.0, 100.0)
    for bound, n in zip(bounds, h.cumulative(bounds), strict=True):
        known = sum(v / HZ <= bound for v in values)
        surely = sum(v / HZ <= bound / (1 + 1 / 16) - 32 / HZ for v in values)
        assert surely <= n <= known  # never more than there were
    assert EMPTY.percentile(0.5) is None
    assert EMPTY.cumulative((1.0,)) == [0]
    last = Histogram((0,) * 511 + (3,), 1e9, HZ, 5, 4)
    assert last.cumulative((1e9,)) == [0]  # how large they are nobody knows


def test_a_difference_of_two_snapshots() -> None:
    then = Histogram((1, 2, 3), 1.0, HZ, 5, 4)
    now = Histogram((1, 5, 3), 1.5, HZ, 5, 4)
    assert now.since(then) == Histogram((0, 3, 0), 0.5, HZ, 5, 4)
