# SPDX-License-Identifier: BSD-3-Clause
"""Each driver of the data path that a machine without a NIC can run, with the real appliance.

net_af_xdp and net_af_packet serve all other tests of this folder; net_ring those in tests/unit/app.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from bench.process import NotReady
from bench.programs import DPDK_TOKD
from dpdk_tokd import RingReader, Tokenizer
from memif_peer import MemifPeer
from netlab import NO_HUGE, NetAppliance, NetLab, why_not
from raw_client import RawStream, frame

CPUS = sorted(os.sched_getaffinity(0))
TEXT = ("Drivers differ; ids do not. naïve café, 東京, 123456. " * 400).encode()
TESTPMD = "dpdk-testpmd"


@pytest.fixture(scope="module")
def own_lab() -> Iterator[NetLab]:
    """A veth pair of this module's own: some tests change it."""
    if reason := why_not():
        pytest.skip(reason)
    with NetLab() as lab:
        yield lab


@pytest.fixture(scope="module")
def want(gpt2_file: Path) -> list[int]:
    return Tokenizer.load(str(gpt2_file)).encode(TEXT).tolist()


@pytest.fixture
def on(own_lab, gpt2_file, tmp_path) -> Callable[..., NetAppliance]:
    """Makes an appliance of a driver and arguments: on the veth pair, without huge pages."""

    def make(driver: str, *args: str, memory: list[str] = NO_HUGE, **others: str) -> NetAppliance:
        return NetAppliance(
            own_lab, gpt2_file, tmp_path, driver=driver, memory=memory, args=args, **others
        )

    return make


def serve_text(lab: NetLab, want: list[int], cuts: list[int] | None = None) -> None:
    with RawStream(lab) as stream:
        stream.finish(stream.packets(TEXT, cuts))
        assert stream.id_list() == want


def check_replies(appliance: NetAppliance, *, in_place: bool) -> None:
    """Ids of long replies came from the token ring itself, or none did."""
    counters = appliance.counters()
    assert (counters["reply_zero_copy_bytes"] > 0) == in_place
    if in_place:  # but for replies of few ids
        assert counters["reply_copied_bytes"] < counters["reply_zero_copy_bytes"]
    else:
        assert counters["reply_copied_bytes"] > 0


def dpdk_version() -> tuple[int, ...]:
    said = subprocess.run([DPDK_TOKD, "--version"], check=True, capture_output=True, text=True)
    return tuple(map(int, re.search(r"DPDK (\d+)\.(\d+)", said.stdout).groups()))


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def test_null_receives_and_drops(on):
    with on("net_null", devargs="") as appliance:
        appliance.wait_counters(lambda c: c["rx_packets"] > 1000 and c["drop_ether"] > 1000)
        assert appliance.stop() == 0


def test_ring_gives_back_what_is_sent_and_nothing_loops(on):
    """A net_ring port receives what it sends: an answer must never be answered."""
    with on("net_ring", devargs="") as appliance:
        time.sleep(0.2)
        assert appliance.counters()["tx_packets"] == 0
        assert appliance.stop() == 0


def test_tap(own_lab, want, on):
    """The kernel's end of a tap, put into the namespace, is the client."""
    name = f"{own_lab.namespace}t"
    with on("net_tap", "--ip", "10.97.0.1", devargs=f"iface={name}") as appliance:
        own_lab.take(name, "10.97.0.2/24")
        with RawStream(own_lab, host="10.97.0.1") as stream:
            stream.finish(stream.packets(TEXT))
            assert stream.id_list() == want
        check_replies(appliance, in_place=True)


def test_af_xdp_sends_copies(own_lab, want, on):
    """It takes no packet of several segments."""
    with on("net_af_xdp") as appliance:
        serve_text(own_lab, want)
        check_replies(appliance, in_place=False)


@pytest.mark.parametrize("least", ["64", "0"])
def test_replies_of_af_packet_are_in_place_if_asked(own_lab, want, least, on):
    with on("net_af_packet", "--zero-copy", least) as appliance:
        serve_text(own_lab, want)
        check_replies(appliance, in_place=least != "0")


