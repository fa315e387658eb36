# SPDX-License-Identifier: BSD-3-Clause
"""What ordinary hosts send besides small IPv4 datagrams: IPv6, fragments, VLAN tags."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dpdk_tokd import Client, Tokenizer
from ended import ended
from netlab import DRIVERS, NO_HUGE, SERVER_IP, SERVER_IP6, NetAppliance, NetLab, why_not
from raw_client import RawStream, frame, send_frames

VLAN = 42
HOSTS = {"ipv4": SERVER_IP, "ipv6": SERVER_IP6}
TEXT = ("Fragments and tags: naïve café, 東京, and 123456 more. " * 120).encode()


@pytest.fixture(scope="module")
def lab6() -> Iterator[NetLab]:
    if reason := why_not():
        pytest.skip(reason)
    with NetLab(ipv6=True) as lab:
        yield lab


@pytest.fixture
def own_lab() -> Iterator[NetLab]:
    """For an appliance of a test's own, while `dual` has the interface of lab6."""
    if reason := why_not():
        pytest.skip(reason)
    with NetLab(ipv6=True) as lab:
        yield lab


@pytest.fixture(scope="module", params=DRIVERS)
def dual(
    request: pytest.FixtureRequest,
    lab6: NetLab,
    gpt2_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NetAppliance]:
    """An appliance that serves both families."""
    args = ("--ip6", SERVER_IP6)
    folder = tmp_path_factory.mktemp("tokd")
    with NetAppliance(
        lab6, gpt2_file, folder, driver=request.param, memory=NO_HUGE, args=args
    ) as appliance:
        yield appliance


def with_tag(untagged: bytes, vlan: int) -> bytes:
    """IEEE 802.1Q 9.6."""
    return untagged[:12] + b"\x81\x00" + vlan.to_bytes(2, "big") + untagged[12:]


def whole_ids(gpt2_file: Path, text: bytes) -> list[int]:
    return Tokenizer.load(str(gpt2_file)).encode(text).tolist()


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_texts_of_both_families_are_served(lab6, dual, gpt2_file, host):
    with RawStream(lab6, host=host) as stream:
        stream.finish(stream.packets(TEXT))
        assert stream.id_list() == whole_ids(gpt2_file, TEXT)


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_full_packets_of_both_families_fit_the_mtu(lab6, dual, gpt2_file, host):
    """Neither side's are cut or refused, where nothing is lost nothing is sent again."""
    text = TEXT * (100_000 // len(TEXT) + 1)
    before = dual.counters()
    with lab6.call(lambda: Client(host)) as client:
        assert client.tokenize(text).tolist() == whole_ids(gpt2_file, text)
    after = dual.counters()
    for name in ("tx_full", "rx_fragments", "drop_ip_fragment"):
        assert after[name] == before[name], name


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_a_datagram_in_fragments_is_one(lab6, dual, gpt2_file, host):
    """Under net_af_packet, Linux puts those of IPv4 together (PACKET_FANOUT_FLAG_DEFRAG) and cuts
    the frame to the driver's framesz: it is dropped and counted, and whole packets are served. With
    DPDK 25.11 and one queue it does not."""
    before = dual.counters()
    with RawStream(lab6, host=host) as stream:
        if dual.driver == "net_af_packet" and host == SERVER_IP:
            version = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True)
            if version.stdout < b"25.11":
                stream.send(stream.packets(TEXT, cuts=[5000])[0])
                dual.wait_counters(lambda c: c["drop_ip_header"] > before["drop_ip_header"])
                stream.finish(stream.packets(TEXT))
                assert stream.id_list() == whole_ids(gpt2_file, TEXT)
                return
        stream.finish(stream.packets(TEXT, cuts=[5000]))
        assert stream.id_list() == whole_ids(gpt2_file, TEXT)
    after = dual.counters()
    assert after["rx_reassembled"] >= before["rx_reassembled"] + 1
    assert after["rx_fragments"] >= before["rx_fragments"] + 4


def test_neighbours_find_the_ipv6_address(lab6, dual):
    inside = ["ip", "-n", lab6.namespace, "-6", "neigh"]
    subprocess.run([*inside, "flush", "dev", lab6.client_if], check=True)
    before = dual.counters()["nd_replies"]
    with RawStream(lab6, host=SERVER_IP6) as stream:
        stream.finish(stream.packets(b"who has 2001:db8:99::1?"))
    shown = subprocess.run(
        [*inside, "show", SERVER_IP6], capture_output=True, text=True, check=True
    )
    assert ":".join(f"{b:02x}" for b in lab6.mac(lab6.server_if)) in shown.stdout
    assert dual.counters()["nd_replies"] > before


@pytest.mark.parametrize(
    ("host", "size"), [(SERVER_IP6, 0), (SERVER_IP6, 56), (SERVER_IP6, 1452), (SERVER_IP, 1472)]
)
def test_ping_is_answered_up_to_the_mtu(lab6, dual, host, size):
    if shutil.which("ping") is None:
        pytest.skip("no ping: apt-get install iputils-ping")
    # With -w it waits for each answer; else, without data to time, it ends behind the last request.
    command = ["ip", "netns", "exec", lab6.namespace, "ping", "-c", "3", "-i", "0.2", "-w", "5"]
    done = ended(*command, "-s", str(size), host)
    assert done.returncode == 0 and " 0% packet loss" in done.stdout, done.stdout


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_vlan_is_served_and_no_other(own_lab, gpt2_file, tmp_path, driver):
    """Frames by hand: not every kernel has VLAN interfaces."""
    args = ("--vlan", str(VLAN))
    with (
        NetAppliance(
            own_lab, gpt2_file, tmp_path, driver=driver, memory=NO_HUGE, args=args
        ) as appliance,
        RawStream(own_lab) as stream,
    ):
        plain = frame(own_lab, stream.packets(b"hello")[0])
        send_frames(own_lab, plain, with_tag(plain, VLAN + 1))
        appliance.wait_counters(lambda c: c["drop_vlan"] >= 2)
        send_frames(own_lab, with_tag(plain, VLAN))
        appliance.wait_counters(lambda c: c["streams_done"] == 1 and c["tx_packets"] == 1)


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_netcat_is_a_client(own_lab, gpt2_file, tmp_path, host):
    """Each datagram to the plain-text port is a text, the answer its ids in decimal."""
    args = ("--ip6", SERVER_IP6, "--text-port", "9001")
    text = "naïve café\nsecond line\n".encode()
    if shutil.which("nc") is None:
        pytest.skip("no nc: apt-get install netcat-openbsd")
    with NetAppliance(own_lab, gpt2_file, tmp_path, driver="net_af_xdp", memory=NO_HUGE, args=args):
        answer = subprocess.run(
            ["ip", "netns", "exec", own_lab.namespace, "nc", "-u", "-w", "1", host, "9001"],
            input=text,
            capture_output=True,
            check=True,
            timeout=20,
        ).stdout
    assert [int(word) for word in answer.split()] == whole_ids(gpt2_file, text)
