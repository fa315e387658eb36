# SPDX-License-Identifier: BSD-3-Clause
"""tokd-load with many requests in flight: the schedule is the seed's and nobody else's, times count
from it, and what could not be sent or was not answered is counted."""

import csv
import socket
import subprocess
import threading
import time

import pytest
from bench.texts import slices
from small_server import Server, TcpServer, ids_of

MODES = ["tokd", "plain", "tcp"]
STALL_S = 0.3


def server_of(mode: str, lose: bool = False) -> Server | TcpServer:
    if mode == "tcp":
        return TcpServer()
    server = Server(lambda _: lose)
    server.plain = mode == "plain"
    return server


def texts(count: int) -> list[bytes]:
    """All different, so that an answer to another is a wrong one."""
    return [b"text %d, and no other" % i for i in range(count)]


@pytest.fixture
def load(tokd_load, tmp_path):
    """Run tokd-load: its exit code, what it said, and its rows with numbers in them."""

    def run(address: str, mode: str, bodies: list[bytes], *options: object):
        sent, out = tmp_path / "slices", tmp_path / "out.csv"
        slices.write(sent, [slices.Slice("c", "s", b.decode(), ids_of(b)) for b in bodies])
        command = [tokd_load, "--connect", address, "--mode", mode, "--slices", sent, "--out", out]
        command += [str(option) for option in options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        with out.open() as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            for name in ("ns", "intended_ns", "sent_ns"):
                row[name] = int(row[name]) if row[name] else None
        return done.returncode, done.stderr, rows

    return run


@pytest.mark.parametrize("mode", MODES)
def test_every_answer_is_its_texts_whatever_the_order(load, mode):
    with server_of(mode) as server:
        options = ("--rate", 2000, "--requests", 400, "--limit", 20_000)
        code, said, rows = load(server.address, mode, texts(40), *options)
    assert (code, said, len(rows)) == (0, "", 400)
    assert all(row["sent_ns"] >= row["intended_ns"] for row in rows)
    assert all(row["intended_ns"] + row["ns"] >= row["sent_ns"] for row in rows)


def test_the_schedule_is_the_seeds(load):
    found = {}
    with server_of("plain") as server:
        for name, options in {
            "one": ["--seed", 5], "again": ["--seed", 5], "other": ["--seed", 6],
            "fixed": ["--arrivals", "fixed"],
        }.items():  # fmt: skip
            _, _, rows = load(
                server.address, "plain", texts(500), "--rate", 5000, "--warmup", 100, *options
            )
            assert len(rows) == 400
            found[name] = [row["intended_ns"] for row in rows]
    assert found["one"] == found["again"] != found["other"]
    assert found["one"] == sorted(found["one"])
    assert found["fixed"] == [200_000 * i for i in range(100, 500)]


@pytest.mark.parametrize("mode", MODES)
def test_a_stall_is_in_the_time_of_every_request_that_was_to_start_in_it(load, mode):
    """Whoever waits for an answer before sending the next would have one slow request, not these:
    no answer leaves before the stall is over, and the stalled text was sent before it began."""
    bodies = texts(400)
    stall = set()

    def before(packet: bytes) -> None:
        if bodies[100] in packet and not stall:
            stall.add(packet)
            time.sleep(STALL_S)

    with server_of(mode) as server:
        server.before = before
        code, said, rows = load(
            server.address, mode, bodies, "--rate", 500, "--arrivals", "fixed", "--limit", 20_000,
            "--timeout", 20_000,
        )  # fmt: skip
    assert (code, said, len(rows)) == (0, "", 400)
    over = rows[100]["sent_ns"] + STALL_S * 1e9
    within = [row for row in rows[100:] if row["intended_ns"] < over]
    assert len(within) >= STALL_S * 500
    assert all(row["intended_ns"] + row["ns"] >= over for row in within)
    # They were not held back for it either.
    assert sum(row["sent_ns"] < over for row in within) > 10
    assert [row["intended_ns"] for row in rows] == [2_000_000 * i for i in range(400)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_what_comes_too_late_is_no_answer_and_nobody_elses(load, mode):
    bodies = texts(300)
    stall = set()

    def before(packet: bytes) -> None:
        if bodies[50] in packet and not stall:
            stall.add(packet)
            time.sleep(2.5)

    with server_of(mode) as server:
        server.before = before
        code, said, rows = load(
            server.address, mode, bodies, "--rate", 100, "--arrivals", "fixed", "--limit", 1500,
            "--timeout", 20_000,
        )  # fmt: skip
    late = [row for row in rows if row["failure"]]
    assert code == 1 and {row["failure"] for row in late} == {"no answer"}
    assert all(row["ns"] >= 1500e6 for row in late) and rows[50] in late
    assert len(late) >= 90 and f"{len(late)} no answer" in said
    # Behind them are answers again, and all are right.
    assert len(late) < 300 and rows[-1]["ok"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_beyond_the_bound_is_not_sent_and_is_counted(load, mode):
    blocked = threading.Event()
    with server_of(mode, lose=True) as server:
        server.before = lambda _: blocked.wait() and None
        options = ("--rate", 2000, "--requests", 100, "--in-flight", 4, "--limit", 3000)
        code, said, rows = load(server.address, mode, texts(10), *options, "--timeout", 20_000)
        blocked.set()
    assert code == 1
    assert [row["failure"] for row in rows] == ["no answer"] * 4 + ["not sent"] * 96
    assert all(row["sent_ns"] is None for row in rows[4:])
    assert "4 no answer, 96 not sent" in said


def test_what_is_refused_is_counted(load):
    with Server(lambda _: False, reason=8) as server:
        code, said, rows = load(server.address, "tokd", texts(5), "--rate", 1000, "--limit", 20_000)
    assert code == 1 and "refused, reason 8" in said
    assert [row["failure"] for row in rows] == ["refused"] * 5


def test_wrong_ids_are_found(load):
    with Server(lambda _: False) as server:
        server.spoil = True
        code, said, rows = load(server.address, "tokd", texts(5), "--rate", 1000, "--limit", 20_000)
    assert code == 1 and "wrong ids" in said
    assert {row["failure"] for row in rows} == {"wrong ids"}


def test_a_connection_that_ends_fails_all_that_is_left(load):
    with TcpServer() as server:
        count = []

        def before(_: bytes) -> None:
            count.append(0)
            if len(count) == 20:
                raise ConnectionError

        server.before = before
        options = ("--rate", 1000, "--limit", 20_000)
        code, _, rows = load(server.address, "tcp", texts(100), *options)
    assert code == 1
    assert [row["failure"] for row in rows] == [""] * 19 + ["the connection failed"] * 81


@pytest.mark.parametrize(
    "options",
    [("--in-flight", 8, "--timeout", 20_000), ("--rate", 5000, "--limit", 20_000)],
    ids=["closed", "open"],
)
def test_many_are_in_flight_at_once(load, options):
    """The server answers when eight have come, the last first."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)

        def serve() -> None:
            for _ in range(5):
                came = [server.recvfrom(65536) for _ in range(8)]
                for text, peer in reversed(came):
                    server.sendto(ids_of(text).tobytes(), peer)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        code, said, rows = load(address, "plain", texts(40), *options)
        thread.join()
    assert (code, said, len(rows)) == (0, "", 40)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--arrivals", "bursts"], "give poisson or fixed"),
        (["--rate", "0"], "give 1 to 10000000"),
        (["--in-flight", "100000"], "give 1 to 16384"),
        (["--limit", "5"], "need an open loop: give --rate"),
        (["--arrivals", "fixed"], "need an open loop: give --rate"),
    ],
)
def test_a_bad_option_is_named(tokd_load, options, complaint):
    command = [tokd_load, "--connect", "127.0.0.1:9", "--slices", "s", "--out", "o", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert complaint in run.stderr and len(run.stderr.splitlines()) == 1
