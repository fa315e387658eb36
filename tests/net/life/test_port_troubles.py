# SPDX-License-Identifier: BSD-3-Clause
"""What an operator is told once when a veth's checksums or its carrier go wrong."""

import pytest
from dpdk_tokd import Client
from netlab import SERVER_IP, run

REMEDY = "ethtool -K PEER tx off"


@pytest.fixture
def unsummed(lab):
    """The client's kernel leaves UDP checksums to a device that is none."""
    inside = ("ip", "netns", "exec", lab.namespace, "ethtool", "-K", lab.client_if, "tx")
    run(*inside, "on")
    yield
    run(*inside, "off")


def test_wrong_checksums_are_told_once_with_the_remedy(lab, start, unsummed):
    appliance = start()
    for _ in range(2):
        with lab.call(lambda: Client(SERVER_IP, timeout=0.3)) as client:
            with pytest.raises(TimeoutError):
                client.tokenize("never taken")
        appliance.wait_for(REMEDY)
    assert appliance.said().count(REMEDY) == 1
    assert appliance.counters()["drop_udp_cksum"] > 0


def test_wrong_checksums_may_be_trusted(lab, start, unsummed, gpt2):
    appliance = start("--rx-checksum", "trust")
    with lab.call(lambda: Client(SERVER_IP)) as client:
        assert client.tokenize("not summed").tolist() == gpt2.encode("not summed").tolist()
    assert appliance.counters()["drop_udp_cksum"] == 0


def test_a_lost_carrier_is_told_and_that_it_is_back(lab, start):
    appliance = start()
    far = ("ip", "-n", lab.namespace, "link", "set", lab.client_if)
    assert appliance.telemetry("/tokd/info")["link"] == "up"
    run(*far, "down")
    try:
        appliance.wait_for("no carrier: look at the cable")
        assert appliance.telemetry("/tokd/info")["link"] == "down"
    finally:
        run(*far, "up")
    appliance.wait_for("the carrier is back")
    assert appliance.said().count("no carrier") == 1
