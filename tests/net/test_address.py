# SPDX-License-Identifier: BSD-3-Clause
"""The appliance without --ip: which addresses it serves on each kind of port, and whether the
kernel, where it has the same ones, keeps quiet."""

import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from bench.appliance import DENIED
from bench.process import Process
from bench.programs import DPDK_TOKD
from dpdk_tokd import Client, Tokenizer
from netlab import NO_HUGE, SERVER_IP, SERVER_IP6, NetAppliance, NetLab, why_not
from raw_client import RawStream
from test_drivers import CPUS, forwarder, needs_testpmd, refused_at_start, run

TEXT = ("Which address? Die erste: naïve café, 東京, 123456. " * 100).encode()
BOTH = (f"{SERVER_IP}/24", f"{SERVER_IP6}/64")
TEXT_PORT = 9001

Serve = Callable[..., NetAppliance]


@pytest.fixture(scope="module")
def want(gpt2_file: Path) -> list[int]:
    return Tokenizer.load(str(gpt2_file)).encode(TEXT).tolist()


@pytest.fixture
def serve(gpt2_file: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts an appliance without --ip; it is stopped at the end, with exit code 0."""
    with ExitStack() as stack:

        def start(
            lab: NetLab,
            driver: str,
            *args: str,
            devargs: str | None = None,
            lcores: str | None = None,
        ) -> NetAppliance:
            folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            return stack.enter_context(
                NetAppliance(
                    lab, gpt2_file, folder, driver=driver, memory=NO_HUGE, args=args, ip=None,
                    devargs=devargs, lcores=lcores,
                )
            )  # fmt: skip

        yield start


@contextmanager
def lab_with(*addresses: str) -> Iterator[NetLab]:
    """A veth pair of the test's own, whose server's end has these addresses in the kernel."""
    if reason := why_not():
        pytest.skip(reason)
    with NetLab(ipv6=True, addresses=addresses) as lab:
        yield lab


@pytest.fixture
def lab2() -> Iterator[NetLab]:
    with lab_with(*BOTH) as lab:
        yield lab


def check_text(lab: NetLab, host: str, want: list[int]) -> None:
    with RawStream(lab, host=host) as stream:
        stream.finish(stream.packets(TEXT))
        assert stream.id_list() == want


def ping(lab: NetLab, host: str) -> str:
    if shutil.which("ping") is None:
        pytest.skip("no ping: apt-get install iputils-ping")
    command = ["ip", "netns", "exec", lab.namespace, "ping", "-c", "2", "-i", "0.1", "-W", "2"]
    return subprocess.run([*command, host], capture_output=True, text=True, check=False).stdout


def unreachables(lab: NetLab) -> int:
    """Messages "destination unreachable" that came to the clients, of both families. Those that the
    kernel has sent would be other tests' as well."""

    def received() -> int:
        of = Path("/proc/thread-self/net")
        head, values = (
            line.split()
            for line in (of / "snmp").read_text().splitlines()
            if line.startswith("Icmp:")
        )
        count = int(values[head.index("InDestUnreachs")])
        for line in (of / "snmp6").read_text().splitlines():
            name, value = line.split()
            count += int(value) if name == "Icmp6InDestUnreachs" else 0
        return count

    return lab.call(received)


def link_local(mac: bytes) -> str:
    """RFC 4291, appendix A."""
    eui = bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]
    return socket.inet_ntop(socket.AF_INET6, b"\xfe\x80" + bytes(6) + eui)


def test_addresses_of_an_interface_under_af_xdp(lab2, serve, want):
    """The appliance is the host: it answers ARP, neighbours and ping. The operator is warned."""
    appliance = serve(lab2, "net_af_xdp")
    info = appliance.telemetry("/tokd/info")
    assert (info["ip"], info["ip6"]) == (SERVER_IP, SERVER_IP6)
    assert (info["address_from"], info["interface"]) == ("interface", lab2.server_if)
    assert info["arp_and_ping_by"] == "dpdk-tokd"
    assert f"serving {SERVER_IP} {SERVER_IP6}, from {lab2.server_if};" in appliance.said()
    assert "the kernel no longer receives packets of the 1 queue(s) of" in appliance.said()
    for host in (SERVER_IP, SERVER_IP6):
        check_text(lab2, host, want)
        assert " 0% packet loss" in ping(lab2, host)
    counters = appliance.counters()
    assert min(counters[c] for c in ("arp_replies", "nd_replies", "icmp_replies")) > 0
    assert counters["left_to_kernel"] == 0


