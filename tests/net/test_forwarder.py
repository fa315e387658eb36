# SPDX-License-Identifier: BSD-3-Clause
"""Requests through a forwarder that loses 5% of the frames, reorders 5%, doubles 1% and changes a
bit of 0.1%, in each direction: none lost, none wrong, none twice.

TESTS_FORWARDED=N: so many requests, instead of a few hundred."""

import json
import math
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.programs import BUILD
from dpdk_tokd import Client
from netlab import NO_HUGE, SERVER_IP, NetAppliance, NetLab, run, why_not
from ring_check import RingCheck
from samples import different_texts

REQUESTS = int(os.environ.get("TESTS_FORWARDED", "400"))
BATCH = 1000
FORWARDER = BUILD / "tests/net/forwarder"
SHARES = {"lost": 0.05, "reordered": 0.05, "doubled": 0.01, "corrupted": 0.001}


class ForwardedLab(NetLab):
    """A second veth pair behind the first: the forwarder carries frames from one to the other."""

    def _make(self) -> None:
        super()._make()
        self.near_if, self.far_if = self.server_if, f"{self.namespace}m"
        self.server_if = f"{self.namespace}a"
        run("ip", "link", "add", self.far_if, "type", "veth", "peer", "name", self.server_if)
        for name in (self.far_if, self.server_if):
            offloads = [w for o in ("tx", "rx", "gro", "gso", "tso") for w in (o, "off")]
            run("sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
            run("ethtool", "-K", name, *offloads)
            run("ip", "link", "set", name, "up")
        command = [FORWARDER, self.near_if, self.far_if]
        command += [str(round(share * 1e6)) for share in SHARES.values()] + ["7"]
        self.forwarder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.forwarder.stdout is not None
        assert self.forwarder.stdout.readline() == "ready\n"

    def stop(self) -> dict[str, dict[str, int]]:
        """The forwarder's counts. Nothing passes any more."""
        self.forwarder.terminate()
        return json.loads(self.forwarder.communicate()[0])

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "forwarder"):
            self.forwarder.kill()
            self.forwarder.wait()
            subprocess.run(["ip", "link", "del", self.near_if], capture_output=True, check=False)
        super().__exit__()


@pytest.fixture
def rough() -> Iterator[ForwardedLab]:
    if reason := why_not():
        pytest.skip(reason)
    with ForwardedLab() as lab:
        yield lab


def test_nothing_is_lost_wrong_or_twice(rough, huge, gpt2_file: Path, gpt2, tmp_path):
    memory = NO_HUGE if huge is None else huge
    resends = 0
    with (
        NetAppliance(
            rough, gpt2_file, tmp_path, driver="net_af_packet", memory=memory, args=()
        ) as appliance,
        RingCheck(appliance.socket) as ring,
        rough.call(lambda: Client(SERVER_IP, timeout=30)) as client,
    ):
        every = different_texts(REQUESTS)
        for _ in range(0, REQUESTS, BATCH):
            batch = [text for _, text in zip(range(BATCH), every, strict=False)]
            wanted = [gpt2.encode(text) for text in batch]
            for ids in wanted:
                ring.expect(ids)
            got = client.tokenize_many(batch, in_flight=64)
            assert all(a.tolist() == b.tolist() for a, b in zip(got, wanted, strict=True))
        resends, retransmits = client.resends, client.retransmits
        appliance.wait_until(lambda: len(ring.complete) == REQUESTS or bool(ring.faults))
        counters = appliance.counters()
    counts = rough.stop()
    print(f"{REQUESTS} requests, {resends} resends, {retransmits} retransmits, again {ring.again}")
    print(json.dumps(counts), {k: v for k, v in counters.items() if v})
    assert ring.faults == []
    assert ring.again <= resends
    for way in counts.values():
        assert way["not_sent"] == 0
        for name, share in SHARES.items():
            expected = share * way["frames"]
            assert way[name] == pytest.approx(expected, abs=6 * math.sqrt(expected))  # 6 sigma
