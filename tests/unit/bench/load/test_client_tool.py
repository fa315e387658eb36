# SPDX-License-Identifier: BSD-3-Clause
"""tokd-client from the shell, and the examples of libtokd-client that doc/user/clients.md gives."""

import os
import subprocess
from pathlib import Path

import pytest
from dpdk_tokd import Reason, wire
from small_server import Server
from text_appliance import Appliance

ROOT = Path(__file__).resolve().parents[4]
BUILD = ROOT / os.environ.get("TOKD_BUILD", "build")
TOOL = BUILD / "app" / "tokd-client"


def run(*options: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    if not TOOL.is_file():
        pytest.skip(f"{TOOL} is not built: run tools/setup")
    return subprocess.run(
        [TOOL, *options], input=data, capture_output=True, timeout=60, check=False
    )


def numbers(data: bytes) -> bytes:
    """What is printed for a text: the small server's ids are its bytes."""
    return b" ".join(b"%d" % byte for byte in data) + b"\n"


@pytest.mark.parametrize("options", [[], ["--stream"]])
@pytest.mark.parametrize("size", [0, 5, 150_000])
def test_ids_of_standard_input(options, size):
    data = (b"\xff\x00\n" * 50_000)[:size]
    with Server(lambda _: False) as server:
        done = run(*options, server.address, data=data)
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", numbers(data))


@pytest.mark.parametrize("vocab", ["868554d0", "0x868554D0", "12345678"])
def test_a_vocabulary_is_asked_for_as_the_log_names_it(vocab):
    with Server(lambda _: False) as server:
        done = run("--vocab", vocab, server.address, data=b"text")
        assert server.vocab == int(vocab, 16)
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", numbers(b"text"))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_each_line_is_a_text(end):
    lines = [b"x" * (i * 37 % 3000) for i in range(200)]
    with Server(lambda n: n % 50 == 7) as server:
        data = b"\n".join(lines) + b"y" + end
        done = run("--lines", "--in-flight", "20", server.address, data=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"".join(map(numbers, [*lines[:-1], lines[-1] + b"y"]))


def test_lines_are_answered_while_more_may_come():
    if not TOOL.is_file():
        pytest.skip(f"{TOOL} is not built: run tools/setup")
    with Server(lambda _: False) as server:
        pipe = subprocess.PIPE
        tool = subprocess.Popen([TOOL, "--lines", server.address], stdin=pipe, stdout=pipe)
        for line in (b"one", b"", b"three"):
            tool.stdin.write(line + b"\n")
            tool.stdin.flush()
            assert tool.stdout.readline() == numbers(line)
        tool.stdin.close()
        assert tool.wait(10) == 0
        tool.stdout.close()


def test_a_line_that_fails_is_named_and_the_others_go_on():
    with Server(lambda _: False, reason=10) as server:
        done = run("--lines", server.address, data=b"a\nb\n")
    assert done.returncode == 1 and done.stdout == b"\n\n"
    assert done.stderr.count(b"\n") == 2
    assert b"line 2: 127.0.0.1:" in done.stderr and b"UTF8 (10)" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ([], 2, b"expected one HOST"),
        (["a", "b"], 2, b"expected one HOST"),
        (["[::1"], 2, b"expected [ADDRESS]:PORT"),
        (["127.0.0.1:0"], 2, b"port 0: give a number from 1 to 65535"),
        (["127.0.0.1,127.0.0.2"], 2, b"2 appliances: give the checksum of the vocabulary"),
        (["--in-flight", "0", "h"], 2, b"--in-flight 0: out of range; give 1 to 65536"),
        (["--stream", "--lines", "h"], 2, b"give one of them"),
        *(
            (["--generate", "5", other, "h"], 2, b"give one of them")
            for other in ("--stream", "--decode", "--lines")
        ),
        (["--generate", "0", "h"], 2, b"--generate 0: out of range; give 1 to 1048576"),
        (["--generate", "5", "127.0.0.1:9"], 1, b"is dpdk-tokd running"),
        (["--vocab", "1234567", "h"], 2, b"--vocab 1234567: give its checksum, 8 hexadecimal"),
        (["--vocab", "2257736400", "h"], 2, b"8 hexadecimal digits: dpdk-tokd logs it"),
        (["--vocab", "0x868554d", "h"], 2, b"8 hexadecimal digits"),
        (["--vocab", "868554dg", "h"], 2, b"8 hexadecimal digits"),
        (["--vocab", "00000000", "h"], 2, b"8 hexadecimal digits"),
        (["--nonsense", "h"], 2, b"nonsense"),
        (["no.such.host.invalid"], 3, b"no.such.host.invalid:9000: "),
        (["127.0.0.1:9"], 1, b"is dpdk-tokd running"),
    ],
)
def test_what_is_wrong_is_one_line(options, code, says):
    done = run(*options, data=b"text")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (code, b"", 1)
    assert says in done.stderr