@pytest.mark.parametrize(("driver", "more"), [("net_af_packet", ""), ("net_pcap", ",phy_mac=1")])
def test_addresses_of_an_interface_that_the_kernel_shares(lab2, serve, want, driver, more):
    """The kernel is the host: ARP, neighbours and ping are answered once, datagrams by us alone."""
    devargs = f"iface={lab2.server_if}{more}"
    appliance = serve(lab2, driver, "--text-port", str(TEXT_PORT), devargs=devargs)
    assert "multicast" not in appliance.said()
    info = appliance.telemetry("/tokd/info")
    assert (info["ip"], info["ip6"]) == (SERVER_IP, SERVER_IP6)
    assert info["arp_and_ping_by"] == "kernel"
    assert "no longer receives" not in appliance.said()
    before = unreachables(lab2)
    for host in (SERVER_IP, SERVER_IP6):
        check_text(lab2, host, want)
        shown = ping(lab2, host)
        assert " 0% packet loss" in shown and "DUP" not in shown, shown
        with text_socket(lab2, host) as s:
            s.send(b"Hello world")
            assert s.recv(100) == b"15496 995\n"
        with lab2.call(lambda h=host: Client(h)) as client:
            assert client.tokenize(TEXT).tolist() == want
    assert unreachables(lab2) == before
    counters = appliance.counters()
    assert not any(counters[c] for c in ("arp_replies", "nd_replies", "icmp_replies"))
    assert counters["left_to_kernel"] > 0
    assert appliance.stop() == 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((SERVER_IP, 9000))  # the port is let go


