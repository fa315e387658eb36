# SPDX-License-Identifier: BSD-3-Clause
"""Readers of every kind at once, readers that die, and the appliance that does, over the wire."""

import signal
import subprocess
import threading
import time

import pytest
from bench.programs import DPDK_TOKD
from dpdk_tokd import Client, RingReader, wire
from netlab import SERVER_IP
from raw_client import RawStream
from samples import documents

TAIL = DPDK_TOKD.with_name("tokd-tail")


def tail(socket_path: str, *options: str) -> subprocess.Popen[str]:
    """tokd-tail, attached."""
    if not TAIL.is_file():
        pytest.skip(f"{TAIL} is not built")
    one = subprocess.Popen(
        [TAIL, "--socket", socket_path, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert one.stderr is not None and "attached to" in one.stderr.readline()
    return one


def records(out: str) -> list[dict[str, str]]:
    return [dict(word.split("=", 1) for word in line.split(" ")) for line in out.splitlines()]


def ids_of(record: dict[str, str]) -> list[int]:
    return [int(i) for i in record["ids"].split(",") if i]


def test_tokd_tail_prints_what_the_client_gets(lab, start):
    appliance = start()
    tails = [tail(appliance.socket, "--once"), tail(appliance.socket, "--once", "--tap")]
    with lab.call(lambda: Client(SERVER_IP)) as client:
        expected = client.tokenize(documents()[:20_000]).tolist()
    for one in tails:
        out, err = one.communicate(timeout=10)
        assert (one.returncode, err) == (0, "")
        got: list[int] = []
        for record in records(out):
            assert int(record["first"]) == len(got)
            got += ids_of(record)
            assert len(got) == int(record["first"]) + int(record["count"])
        assert got == expected
        assert records(out)[-1]["end"] == "last"


def test_readers_at_different_speeds_and_taps_at_once(lab, start, gpt2):
    """Each reader gets everything; each tap what it says it did."""
    appliance = start("--ring-size", "64k", "--reader-timeout", "20000")
    text = documents()
    expected = gpt2.encode(text).tolist()
    got: dict[str, list[int]] = {}
    lost: dict[str, int] = {}
    broken: list[str] = []

    def read(name: str, pause: float, reader: RingReader) -> None:
        ids = got.setdefault(name, [])
        seen = 0
        for r in reader:
            copied = r.tokens.tolist()
            seen += len(copied)
            if r.lost_bytes == 0 and len(ids) != r.first:
                broken.append(f"{name}: gap before {r.first} untold")
            ids[:] = ids[: r.first] + [-1] * (r.first - len(ids))
            last, first = r.last, r.first
            if pause:
                time.sleep(pause)
            if r.release():
                ids += copied
                if copied != expected[first : first + len(copied)]:
                    broken.append(f"{name}: wrong ids at {first}, and nobody said so")
            else:
                ids += [-1] * len(copied)
            if last:
                break
        lost[name] = sum(each.bytes for each in reader.lost)
        reader.close()

    paces = [("fast", 0.0, False), ("slow", 0.004, False), ("tap", 0.0, True)]
    paces.append(("slow tap", 0.05, True))
    readers = [
        (name, pause, RingReader(appliance.socket, timeout=20, tap=tap))
        for name, pause, tap in paces
    ]
    threads = [threading.Thread(target=read, args=args) for args in readers]
    for thread in threads:
        thread.start()
    with lab.call(lambda: Client(SERVER_IP)) as client:
        assert client.tokenize(text).tolist() == expected
    for thread in threads:
        thread.join()
    assert broken == []
    assert got["fast"] == got["slow"] == expected
    assert lost["fast"] == lost["slow"] == 0
    for name in ("tap", "slow tap"):
        assert (lost[name] > 0) == (-1 in got[name])
    assert lost["slow tap"] > 0
    counters = appliance.counters()
    assert (counters["readers_dropped"], counters["taps_attached"]) == (0, 2)


def test_reader_that_starts_anew_sees_what_comes_from_then_on(lab, start, gpt2):
    appliance = start()
    with lab.call(lambda: Client(SERVER_IP)) as client:
        for text in ("the first", "the second", "the third"):
            with RingReader(appliance.socket, timeout=5) as reader:
                client.tokenize(text)
                got: list[int] = []
                for r in reader:
                    got += r.tokens.tolist()
                    if r.last:
                        break
            assert got == gpt2.encode(text).tolist()
    appliance.wait_counters(lambda c: c["readers_detached"] == 3)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_restart_in_the_middle_of_a_stream(lab, start, gpt2, number):
    first = start("--drain", "0")
    begun = documents()[:1000]
    with RingReader(first.socket, timeout=20, reconnect=True) as reader:
        old = reader.instance
        with RawStream(lab) as stream:
            stream.send(stream.data(begun, packet=0, flags=wire.F_FIRST))
            r = next(reader)
            assert r.starts and not r.last and r.instance == old
            first.send_signal(number)
            first.wait(20)
        got = []
        while (r := reader.poll()) is not None or reader.attached:
            if r is not None:
                got.append((r.stream_id, r.aborted))
        second = start()
        second.wait_counters(
            lambda c: c["readers_attached"] == 1 if reader.poll() is None else False
        )
        with lab.call(lambda: Client(SERVER_IP)) as client:
            client.tokenize("after")
        after = next(reader)
        assert after.tokens.tolist() == gpt2.encode("after").tolist()
        assert after.instance == reader.instance != old
        (restart,) = reader.restarts
        if number == signal.SIGTERM:  # it had time to say how its streams ended
            assert got == [(stream.stream_id, True)] and restart.cut == ()
        else:
            assert got == []
            assert [(c.stream_id, c.epoch) for c in restart.cut] == [
                (stream.stream_id, stream.epoch)
            ]


def test_tokd_tail_survives_nothing_it_should_not(lab, start):
    """A reader whose output nobody takes is dropped, and says so; a tap goes on."""
    appliance = start("--ring-size", "64k", "--reader-timeout", "200")
    reader, tap = tail(appliance.socket), tail(appliance.socket, "--tap", "--stats")
    for one in (reader, tap):
        one.send_signal(signal.SIGSTOP)
    with lab.call(lambda: Client(SERVER_IP)) as client:
        expected = client.tokenize(documents())
    for one in (reader, tap):
        one.send_signal(signal.SIGCONT)
    out, err = reader.communicate(timeout=20)
    assert reader.returncode == 4 and "dropped" in err, err
    time.sleep(0.3)
    tap.send_signal(signal.SIGTERM)
    out, err = tap.communicate(timeout=20)
    assert tap.returncode == 0
    seen = records(out)
    assert "lost" in seen[0] and int(seen[0]["lost"]) > 0
    for record in seen[1:]:
        at = int(record["first"])
        assert ids_of(record) == expected[at : at + int(record["count"])].tolist()
    assert f"lost_bytes {seen[0]['lost']} " in err
