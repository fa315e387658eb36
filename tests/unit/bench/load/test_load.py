# SPDX-License-Identifier: BSD-3-Clause
"""tokd-load: right ids pass, wrong ones do not. Retransmission is tested in tests/unit/client: it
is libtokd-client's."""

import csv
import random
import subprocess

import pytest
from bench.texts import slices
from small_server import Server, ids_of

TIMEOUT_MS = 20


def never(_: int) -> bool:
    return False


def texts(seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    sizes = [1, 64, 1375, 1376, 1377, 8192, 64 * 1376 + 1, 0]
    return [bytes(rng.randrange(32, 127) for _ in range(n)) for n in sizes]


@pytest.fixture
def load(tokd_load, tmp_path):
    """Run tokd-load against a server: its exit code, what it said, and its rows."""

    def run(server: Server, bodies: list[bytes], *options: str):
        sent, out = tmp_path / "slices", tmp_path / "out.csv"
        slices.write(sent, [slices.Slice("c", "s", b.decode(), ids_of(b)) for b in bodies])
        mode = "plain" if server.plain else "tokd"
        command = [tokd_load, "--connect", server.address, "--mode", mode, "--slices", sent]
        command += ["--out", out, "--timeout", str(TIMEOUT_MS), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        with out.open() as file:
            return done.returncode, done.stderr, list(csv.DictReader(file))

    return run


def test_every_size_comes_back_right(load):
    with Server(never) as server:
        code, said, rows = load(server, texts(), "--timeout", "5000")
    assert (code, said) == (0, "")
    assert [row["ok"] for row in rows] == ["1"] * len(texts())
    # A socket of an ordinary user need not have room for all ids of the seventh at once.
    assert [row["retransmits"] for row in rows[:6] + rows[7:]] == ["0"] * 7
    assert all(int(row["ns"]) > 0 for row in rows)


def test_all_ids_in_one_packet_are_there_at_once(load):
    with Server(never) as server:
        code, _, (row,) = load(server, [b"x" * 300], "--timeout", "5000")
    assert code == 0 and row["first_ns"] == row["ns"]


def test_first_ids_have_a_time_of_their_own(load):
    """The last of fifteen packets with ids is lost, and must be asked for."""
    with Server(lambda n: n == 4 + 3 + 15) as server:  # four of text, three states before the ids
        code, _, (row,) = load(server, [b"y" * 5000])
    assert code == 0 and row["retransmits"] != "0"
    assert 0 < int(row["first_ns"]) < int(row["ns"])


@pytest.mark.parametrize(("payload", "packets"), [(None, 6), (100, 82), (8191, 2), (8192, 1)])
def test_a_text_is_cut_as_it_is_told(load, payload, packets):
    options = ["--timeout", "5000", *([] if payload is None else ["--payload", str(payload)])]
    with Server(never) as server:
        code, said, _ = load(server, [texts()[5]], *options)
    assert (code, said) == (0, "")
    assert [len(stream.packets) for stream in server.streams.values()] == [packets]


@pytest.mark.parametrize("stream", [False, True])
def test_ids_are_asked_for_at_once_or_not(load, stream):
    with Server(never) as server:
        code, _, _ = load(server, texts()[:6], *(["--stream"] if stream else []))
    assert code == 0 and server.asked_to_stream == {stream}


def test_wrong_ids_under_a_right_checksum_are_found(load):
    with Server(never) as server:
        server.spoil = True
        code, said, rows = load(server, texts()[:2])
    assert code == 1
    assert "wrong ids" in said
    assert [row["ok"] for row in rows] == ["0", "0"]


def test_a_refusal_gives_its_reason(load):
    with Server(never, reason=8) as server:
        code, said, _ = load(server, texts()[:1])
    assert code == 1
    assert "refused, reason 8" in said


def test_silence_ends_as_no_answer(load):
    with Server(lambda _: True) as server:
        code, said, _ = load(server, texts()[:1])
    assert code == 1
    assert "no answer" in said


def test_plain_sends_and_takes_one_datagram(load):
    with Server(never) as server:
        server.plain = True
        code, said, rows = load(server, texts()[:6])
    assert (code, said) == (0, "")
    assert len(rows) == 6


def test_plain_sends_again_and_is_not_confused_by_stale_answers(load):
    with Server(lambda n: n in (1, 6)) as server:
        server.plain = True
        # Long enough that no other one is late though the server waits for its CPU.
        code, said, rows = load(server, texts()[:5], "--timeout", "500")
    assert (code, said) == (0, "")
    assert sum(int(row["retransmits"]) for row in rows) == 2


def test_warm_up_is_checked_but_not_written(load):
    with Server(never) as server:
        server.spoil = True
        code, _, rows = load(server, texts()[:4], "--warmup", "3")
    assert code == 1
    assert [row["index"] for row in rows] == ["3"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--connect nowhere", "IP:PORT"),
        ("--connect 127.0.0.1:99999", "65535"),
        ("--connect 127.0.0.1:9 --mode fast", "tokd, plain, tcp or echo"),
        ("--connect 127.0.0.1:9", "--slices FILE is missing"),
        ("--timeout 0", "give 1 to 60000 ms"),
        ("--payload 65444", "give 1 to 65443"),
        ("--connect 127.0.0.1:9 --slices s --out o --mode tcp --stream", "for --mode tokd"),
        ("more", "not an option"),
    ],
)
def test_a_bad_option_is_named(tokd_load, options, complaint):
    command = [tokd_load, *options.split()]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert complaint in run.stderr


@pytest.mark.parametrize("data", [b"", b"\x01\0\0\0", b"\xff\xff\xff\xff" * 3, b"\x01\0\0\0" * 3])
def test_a_damaged_file_of_slices_is_refused(tokd_load, tmp_path, data):
    path = tmp_path / "slices"
    path.write_bytes(data)
    command = [tokd_load, "--connect", "127.0.0.1:9", "--slices", path, "--out", tmp_path / "o"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "not a file of slices" in run.stderr
