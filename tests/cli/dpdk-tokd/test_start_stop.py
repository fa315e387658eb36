# SPDX-License-Identifier: BSD-3-Clause
"""From start to signal."""

import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from appliance import Appliance, run_time_folder

ATTACH = struct.pack("<4I", 0x54544144, 1, 1, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_prints_the_counts_and_exits_0(start, gpt2_file, number) -> None:
    appliance = start("--vocab", str(gpt2_file))
    appliance.wait_for("ready: udp 10.0.0.1 port 9000 on net_null0 (net_null)")
    appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["drop_ether"] > 0)
    assert appliance.stop(number) == 0
    assert "draining 0 open streams" in appliance.said()
    for name in ("rx_packets", "tx_packets", "streams_done"):
        assert name in appliance.said()
    assert "drop_ether" in appliance.said()  # what net_null makes is nobody's protocol
    assert "drop_arp" not in appliance.said()  # zero


def test_the_log_is_not_needed_to_serve(start, gpt2_file: Path, tmp_path: Path) -> None:
    """Whoever reads it by a pipe may be gone."""
    log = tmp_path / "log"
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    appliance = start("--vocab", str(gpt2_file), log=log)
    said = b""
    while b"ready:" not in said:
        piece = os.read(reader, 65536)
        assert piece, said
        said += piece
    os.close(reader)
    for _ in range(3):  # each attaches, which is logged
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(5)
            s.connect(str(tmp_path / "socket"))
            s.send(ATTACH)
            answer, fds, _, _ = socket.recv_fds(s, 4096, 64)
            assert struct.unpack_from("<4I", answer)[2] == 1
            for fd in fds:
                os.close(fd)
    assert appliance.telemetry("/tokd/info")["state"] == "serving"
    assert appliance.stop() == 0


