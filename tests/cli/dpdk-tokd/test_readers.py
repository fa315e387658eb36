# SPDX-License-Identifier: BSD-3-Clause
"""Who may attach to the control socket, and what a reader sees of a restart. No packet is sent."""

import grp
import os
import pwd
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.programs import DPDK_TOKD
from ended import ended

TAIL = DPDK_TOKD.parent.parent / "app/tokd-tail"
TAP, READER = 2, 1
ATTACH_AS = """
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    s.connect(sys.argv[1])
except PermissionError:
    sys.exit("no permission")
s.settimeout(5)
s.send(struct.pack("<4I", 0x54544144, 1, 1, 0))
print(struct.unpack_from("<3I", s.recv(4096))[2])
"""


def attach(path: Path, mode: int) -> tuple[socket.socket, int]:
    """The socket, and how many descriptors came."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(str(path))
    s.send(struct.pack("<4I", 0x54544144, 1, mode, 0))
    answer, fds, _, _ = socket.recv_fds(s, 4096, 64)
    assert struct.unpack_from("<4I", answer)[2] == len(fds) - (mode == READER)
    for fd in fds:
        os.close(fd)
    return s, len(fds)


def attach_as(path: Path, user: str, *groups: str) -> str:
    """What comes of attaching as another user: the number of rings, or the error."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    program = shutil.which("setpriv")
    if program is None:
        pytest.skip("needs setpriv: apt-get install util-linux")
    of = pwd.getpwnam(user)
    ids = ",".join(str(grp.getgrnam(g).gr_gid) for g in groups)
    group = ["--groups", ids] if groups else ["--clear-groups"]
    command = [program, "--reuid", str(of.pw_uid), "--regid", str(of.pw_gid), *group]
    done = ended(*command, sys.executable, "-c", ATTACH_AS, str(path), cwd="/")
    return (done.stdout or done.stderr).strip()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may pass through: pytest's own are not."""
    folder = Path("/tmp") / f"tokd-readers-{os.getpid()}"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_another_user_is_refused_unless_the_mode_lets_it_in(start, gpt2_file, open_folder) -> None:
    path = open_folder / "private"
    start("--vocab", str(gpt2_file), "--socket", str(path)).ready()
    assert attach_as(path, "nobody") == "no permission"
    assert attach_as(path, "root") == "1"


def test_members_of_the_socket_group_may_attach_and_others_not(
    start, gpt2_file, open_folder
) -> None:
    path = open_folder / "shared"
    options = ["--socket", str(path), "--socket-mode", "0660", "--socket-group", "games"]
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    start("--vocab", str(gpt2_file), *options).ready()
    assert path.stat().st_gid == grp.getgrnam("games").gr_gid
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert attach_as(path, "nobody") == "no permission"
    assert attach_as(path, "nobody", "games") == "1"


def test_taps_are_shown_and_counted(start, gpt2_file, tmp_path: Path) -> None:
    appliance = start("--vocab", str(gpt2_file)).ready()
    reader, n = attach(tmp_path / "socket", READER)
    assert n == 2
    tap, n = attach(tmp_path / "socket", TAP)
    assert n == 1
    shown = appliance.telemetry("/tokd/readers")
    assert {(s["mode"], s["state"]) for s in shown.values()} == {
        ("reader", "reading"),
        ("tap", "tapping"),
    }
    assert all(s["pid"] == os.getpid() for s in shown.values())
    tap.close()
    reader.close()
    appliance.wait_until(lambda: appliance.telemetry("/tokd/readers") == {})
    counters = appliance.telemetry("/tokd/counters")
    assert counters["taps_attached"] == counters["taps_detached"] == 1
    assert counters["readers_attached"] == counters["readers_detached"] == 1
    assert "readers_attached" not in appliance.telemetry("/tokd/counters,0")
    for bad in ("1", "-1", "x", "0x"):
        assert appliance.telemetry(f"/tokd/counters,{bad}") is None
    assert appliance.stop() == 0
    assert "taps: 1 attached" in appliance.said()


