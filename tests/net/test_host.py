# SPDX-License-Identifier: BSD-3-Clause
"""The appliance as a host of its network: ARP and ping; and its telemetry."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from dpdk_tokd import Client
from netlab import SERVER_IP


def test_arp_is_answered(lab, appliance):
    inside = ["ip", "-n", lab.namespace, "neigh"]
    subprocess.run([*inside, "flush", "dev", lab.client_if], check=True)
    before = appliance.counters()["arp_replies"]
    with lab.call(lambda: Client(SERVER_IP)) as client:
        client.tokenize("who has 10.99.0.1?")
    shown = subprocess.run([*inside, "show", SERVER_IP], capture_output=True, text=True, check=True)
    assert ":".join(f"{b:02x}" for b in lab.mac(lab.server_if)) in shown.stdout
    assert appliance.counters()["arp_replies"] > before


@pytest.mark.parametrize("size", [0, 56, 1472])
def test_ping_is_answered(lab, appliance, size):
    if shutil.which("ping") is None:
        pytest.skip("no ping: apt-get install iputils-ping")
    command = ["ip", "netns", "exec", lab.namespace, "ping", "-c", "3", "-i", "0.05", "-W", "2"]
    before = appliance.counters()["icmp_replies"]
    done = subprocess.run(
        [*command, "-s", str(size), SERVER_IP], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and " 0% packet loss" in done.stdout, done.stdout
    assert appliance.counters()["icmp_replies"] == before + 3


def test_telemetry_has_help_for_every_command(appliance):
    commands = appliance.telemetry("/")
    ours = [c for c in commands if c.startswith("/tokd/")]
    assert {"/tokd/info", "/tokd/workers", "/tokd/counters", "/tokd/readers"} <= set(ours)
    for command in ours:
        assert appliance.telemetry(f"/help,{command}")[command]
