# SPDX-License-Identifier: BSD-3-Clause
"""The recipes of doc/user/security.md: an appliance of a user that is not root."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.appliance import DENIED
from bench.process import Process
from bench.programs import DPDK_TOKD
from dpdk_tokd import Client
from netlab import NO_HUGE, SERVER_IP

NOBODY = 65534
XDP = ",+net_raw,+net_admin,+bpf,+sys_admin,+ipc_lock"


@pytest.fixture
def own_folder(gpt2_file: Path) -> Iterator[Path]:
    """Of that user: pytest's are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="tokd-"))
    shutil.copy(gpt2_file, folder)
    for path in (folder, folder / gpt2_file.name):
        os.chown(path, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def locks_of_libxdp() -> Iterator[None]:
    """In a folder that the recipe gives to the user; without it the program stays."""
    folder = Path("/run/xdp")
    folder.mkdir(mode=0o700, exist_ok=True)
    os.chown(folder, NOBODY, NOBODY)
    yield
    os.chown(folder, 0, 0)


def as_nobody(lab, gpt2_file: Path, folder: Path, driver: str, capabilities: str) -> list[str]:
    user = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--pdeathsig", "TERM"]
    kept = [f"{option}=-all{capabilities}" for option in ("--inh-caps", "--ambient-caps")]
    eal = ["-l", "0", "--no-pci", *NO_HUGE, "--vdev", f"{driver}0,iface={lab.server_if}"]
    own = ["--ip", SERVER_IP, "--socket", str(folder / "socket")]
    own += ["--vocab", str(folder / gpt2_file.name)]
    return ["setpriv", *user, *kept, str(DPDK_TOKD), *eal, "--", *own]


@pytest.mark.parametrize(
    ("driver", "capabilities"),
    [("net_af_packet", ",+net_raw,+net_admin"), ("net_af_xdp", XDP)],
)
def test_a_user_with_few_capabilities_serves(
    lab, gpt2, gpt2_file, own_folder, locks_of_libxdp, tmp_path, driver, capabilities
):
    command = as_nobody(lab, gpt2_file, own_folder, driver, capabilities)
    with Process(
        "dpdk-tokd", command, tmp_path / "log", XDG_RUNTIME_DIR=str(own_folder)
    ) as appliance:
        appliance.wait_ready(60)
        with lab.call(lambda: Client(SERVER_IP)) as client:
            assert client.tokenize("not root").tolist() == gpt2.encode("not root").tolist()
        assert appliance.stop() == 0
    assert not DENIED.search(appliance.said())
    assert "xdp" not in os.popen(f"ip link show {lab.server_if}").read()


@pytest.mark.parametrize(
    ("driver", "lacks"),
    [("net_af_packet", "CAP_NET_ADMIN CAP_NET_RAW:"), ("net_af_xdp", "CAP_IPC_LOCK")],
)
def test_what_a_user_lacks_is_named(lab, gpt2_file, own_folder, tmp_path, driver, lacks):
    command = as_nobody(lab, gpt2_file, own_folder, driver, "")
    folder = str(own_folder)
    with Process("dpdk-tokd", command, tmp_path / "log", XDG_RUNTIME_DIR=folder) as appliance:
        assert appliance.wait(60) == 1
    assert lacks in appliance.said().partition("this process lacks ")[2]
    assert "no DPDK port" not in appliance.said()