def item(text: bytes, end: int = 0) -> bytes:
    return wire.MADE.pack(wire.MADE_END if end else 7, len(text), end) + text


@pytest.fixture
def model():
    """An appliance whose model makes "Once" and then fails, unless the answer is cancelled."""
    one = Appliance()
    one.answer_so_far, one.cancelled = item(b"Once"), False

    def polled(req: wire.Req) -> list[bytes]:
        if not req.flags & wire.F_CANCEL:
            return one.fail(req, Reason.SINK)
        one.cancelled = True
        return one.made(req, 12, one.answer_so_far + item(b"", 3), True)

    one.reply = lambda req, text: one.made(req, 0, one.answer_so_far, False)
    one.polled = polled
    one.start()
    yield one
    one.stop()


@pytest.mark.parametrize("text", [b"Once", b"Once\n"])
def test_an_error_has_a_line_of_its_own(model, text):
    model.answer_so_far = item(text)
    done = run("--generate", "5", f"127.0.0.1:{model.port}", data=b"text")
    assert (done.returncode, done.stdout) == (1, text)
    before, _, message = done.stderr.partition(b"tokd-client: 127.0.0.1:")
    assert before == (b"" if text.endswith(b"\n") else b"\n")
    assert b"the ids so far are right" in message and message.count(b"\n") == 1


def test_an_answer_that_cannot_be_written_is_cancelled(model):
    if not TOOL.is_file():
        pytest.skip(f"{TOOL} is not built: run tools/setup")
    command = [TOOL, "--generate", "5", f"127.0.0.1:{model.port}"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, input=b"text", stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 1 and model.cancelled
    assert done.stderr == b"tokd-client: standard output: No space left on device\n"


def test_help_and_version_succeed():
    assert b"usage: tokd-client" in run("--help").stdout
    assert run("--version").stdout.startswith(b"tokd-client ")
    assert run("--help").returncode == run("--version").returncode == 0


def test_the_documented_example_compiles_and_runs(compiled_example):
    with Server(lambda _: False) as server:
        host, port = server.address.split(":")
        program = compiled_example(
            "doc/user/clients.md",
            "lib/client/libtokd-client.a",
            **{"tokenizer.example": host, "TOKD_WIRE_PORT": port},
        )
        done = subprocess.run([program], capture_output=True, timeout=30, check=True)
    assert done.stdout.split() == numbers(b"Hello, world").split()


def test_the_documented_example_of_an_answer_compiles_and_runs(compiled_example, model):
    model.answer_so_far = item(b"Once") + item(b"", 1)
    model.reply = lambda req, text: model.made(req, 0, model.answer_so_far, True)
    program = compiled_example(
        "doc/user/clients.md",
        "lib/client/libtokd-client.a",
        number=1,
        **{"tokenizer.example": "127.0.0.1", "TOKD_WIRE_PORT": str(model.port)},
    )
    done = subprocess.run([program], capture_output=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == (b"Once", b"")
