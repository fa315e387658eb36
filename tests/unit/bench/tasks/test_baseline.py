# SPDX-License-Identifier: BSD-3-Clause
"""The conventional servers: every tokenizer, socket and loop gives the reference's ids."""

import csv
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

engines = pytest.importorskip("bench.baseline.engines", reason="run tools/setup")
from bench.process import Process
from bench.texts import reference, slices

ROOT = Path(__file__).resolve().parents[4]
SERVER = ROOT / "tools" / "bench" / "baseline" / "socket_server.py"
LENGTH = struct.Struct("<I")
TEXTS = [
    "Hello world, it's 2024:  two  blanks\n\n\tand a tab. <|endoftext|> is text",
    "Grüße, 你好世界, привет мир, مرحبا بالعالم 👩‍💻🏽 ﬁn\u00a0\u3000.",
    "def f(x):\n    return x ** 2  # a comment\n" * 100,
    "a",
]


@pytest.fixture(scope="module")
def right(ranks_file) -> list[np.ndarray]:
    tiktoken = reference.load_tiktoken(ranks_file)
    return [np.array(tiktoken.encode_ordinary(text), np.uint32) for text in TEXTS]


@pytest.fixture
def serve(ranks_file, tokenizer_json, tmp_path):
    @contextmanager
    def start(*options: str) -> Iterator[str]:
        (tmp_path / "sample").write_text(TEXTS[0])
        command = [sys.executable, str(SERVER), "--listen", "127.0.0.1:0", *options]
        command += ["--ranks", str(ranks_file), "--sample", str(tmp_path / "sample")]
        command += ["--json", str(tokenizer_json), "--block"]
        with Process("socket_server", command, tmp_path / "log") as server:
            line = server.wait_for("ready:", 60)
            yield line.removeprefix("ready: ").split(",")[0]
            assert server.stop() == -signal.SIGTERM, server.tail()

    return start


def ask(tokd_load: Path, folder: Path, address: str, mode: str, expected: list[np.ndarray]):
    sent, out = folder / "slices", folder / "out.csv"
    slices.write(sent, [slices.Slice("c", "s", t, i) for t, i in zip(TEXTS, expected, strict=True)])
    command = [tokd_load, "--connect", address, "--mode", mode, "--slices", sent, "--out", out]
    command += ["--timeout", "30000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    with out.open() as file:
        return done, [row["failure"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("engine", engines.LOADERS)
def test_every_way_of_every_tokenizer_gives_the_references_ids(
    engine, ranks_file, tokenizer_json, right
):
    if why := engines.obstacle(engine):
        pytest.skip(why)
    try:
        own = engines.load(engine, engines.Files("gpt2", ranks_file, tokenizer_json))
    except engines.CannotLoad as error:
        pytest.skip(str(error))
    for name, way in own.ways.items():
        call = way.served()
        for text, ids in zip(TEXTS, right, strict=True):
            assert call(memoryview(text.encode())) == ids.astype("<u4").tobytes(), name
    for batch in filter(None, (own.batch, own.lists)):
        for threads in (1, 2):
            ids = batch.as_bytes(batch.encode(TEXTS, threads))
            assert ids == np.concatenate(right).astype("<u4").tobytes()


@pytest.mark.parametrize("loop", ["thread", "asyncio"])
@pytest.mark.parametrize(("transport", "mode"), [("udp", "plain"), ("tcp", "tcp")])
def test_every_socket_and_loop_answers(serve, tokd_load, tmp_path, right, loop, transport, mode):
    with serve("--transport", transport, "--loop", loop) as address:
        for _ in range(2):  # a server outlives its clients
            done, failures = ask(tokd_load, tmp_path, address, mode, right)
            assert (done.returncode, failures) == (0, [""] * len(TEXTS)), done.stderr


def test_wrong_ids_over_tcp_are_found(serve, tokd_load, tmp_path, right):
    wrong = [*right[:2], right[2] + 1, right[3]]
    with serve("--transport", "tcp") as address:
        done, failures = ask(tokd_load, tmp_path, address, "tcp", wrong)
    assert (done.returncode, failures) == (1, ["", "", "wrong ids", ""])


@pytest.mark.parametrize("loop", ["thread", "asyncio"])
def test_a_connection_that_announces_too_much_is_closed(serve, loop):
    with serve("--transport", "tcp", "--loop", loop) as address:
        ip, _, port = address.rpartition(":")
        with socket.create_connection((ip, int(port)), timeout=30) as client:
            client.sendall(LENGTH.pack(1 << 31))
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
        with socket.create_connection((ip, int(port)), timeout=30) as client:
            client.sendall(LENGTH.pack(1) + b"a")
            assert client.recv(4, socket.MSG_WAITALL) == LENGTH.pack(4)


def test_a_connection_that_ends_has_no_answer(tokd_load, tmp_path, right):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def half_an_answer() -> None:
            with server.accept()[0] as peer:
                peer.recv(1 << 16)
                peer.sendall(LENGTH.pack(8) + b"1234")

        other = threading.Thread(target=half_an_answer)
        other.start()
        done, failures = ask(tokd_load, tmp_path, address, "tcp", right)
        other.join()
    assert (done.returncode, failures) == (1, ["the connection failed"] * len(TEXTS))


def test_a_tokenizer_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(engines.NEEDS, "gigatoken", ("no_such_package", "pip install it"))
    assert engines.obstacle("gigatoken") == (
        "the Python package no_such_package is not installed: pip install it"
    )


def test_the_fastest_call_is_taken():
    calls = {"slow": lambda _: sum(range(20_000)).to_bytes(8), "fast": lambda _: b""}
    name, ns = engines.fastest(calls, dict.fromkeys(calls, [memoryview(b"text")] * 20))
    assert name == "fast" and ns["slow"] > ns["fast"]