def test_every_lcore_is_a_worker_with_a_ring(start, gpt2_file: Path, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    appliance = start("--vocab", str(gpt2_file), lcores=f"{cpus[0]},{cpus[1]}").ready()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(str(tmp_path / "socket"))
        s.send(ATTACH)
        answer, fds, _, _ = socket.recv_fds(s, 4096, 64)
        assert struct.unpack_from("<4I", answer)[2] == 2
        assert len(fds) == 3
        for fd in fds:
            os.close(fd)
    assert appliance.stop() == 0
    assert "worker 0, lcore" in appliance.said()
    assert "worker 1, lcore" in appliance.said()


def test_a_service_lcore_is_no_worker(start, gpt2_file: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    appliance = start(
        "--vocab",
        str(gpt2_file),
        eal=["-S", str(cpus[1]), "--vdev=net_null0"],
        lcores=f"{cpus[0]},{cpus[1]}",
    )
    appliance.wait_for(", 1 workers,")
    assert appliance.stop() == 0


def test_a_second_one_on_the_same_socket_is_refused(start, gpt2_file: Path) -> None:
    first = start("--vocab", str(gpt2_file)).ready()
    second = start("--vocab", str(gpt2_file))
    second.wait_for("another dpdk-tokd answers")
    assert second.stop() == 1
    assert first.stop() == 0


def test_two_that_start_together_do_not_take_each_others_socket(
    start, gpt2_file: Path, tmp_path: Path
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # as one does that has looked, and does not listen yet
    second = start("--vocab", str(gpt2_file))
    second.wait_for("another process has locked its folder")
    assert second.stop() == 1
    third = start("--vocab", str(gpt2_file))
    third.wait_for("token ring of")  # the socket is soon to come, or is being tried
    os.close(folder)
    third.wait_for("ready:")
    assert third.stop() == 0


def eal_files(appliance: Appliance) -> list[str]:
    """Of its --file-prefix."""
    return sorted(path.name for path in run_time_folder(appliance.prefix).glob("*"))


@pytest.mark.parametrize("sandbox", ["yes", "no"])
def test_no_file_of_eal_is_left_at_the_end(start, gpt2_file: Path, sandbox: str) -> None:
    appliance = start("--vocab", str(gpt2_file), f"--sandbox={sandbox}").ready()
    assert {"config", "fbarray_memzone"} <= set(eal_files(appliance))
    assert appliance.stop() == 0
    assert not run_time_folder(appliance.prefix).exists()


def test_files_of_a_killed_one_go_with_the_next(start, gpt2_file: Path) -> None:
    first = start("--vocab", str(gpt2_file)).ready()
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    assert "config" in eal_files(first)
    second = start("--vocab", str(gpt2_file), prefix=first.prefix).ready()
    assert second.stop() == 0
    assert not run_time_folder(first.prefix).exists()


def test_one_that_fails_leaves_the_files_of_the_one_that_runs(start, gpt2_file: Path) -> None:
    first = start("--vocab", str(gpt2_file)).ready()
    before = eal_files(first)
    second = start("--vocab", str(gpt2_file), prefix=first.prefix)
    second.wait_for("if another process uses this --file-prefix")
    assert second.stop() == 1
    assert eal_files(first) == before
    assert first.telemetry("/tokd/info")["state"] == "serving"
    assert first.stop() == 0


def test_files_that_a_secondary_process_uses_are_left_to_it(start, gpt2_file: Path) -> None:
    appliance = start("--vocab", str(gpt2_file)).ready()
    folder = run_time_folder(appliance.prefix)
    with (folder / "fbarray_memzone").open() as used:
        fcntl.flock(used, fcntl.LOCK_SH)  # as EAL does
        assert appliance.stop() == 0
        assert {"config", "fbarray_memzone"} <= set(eal_files(appliance))


def test_no_port_says_how_to_give_one(start, gpt2_file: Path) -> None:
    appliance = start("--vocab", str(gpt2_file), eal=[])
    appliance.wait_for("no DPDK port")
    assert appliance.stop() == 1
    for remedy in (
        "-a 0000:03:00.0 -- ",
        "--vdev=net_af_packet0,iface=",
        "--vdev=net_af_xdp0,iface=",
        "add --no-pci --vdev=net_tap0,",
    ):
        assert remedy in appliance.said()


def test_a_named_device_that_is_none_is_the_cause(start, gpt2_file: Path) -> None:
    named = ["--vdev=net_pcap0,no=1", "-a", "0000:7f:1f.7", "-a", "auxiliary:mlx5_core.sf.4"]
    appliance = start("--vocab", str(gpt2_file), eal=named)
    appliance.wait_for('--vdev net_pcap0: its driver refuses it, with the arguments "no=1"')
    appliance.wait_for("-a 0000:7f:1f.7: no driver took it")
    appliance.wait_for("-a mlx5_core.sf.4: no driver took it")
    assert appliance.stop() == 1
    assert "no DPDK port" not in appliance.said()


def test_an_interface_whose_name_is_too_long_is_named(start, gpt2_file: Path) -> None:
    appliance = start("--vocab", str(gpt2_file), eal=["--vdev=net_tap0,iface=averyveryverylong"])
    appliance.wait_for("iface=averyveryverylong: an interface's name has at most 15 characters")
    assert appliance.stop() == 1


def test_a_full_runtime_folder_is_an_error(start, gpt2_file, tmp_path: Path, monkeypatch) -> None:
    """EAL maps files there: where the file system is full, a store to them is a SIGBUS."""
    full = tmp_path / "run"
    full.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("cannot mount a tmpfs")
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(full))
    try:
        appliance = start("--vocab", str(gpt2_file))
        appliance.wait_for(f"{full}: No space left on device for the")
        assert appliance.stop() == 1
    finally:
        subprocess.run(["umount", "-l", full], check=True)


def test_a_wrong_port_is_answered_with_those_there_are(start, gpt2_file: Path) -> None:
    appliance = start("--vocab", str(gpt2_file), "--port", "3")
    appliance.wait_for("--port 3: no such port; ports: 0 (net_null0)")
    assert appliance.stop() == 1


def test_a_port_below_another_one_is_refused_and_all_are_closed(start, gpt2_file: Path) -> None:
    two = ["--vdev=net_failsafe0,dev(net_null0)"]
    appliance = start("--vocab", str(gpt2_file), "--port", "1", eal=two)
    appliance.wait_for("--port 1: part of another port; ports: 0 (net_failsafe0)")
    assert appliance.stop() == 1


def test_a_missing_vocabulary_is_named(start) -> None:
    appliance = start("--vocab", "/nonexistent/vocabulary.json")
    appliance.wait_for("/nonexistent/vocabulary.json")
    assert appliance.stop() == 2  # as --check-config


def test_fewer_queues_than_workers_are_refused(start, gpt2_file: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    if os.geteuid() != 0:
        pytest.skip("net_af_packet needs root")
    appliance = start(
        "--vocab",
        str(gpt2_file),
        eal=["--vdev=net_af_packet0,iface=lo"],
        lcores=f"{cpus[0]},{cpus[1]}",
    )
    appliance.wait_for("2 workers need a queue pair each, the port has 1 RX and 1 TX queues")
    assert appliance.stop() == 1
    assert "qpairs=2" in appliance.said()


def test_frames_that_fit_no_mbuf_are_refused_with_the_remedy(start, gpt2_file: Path) -> None:
    """net_null puts each frame into one mbuf."""
    appliance = start("--vocab", str(gpt2_file), "--mtu", "9000")
    assert appliance.wait(30) == 1
    appliance.stop()
    assert "frames of up to 9018 bytes (MTU 9000) do not fit --mbuf-room 2048" in appliance.said()
    assert "give --mbuf-room 9018 or more\n" in appliance.said()
    tagged = start("--vocab", str(gpt2_file), "--mtu", "9000", "--vlan", "7", "--mbuf-room", "9018")
    assert tagged.wait(30) == 1
    tagged.stop()
    assert "give --mbuf-room 9022 or more\n" in tagged.said()


def test_jumbo_frames_take_one_mbuf_or_several(start, gpt2_file: Path) -> None:
    big = ["--mtu", "9000", "--mbuf-room", "9018", "--mbufs", "4096"]
    appliance = start("--vocab", str(gpt2_file), *big)
    appliance.wait_for("frames of up to 9018 bytes, in an mbuf of 9018\n")
    appliance.wait_for("ready:")
    assert appliance.stop() == 0
    # net_ring offers several mbufs a frame, and has no MTU to set.
    appliance = start("--vocab", str(gpt2_file), "--mtu", "9000", eal=["--vdev=net_ring0"])
    appliance.wait_for("frames of up to 9018 bytes, in several mbufs of 2048\n")
    appliance.wait_for("the driver cannot set the MTU of what it is attached to")
    appliance.wait_for("ready:")
    assert appliance.stop() == 0


@pytest.fixture
def small_vocab(gpt2_file: Path, tmp_path: Path) -> Path:
    """The first thousand tokens of GPT-2."""
    small = tmp_path / "small.tiktoken"
    small.write_bytes(b"".join(gpt2_file.read_bytes().splitlines(keepends=True)[:1000]))
    return small


def test_several_vocabularies_are_loaded(start, gpt2_file: Path, small_vocab: Path) -> None:
    both = f"{gpt2_file},{small_vocab}"
    appliance = start("--vocab", both, "--pretokenizer", "gpt2").ready()
    vocabs = appliance.telemetry("/tokd/vocabs")
    assert [vocabs[i]["ids"] for i in ("0", "1")] == [50257, 1000]
    assert appliance.stop() == 0


def test_a_vocabulary_named_twice_is_refused(start, gpt2_file: Path) -> None:
    appliance = start("--vocab", f"{gpt2_file},{gpt2_file}")
    assert appliance.wait(30) == 2
    appliance.stop()
    assert "are the same vocabulary" in appliance.said()


@pytest.mark.parametrize("names", ["gpt2,,gpt2", ",".join("abcdefghi")])
def test_a_list_of_vocabularies_that_is_none_is_refused(start, names: str) -> None:
    appliance = start("--vocab", names)
    assert appliance.wait(30) == 2
    appliance.stop()
    assert "--vocab" in appliance.said()


def test_a_ring_that_memory_does_not_hold_is_an_error(start, gpt2_file: Path) -> None:
    """Asked for, its pages would be taken from whoever the kernel kills for them."""
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    assert available is not None
    if int(available[1]) > 60 << 20:
        pytest.skip("more than 60 GiB of memory are free: 64 GiB might be had")
    appliance = start("--vocab", str(gpt2_file), "--ring-size", "64G")
    assert appliance.wait(60) == 1
    appliance.stop()
    assert "cannot allocate a token ring of 68719" in appliance.said()
    assert "lower --ring-size" in appliance.said()