@pytest.mark.parametrize("driver", ["net_af_packet", "net_af_xdp"])
def test_an_interface_keeps_its_address_when_another_is_served(own_lab, want, driver, on):
    def address_and_promiscuity() -> tuple[str, int]:
        show = ["ip", "-j", "-d", "link", "show", own_lab.server_if]
        link = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)[0]
        return link["address"], link["promiscuity"]

    address, promiscuity = address_and_promiscuity()
    with on(driver, "--mac", "02:00:00:00:00:77"):
        run("ip", "-n", own_lab.namespace, "neigh", "flush", "all")
        serve_text(own_lab, want)
        assert address_and_promiscuity() == (address, promiscuity + 1)
    run("ip", "-n", own_lab.namespace, "neigh", "flush", "all")
    assert address_and_promiscuity() == (address, promiscuity)


def test_jumbo_frames_on_af_packet(own_lab, want, on):
    """Datagrams of 8,000 bytes, unfragmented, in one mbuf each."""
    run("ip", "link", "set", own_lab.server_if, "mtu", "9000")
    run("ip", "-n", own_lab.namespace, "link", "set", own_lab.client_if, "mtu", "9000")
    try:
        with on(
            "net_af_packet",
            "--mbuf-room",
            "17000",
            memory=["--no-huge", "-m", "768"],
            devargs=f"iface={own_lab.server_if},blocksz=65536,framesz=16384",
        ) as appliance:
            serve_text(own_lab, want, cuts=list(range(8000, len(TEXT), 8000)))
            counters = appliance.counters()
            assert counters["rx_bytes"] / counters["rx_packets"] > 1500
            assert counters["rx_fragments"] == 0
    finally:
        run("ip", "link", "set", own_lab.server_if, "mtu", "1500")
        run("ip", "-n", own_lab.namespace, "link", "set", own_lab.client_if, "mtu", "1500")


@pytest.fixture
def mtu(own_lab) -> Iterator[Callable[[str], int]]:
    """Says the MTU of one of the host's interfaces. The veth pair has its own again afterwards."""

    def read(interface: str) -> int:
        return int(Path(f"/sys/class/net/{interface}/mtu").read_text())

    yield read
    run("ip", "link", "set", own_lab.server_if, "mtu", "1500")
    run("ip", "-n", own_lab.namespace, "link", "set", own_lab.client_if, "mtu", "1500")


def test_an_mtu_is_set_by_af_xdp_on_its_interface(own_lab, want, mtu, on):
    run("ip", "-n", own_lab.namespace, "link", "set", own_lab.client_if, "mtu", "3000")
    with on("net_af_xdp", "--mtu", "3000", "--mbuf-room", "3274") as appliance:
        assert mtu(own_lab.server_if) == 3000
        serve_text(own_lab, want, cuts=list(range(2908, len(TEXT), 2908)))  # as much as fits
        counters = appliance.counters()
        assert counters["rx_bytes"] / counters["rx_packets"] > 1500
        assert counters["rx_fragments"] == 0


@pytest.mark.parametrize(
    ("args", "least"), [(("--mtu", "3000"), 3274), (("--mbuf-room", "1773"), 1774)]
)
def test_frames_af_xdp_has_no_room_for_are_refused(args, least, on):
    """The kernel would drop them: it keeps 256 bytes of each mbuf."""
    log = refused_at_start(on("net_af_xdp", *args))
    assert f"give --mbuf-room {least} or more\n" in log


@pytest.mark.parametrize("driver", ["net_af_packet", "net_tap"])
def test_an_mtu_is_set_by_others_as_far_as_they_go(own_lab, mtu, driver, on):
    name = own_lab.server_if if driver == "net_af_packet" else f"{own_lab.namespace}t"
    # net_tap's in DPDK 22.11, and since
    most = "1500" if driver == "net_af_packet" else "(1504|16110)"
    with on(driver, "--mtu", "1492", devargs=f"iface={name}") as appliance:
        assert mtu(name) == 1492
        assert appliance.stop() == 0
    log = refused_at_start(on(driver, "--mtu", "16384", devargs=f"iface={name}"))
    assert re.search(f"--mtu 16384: must be 46 to {most} for this driver;", log), log