def text_socket(lab: NetLab, host: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = lab.call(lambda: socket.socket(family, socket.SOCK_DGRAM))
    s.settimeout(5)
    s.bind(("", 20000))
    s.connect((host, TEXT_PORT))
    return s


def test_an_address_by_option_is_served_as_it_always_was(lab2, serve, want):
    """Of an interface under af_packet: the kernel answers as well, and is not kept from it."""
    appliance = serve(lab2, "net_af_packet", "--ip", SERVER_IP)
    info = appliance.telemetry("/tokd/info")
    assert (info["ip"], info["ip6"], info["address_from"]) == (SERVER_IP, "", "options")
    assert info["arp_and_ping_by"] == "dpdk-tokd"
    before = unreachables(lab2)
    with lab2.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        s.sendto(b"no text", (SERVER_IP, 9000))
        appliance.wait_counters(lambda c: c["rx_packets"] > 0)
        appliance.wait_until(lambda: unreachables(lab2) > before)


@pytest.mark.skipif(len(CPUS) < 2, reason="four workers need two CPUs at least")
def test_four_workers_serve_the_address_of_an_interface(lab2, serve, want):
    lcores = ",".join(f"{i}@{CPUS[i % len(CPUS)]}" for i in range(4))
    devargs = f"iface={lab2.server_if},qpairs=4,framecnt=4096"
    appliance = serve(lab2, "net_af_packet", lcores=lcores, devargs=devargs)
    before = unreachables(lab2)
    for _ in range(8):
        check_text(lab2, SERVER_IP, want)
    assert appliance.counters()["streams_done"] == 8
    assert unreachables(lab2) == before


def test_addresses_that_do_not_last_are_passed_over(lab2, serve):
    """Linux lists the newest IPv6 address first; one that is deprecated is not for new peers."""
    dev = ("dev", lab2.server_if)
    run("ip", "addr", "add", "2001:db8:99::dead/64", *dev, "nodad", "preferred_lft", "0")
    run("ip", "addr", "add", "169.254.7.7/16", *dev)
    run("ip", "addr", "add", "10.99.0.77/24", *dev, "label", f"{lab2.server_if}:1")
    info = serve(lab2, "net_af_packet").telemetry("/tokd/info")
    assert (info["ip"], info["ip6"]) == (SERVER_IP, SERVER_IP6)


@pytest.mark.parametrize("driver", ["net_af_xdp", "net_af_packet"])
def test_an_interface_without_a_global_address_is_served_at_its_link_local_one(serve, want, driver):
    with lab_with("fe80::7/64") as lab:
        mac = lab.mac(lab.server_if)
        run("ip", "addr", "del", f"{link_local(mac)}/64", "dev", lab.server_if)
        appliance = serve(lab, driver)
        info = appliance.telemetry("/tokd/info")
        assert (info["ip"], info["ip6"], info["address_from"]) == ("", "fe80::7", "interface")
        before = unreachables(lab)
        check_text(lab, f"fe80::7%{lab.client_if}", want)
        assert unreachables(lab) == before


@pytest.mark.parametrize("driver", ["net_af_xdp", "net_af_packet"])
def test_an_interface_without_any_address_is_served_at_one_made_of_its_mac(serve, want, driver):
    with lab_with() as lab:
        appliance = serve(lab, driver)
        mac = lab.mac(lab.server_if)
        info = appliance.telemetry("/tokd/info")
        assert (info["ip6"], info["address_from"]) == (link_local(mac), "mac")
        assert info["arp_and_ping_by"] == "dpdk-tokd"
        assert bytes.fromhex(info["mac"].replace(":", "")) == mac
        check_text(lab, f"{info['ip6']}%{lab.client_if}", want)
        assert " 0% packet loss" in ping(lab, f"{info['ip6']}%{lab.client_if}")


def test_a_tap_is_served_beside_the_kernel_at_its_other_end(serve, want):
    """The kernel makes the same address of the same MAC: ours differs in a bit."""
    with lab_with() as lab:
        name = f"{lab.namespace}t"
        appliance = serve(lab, "net_tap", devargs=f"iface={name}")
        mac = lab.mac(name)
        ours = mac[:5] + bytes([mac[5] ^ 1])
        info = appliance.telemetry("/tokd/info")
        assert (info["ip6"], info["address_from"]) == (link_local(ours), "mac")
        assert f"clients add their interface, as in {info['ip6']}%{name}" in appliance.said()
        run("ip", "link", "set", name, "netns", lab.namespace)
        inside = ("ip", "netns", "exec", lab.namespace)
        run(*inside, "sysctl", "-qw", f"net.ipv6.conf.{name}.accept_dad=0")
        run(*inside, "ip", "link", "set", name, "up")
        check_text(lab, f"{info['ip6']}%{name}", want)


@needs_testpmd
def test_a_port_without_an_interface_is_served_at_an_address_made_of_its_mac(serve, want, tmp_path):
    """net_memif, whose peer is DPDK's forwarder with the veth pair behind."""
    socket_path = tmp_path / "memif.sock"
    devargs = f"socket={socket_path},socket-abstract=no"
    with lab_with() as lab:
        appliance = serve(lab, "net_memif", devargs=f"role=server,{devargs}")
        info = appliance.telemetry("/tokd/info")
        mac = bytes.fromhex(info["mac"].replace(":", ""))
        assert (info["ip6"], info["address_from"]) == (link_local(mac), "mac")
        assert info["interface"] == ""
        with forwarder(
            lab,
            NO_HUGE,
            f"{appliance.prefix}pmd",
            f"net_memif0,role=client,{devargs}",
            tmp_path / "testpmd.log",
        ):
            host = f"{info['ip6']}%{lab.client_if}"
            assert "bytes from" in ping(lab, host)  # the link is up, the neighbour known
            check_text(lab, host, want)


def refused(lab: NetLab, gpt2_file: Path, folder: Path, *args: str) -> str:
    return refused_at_start(
        NetAppliance(
            lab, gpt2_file, folder, driver="net_af_packet", memory=NO_HUGE, args=args, ip=None
        )
    )


def test_a_port_that_another_program_has_is_refused(lab2, gpt2_file, tmp_path):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as other:
        other.bind((SERVER_IP6, 9000))
        log = refused(lab2, gpt2_file, tmp_path)
    assert f"udp {SERVER_IP6} port 9000: cannot bind the socket that keeps the kernel" in log
    assert "end the program that has the port (ss -lunp), or give another --udp-port" in log


def test_two_appliances_share_an_interface_if_their_ports_differ(
    lab2, serve, want, gpt2_file, tmp_path
):
    serve(lab2, "net_af_packet")
    (tmp_path / "second").mkdir()
    assert "Address already in use" in refused(lab2, gpt2_file, tmp_path / "second")
    second = serve(lab2, "net_af_packet", "--udp-port", "9002")
    before = unreachables(lab2)
    check_text(lab2, SERVER_IP, want)
    assert second.counters()["streams_opened"] == 0
    assert unreachables(lab2) == before


def test_the_address_of_a_vlan_is_asked_for(lab2, gpt2_file, tmp_path):
    log = refused(lab2, gpt2_file, tmp_path, "--vlan", "5")
    assert f"--vlan 5: the addresses of {lab2.server_if} are for untagged frames" in log


@pytest.mark.parametrize("driver", ["net_af_xdp", "net_af_packet"])
def test_an_interface_that_vanishes_ends_nothing(lab2, serve, want, driver):
    appliance = serve(lab2, driver)
    check_text(lab2, SERVER_IP, want)
    run("ip", "link", "del", lab2.server_if)
    time.sleep(0.3)
    assert appliance.telemetry("/tokd/info")["ip"] == SERVER_IP
    assert appliance.stop() == 0


def test_the_options_for_a_tap_that_no_port_is_answered_with_work(gpt2_file, tmp_path):
    """Added to the options given, as it says."""
    if reason := why_not():
        pytest.skip(reason)
    own = ["--no-huge", "-m", "512", "--file-prefix", f"pytaddr{CPUS[-1]}"]
    eal = [str(DPDK_TOKD), "-l", str(CPUS[-1]), *own]
    command = [*eal, "--no-pci", "--", "--vocab", str(gpt2_file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    for remedy in ("-a 0000:03:00.0 -- ", "--vdev=net_af_xdp0,iface=eth1,queue_count=1 -- "):
        assert remedy in said
    (line,) = (line for line in said.splitlines() if "net_tap0" in line)
    added = shlex.split(line.partition(" add ")[2].partition(" to the EAL options")[0])
    command = [*eal, *added, *command[-3:], "--socket", str(tmp_path / "socket")]
    with Process("dpdk-tokd", command, tmp_path / "log") as appliance:
        assert "ready: udp fe80::" in appliance.wait_ready(60)
        assert appliance.stop() == 0
    assert not DENIED.search(appliance.said())
