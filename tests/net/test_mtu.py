# SPDX-License-Identifier: BSD-3-Clause
"""Paths that take less than an Ethernet, as overlay networks and tunnels do: packets and replies
fit, so nothing is lost or cut, and nothing is asked for again."""

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dpdk_tokd import Client, Tokenizer, wire
from netlab import DRIVERS, NO_HUGE, SERVER_IP, SERVER_IP6, NetAppliance, NetLab, run, why_not
from raw_client import RawStream
from samples import documents

HEADERS = {SERVER_IP: 28, SERVER_IP6: 48}  # of IP and UDP
PATHS = [(1420, SERVER_IP), (1420, SERVER_IP6), (1280, SERVER_IP6), (576, SERVER_IP)]
ROUTE = ["ip", "route", "replace", f"{SERVER_IP}/32"]


def set_mtu(lab: NetLab, mtu: int, *, server: bool = True) -> None:
    run("ip", "-n", lab.namespace, "link", "set", lab.client_if, "mtu", str(mtu))
    if server:
        run("ip", "link", "set", lab.server_if, "mtu", str(mtu))


@pytest.fixture(scope="module")
def own_lab() -> Iterator[NetLab]:
    """A veth pair of this module's own: tests change it."""
    if reason := why_not():
        pytest.skip(reason)
    with NetLab(ipv6=True) as lab:
        yield lab


@pytest.fixture(scope="module")
def text(gpt2: Tokenizer) -> bytes:
    """Of 3,000 ids and more: some replies are full."""
    start = random.Random(3).randrange(100_000)
    text = documents()[start : start + 20_000].decode("utf-8", "ignore").encode()
    assert len(gpt2.encode(text)) >= 3000
    return text


@pytest.fixture(params=DRIVERS)
def at(request: pytest.FixtureRequest, own_lab: NetLab, gpt2_file: Path, tmp_path: Path):
    """Starts an appliance where both ends of the pair have an MTU."""

    @contextmanager
    def start(mtu: int) -> Iterator[NetAppliance]:
        if mtu < 1280:  # Linux removes IPv6 from such an interface: after the test it is needed
            run(
                "ip", "-n", own_lab.namespace, *ROUTE[1:], "dev", own_lab.client_if, "mtu", f"{mtu}"
            )
        else:
            set_mtu(own_lab, mtu)
        try:
            with NetAppliance(
                own_lab, gpt2_file, tmp_path, driver=request.param, memory=NO_HUGE,
                args=("--ip6", SERVER_IP6),
            ) as appliance:  # fmt: skip
                yield appliance
        finally:
            run("ip", "-n", own_lab.namespace, *ROUTE[1:], "dev", own_lab.client_if)
            set_mtu(own_lab, 1500)

    return start


@contextmanager
def nothing_is_lost(lab: NetLab, appliance: NetAppliance) -> Iterator[None]:
    """Each frame that one end sends comes to the other, and none is a fragment. How often a packet
    is sent depends on the machine's load, too."""

    def sent_and_received() -> list[int]:
        shown = subprocess.run(
            ["ip", "-n", lab.namespace, "-s", "-j", "link", "show", lab.client_if],
            capture_output=True,
            check=True,
        ).stdout
        client = json.loads(shown)[0]["stats64"]
        own = appliance.counters()
        return [
            own["tx_packets"],
            client["rx"]["packets"],
            client["tx"]["packets"],
            own["rx_packets"],
        ]

    def missing(counts: list[int]) -> tuple[int, int]:
        return counts[0] - counts[1], counts[2] - counts[3]

    last, same = sent_and_received(), 0

    def nothing_is_under_way() -> bool:
        nonlocal last, same
        counts = sent_and_received()
        same = same + 1 if counts == last else 0
        last = counts
        return same == 20

    appliance.wait_until(nothing_is_under_way)
    before, fragments = missing(last), appliance.counters()["rx_fragments"]
    yield
    appliance.wait_until(lambda: missing(sent_and_received()) == before)
    assert appliance.counters()["rx_fragments"] == fragments


@pytest.mark.parametrize(("mtu", "host"), PATHS)
def test_on_a_smaller_path_nothing_is_lost(own_lab, at, gpt2, text, mtu, host):
    ids = gpt2.encode(text)
    with at(mtu) as appliance, own_lab.call(lambda: Client(host)) as client:
        assert client.tokenize("neighbours find each other").size
        with nothing_is_lost(own_lab, appliance):
            assert client.tokenize(text).tolist() == ids.tolist()
            assert client.detokenize(ids) == text.decode()
        assert client.resends == 0


def longest_reply(lab: NetLab, host: str, text: bytes, reply_max: int) -> int:
    """Bytes of the longest reply to a client that takes so much; 0: that of before this field."""
    with RawStream(lab, host=host) as stream:
        packets = stream.packets(text, reply_max=reply_max)
        longest = 0
        stream.send(*packets)
        while (rep := stream.reply()) is not None:
            longest = max(longest, wire.REP.size + 4 * rep.n_ids)
            if rep.flags & wire.F_DONE and stream.contiguous() == rep.total:
                return longest
    raise AssertionError(f"ids are missing after {longest} bytes")


@pytest.mark.parametrize("host", [SERVER_IP, SERVER_IP6])
def test_replies_are_as_long_as_port_and_client_take(own_lab, at, gpt2, text, host):
    """Multiples of an id; at an Ethernet's 1500 and with a client of before as long as ever."""
    for mtu in (1500, 1420, 1280):
        port = (mtu - HEADERS[host]) // 4 * 4
        with at(mtu):
            for said, want in ((0, 1440), (1, 512), (1000, 1000), (1399, 1396), (9000, 1440)):
                assert longest_reply(own_lab, host, text, said) == min(want, port), (mtu, said)


def test_a_path_that_shrinks_has_texts_cut_anew(own_lab, at, gpt2, text):
    """What was open at 1500 goes on at 1300: the kernel says so, and no time-out is waited for."""
    want = gpt2.encode(text).tolist()
    with at(1500) as appliance, own_lab.call(lambda: Client(SERVER_IP, timeout=20)) as client:
        assert client.tokenize(text).tolist() == want
        set_mtu(own_lab, 1300, server=False)
        with nothing_is_lost(own_lab, appliance):
            for _ in range(3):
                assert client.tokenize(text).tolist() == want
        assert client.resends == 1


def test_a_client_can_be_told_of_a_smaller_path(own_lab, at, gpt2, text):
    """Where nobody says that packets are lost: an end of the pair that drops what is longer."""
    ids = gpt2.encode(text)
    with at(1500) as appliance:
        set_mtu(own_lab, 1400)
        run("ip", "-n", own_lab.namespace, "link", "set", own_lab.client_if, "mtu", "1500")
        with own_lab.call(lambda: Client(SERVER_IP, mtu=1400)) as client:
            assert client.tokenize("neighbours find each other").size
            with nothing_is_lost(own_lab, appliance):
                assert client.tokenize(text).tolist() == ids.tolist()
                assert client.detokenize(ids) == text.decode()