@pytest.mark.skipif(len(CPUS) < 2, reason="two workers need two CPUs")
def test_two_workers_on_two_queues_of_af_packet(own_lab, want, on):
    """PACKET_FANOUT_HASH spreads by flow: a stream stays on its worker, and both have some."""
    with on(
        "net_af_packet",
        devargs=f"iface={own_lab.server_if},qpairs=2,framecnt=4096",
        lcores=f"0@{CPUS[0]},1@{CPUS[1]}",
    ) as appliance:
        for _ in range(24):  # sockets, and so flows
            serve_text(own_lab, want)
        opened = []
        for worker in ("0", "1"):
            counters = appliance.telemetry(f"/tokd/counters,{worker}")
            # Had packets of a stream come to the other worker, it would have failed there.
            assert counters["streams_opened"] == counters["streams_done"]
            assert counters["drop_unknown"] == 0
            opened.append(counters["streams_opened"])
        assert sum(opened) == 24
        assert min(opened) > 0, opened


def write_capture(path: Path, frames: list[bytes]) -> None:
    # libpcap's file format: magic, version 2.4, zone, accuracy, length, Ethernet; then frames.
    with path.open("wb") as f:
        f.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, one in enumerate(frames):
            f.write(struct.pack("<IIII", 1, number, len(one), len(one)) + one)


def refused_at_start(appliance: NetAppliance) -> str:
    """The log of an appliance that is not ready, but ends with exit code 1."""
    with pytest.raises(NotReady, match="ended with 1"), appliance:
        pass
    return appliance.said()


def test_more_queues_of_af_packet_than_workers_are_refused(own_lab, on):
    """The kernel gives packets to all of them, polled or not."""
    log = refused_at_start(on("net_af_packet", devargs=f"iface={own_lab.server_if},qpairs=2"))
    lines = [s for s in log.splitlines() if "tokd.port" in s]
    assert len(lines) == 1, log
    assert "packets come to 2 queues, but 1 worker(s) poll one each" in lines[0]
    assert "set qpairs in its --vdev to 1, or give 2 lcores in -l" in lines[0]


def test_a_capture_that_no_worker_would_read_is_refused(tmp_path, on):
    capture = tmp_path / "in.pcap"
    write_capture(capture, [])
    log = refused_at_start(on("net_pcap", devargs=f"rx_pcap={capture},rx_pcap={capture}"))
    assert "set the number of rx_pcap or rx_iface in its --vdev to 1" in log


def test_channels_without_a_worker_are_warned_of(gpt2_file, tmp_path):
    """net_af_xdp leaves their packets to the kernel."""
    if reason := why_not():
        pytest.skip(reason)
    with (
        NetLab(rx_queues=2) as lab,
        NetAppliance(
            lab,
            gpt2_file,
            tmp_path,
            driver="net_af_xdp",
            memory=NO_HUGE,
            args=(),
            devargs=f"iface={lab.server_if}",
        ) as appliance,
    ):
        assert f"{lab.server_if} has 2 receive channels, of which 1 are polled" in appliance.said()
        assert f"ethtool -L {lab.server_if} rx 1" in appliance.said()


def test_a_capture_is_replayed_without_a_client(own_lab, want, tmp_path, on):
    """net_pcap in, ids out of the token ring."""
    with RawStream(own_lab) as stream:
        packets = stream.packets(TEXT)
        stream_id = stream.stream_id
    capture = tmp_path / "in.pcap"
    write_capture(capture, [frame(own_lab, packet) for packet in packets])
    mac = ":".join(f"{b:02x}" for b in own_lab.mac(own_lab.server_if))
    with (
        on(
            "net_pcap", "--mac", mac, "--wait-readers", "1", devargs=f"rx_pcap={capture}"
        ) as appliance,
        RingReader(appliance.socket) as reader,
    ):
        ids: list[int] = []
        for record in reader:
            assert record.stream_id == stream_id
            ids += record.tokens.tolist()
            last = record.last
            record.release()
            if last:
                break
        assert ids == want
        assert appliance.counters()["streams_done"] == 1