def test_one_too_many_hears_why_and_the_log_does_not_drown(
    start, gpt2_file, tmp_path: Path
) -> None:
    appliance = start("--vocab", str(gpt2_file)).ready()
    with ExitStack() as stack:

        def connect() -> socket.socket:
            s = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            s.settimeout(5)
            s.connect(str(tmp_path / "socket"))
            return s

        for mode in [READER] * 16 + [TAP] * 16:
            stack.enter_context(attach(tmp_path / "socket", mode)[0])
        for _ in range(8):  # in their first second they may be silent
            connect()
        heard = []
        for number in range(20):
            s = connect()
            if number % 2:
                time.sleep(0.01)
            s.send(struct.pack("<4I", 0x54544144, 1, READER, 0))
            heard.append(s.recv(4096)[-128:].split(b"\0")[0])
        # The machine may be so slow that the second is over.
        assert set(heard) <= {
            b"too many connections at once: try again",
            b"16 readers are attached, the limit: detach one",
        }
        assert heard[0].startswith(b"too many")
        appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["readers_refused"] >= 20)
    assert appliance.stop() == 0
    assert 1 <= appliance.said().count("connections refused: the limit is 40") <= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_one_takes_the_name_over_and_readers_know(
    start, gpt2_file, tmp_path: Path, number
) -> None:
    RingReader = pytest.importorskip("dpdk_tokd").RingReader
    path = tmp_path / "socket"
    first = start("--vocab", str(gpt2_file)).ready()
    with RingReader(path, reconnect=True) as reader, RingReader(path) as other:
        before = reader.instance
        assert int(first.telemetry("/tokd/info")["instance"], 16) == before
        first.stop(number)
        assert path.exists() == (number == signal.SIGKILL)
        assert list(other) == [] and other.closed
        assert reader.poll() is None and not reader.attached
        second = start("--vocab", str(gpt2_file)).ready()
        if number == signal.SIGKILL:
            assert "stale, from a process that has ended" in second.said()
        second.wait_until(lambda: reader.poll() is None and reader.attached)
        (restart,) = reader.restarts
        assert (restart.old_instance, restart.new_instance) == (before, reader.instance)
        assert int(second.telemetry("/tokd/info")["instance"], 16) == reader.instance != before


def tail(*options: str) -> subprocess.Popen[str]:
    if not TAIL.is_file():
        pytest.skip(f"{TAIL} is not built")
    return subprocess.Popen(
        [TAIL, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_tokd_tail_says_by_its_exit_code_how_it_ended(start, gpt2_file, tmp_path: Path) -> None:
    at = ["--socket", str(tmp_path / "socket")]
    none = tail(*at)
    out, err = none.communicate(timeout=10)
    assert (none.returncode, out) == (1, "")
    assert "No such file or directory: is dpdk-tokd running" in err

    appliance = start("--vocab", str(gpt2_file)).ready()
    silent = tail(*at, "--tap", "--timeout", "50")
    assert silent.wait(10) == 5
    assert "no record within 50 ms" in silent.communicate()[1]

    stopped, ended = tail(*at, "--stats"), tail(*at, "--tap")
    for one in (stopped, ended):
        assert "attached to" in one.stderr.readline()
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait(10) == 0
    assert "worker 0 lcore" in stopped.communicate()[1]
    assert appliance.stop() == 0
    assert ended.wait(10) == 3
    assert "dpdk-tokd has ended" in ended.communicate()[1]


def test_tokd_tail_refuses_wrong_use() -> None:
    one = tail("path")
    out, err = one.communicate(timeout=10)
    assert (one.returncode, out) == (2, "")
    assert "path: not an option; --help lists them" in err and err.count("\n") == 1


def test_the_documented_example_compiles_and_runs(
    start, gpt2_file, tmp_path: Path, compiled_example
) -> None:
    program = compiled_example(
        "doc/reference/ring.md",
        "lib/reader/libtokd-reader.a",
        **{"/run/dpdk-tokd.sock": str(tmp_path / "socket")},
    )
    appliance = start("--vocab", str(gpt2_file)).ready()
    with subprocess.Popen([program], stderr=subprocess.PIPE, text=True) as reader:
        appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["readers_attached"] == 1)
        assert appliance.stop() == 0
        assert reader.stderr is not None and "dpdk-tokd has ended" in reader.stderr.read()
    assert reader.returncode == 0