@contextmanager
def forwarder(lab: NetLab, memory: list[str], prefix: str, other: str, log: Path) -> Iterator[None]:
    """Frames between the end of the veth pair and `other`, by DPDK's own forwarder."""
    cpu = CPUS[0]
    command = [TESTPMD, "--lcores", f"0@{cpu},1@{cpu}", "--no-pci", *memory]
    command += ["--file-prefix", prefix, "--vdev", other]
    command += ["--vdev", f"net_af_packet0,iface={lab.server_if}"]
    command += ["--", "--forward-mode=io", "--total-num-mbufs=4096", "--auto-start"]
    # It ends when its standard input does; a period keeps it from ending at once.
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--stats-period", "60"], stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    try:
        deadline = time.monotonic() + 30
        while b"io packet forwarding" not in log.read_bytes():
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)


needs_testpmd = pytest.mark.skipif(
    shutil.which(TESTPMD) is None or len(CPUS) < 2,
    reason=f"needs {TESTPMD} (apt-get install dpdk) and two CPUs",
)


@needs_testpmd
def test_memif(own_lab, want, tmp_path, on):
    socket = tmp_path / "memif.sock"
    # What crosses testpmd keeps its addresses: the appliance takes those of the veth.
    mac = ":".join(f"{b:02x}" for b in own_lab.mac(own_lab.server_if))
    with (
        on(
            "net_memif", "--mac", mac, devargs=f"role=server,socket={socket},socket-abstract=no"
        ) as appliance,
        forwarder(
            own_lab,
            NO_HUGE,
            f"{appliance.prefix}pmd",
            f"net_memif0,role=client,socket={socket},socket-abstract=no",
            tmp_path / "testpmd.log",
        ),
    ):
        serve_text(own_lab, want)
        assert appliance.counters()["streams_done"] == 1
        check_replies(appliance, in_place=dpdk_version() < (23, 3))


@needs_testpmd
def test_virtio_user(own_lab, huge, want, tmp_path, on):
    if huge is None:
        pytest.skip("virtio_user shares memory with its peer: needs 256 MiB of free huge pages")
    socket = tmp_path / "vhost.sock"
    mac = ":".join(f"{b:02x}" for b in own_lab.mac(own_lab.server_if))
    small = [*huge, "-m", "128", "--single-file-segments"]
    with (
        forwarder(
            own_lab,
            small,
            f"pmd{os.getpid()}",
            f"net_vhost0,iface={socket}",
            tmp_path / "testpmd.log",
        ),
        on(
            "net_virtio_user",
            "--mac",
            mac,
            "--streams",
            "256",
            "--mbufs",
            "4096",
            memory=small,
            devargs=f"path={socket}",
        ) as appliance,
    ):
        serve_text(own_lab, want)
        assert appliance.counters()["streams_done"] == 1
        check_replies(appliance, in_place=False)  # its peer maps EAL's memory alone
        assert "checksums by the device: rx UDP, tx UDP" in appliance.said()


def test_memif_peers_may_go_while_the_worker_is_off_its_cpu(gpt2_file, tmp_path):
    """The driver unmaps their rings: not while a worker is in the middle of a burst."""
    if reason := why_not():
        pytest.skip(reason)
    sock, cpu = tmp_path / "memif.sock", CPUS[-1]
    spin = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    with ExitStack() as stack:
        appliance = stack.enter_context(
            NetAppliance(
                None, gpt2_file, tmp_path, driver="net_memif", memory=NO_HUGE, args=(),
                lcores=str(cpu), devargs=f"role=server,socket={sock},socket-abstract=no",
            )
        )  # fmt: skip
        for _ in range(3):
            stack.callback(subprocess.Popen([sys.executable, "-c", spin]).kill)
        for i in range(240):
            with MemifPeer(sock):
                time.sleep(0.001 * (i % 8))
            time.sleep(0.016)  # the worker goes on before another's rings lie where these were
        assert appliance.running
        assert appliance.stop() == 0
