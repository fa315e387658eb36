# SPDX-License-Identifier: BSD-3-Clause
"""A machine that boots by GRUB into systemd: tokd-host applied, booted, verified; dpdk-tokd,
tokd-gpu, tokd-exporter and tokd-gateway by their units, on what tokd-host made ready; then spoilt,
and reverted."""

import json
import shutil
import subprocess

import disk
import pytest
from dpdk_tokd import Client
from guest import IOMMU, Guest, why_not
from netlab import SERVER_IP
from samples import TEXTS, documents
from wire import Wire

WORDS = (
    "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0 "
    "default_hugepagesz=1G hugepagesz=1G hugepages=1"
)
UNITS = ("tokd-host", "tokd-gpu", "tokd-exporter", "tokd-gateway", "dpdk-tokd")
MEMORY_MB = 4096


@pytest.fixture(scope="module")
def image(gpt2_file):
    if reason := why_not("amd64"):
        pytest.skip(reason)
    for program in ("mke2fs", "chroot", "meson"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: apt-get install e2fsprogs coreutils meson")
    return disk.image(gpt2_file)


@pytest.fixture
def wire():
    with Wire() as wire:
        yield wire


@pytest.fixture
def boot(image, wire, tmp_path):
    """Turns the machine on once more, on its disk as it was left."""
    disk = tmp_path / "disk"
    subprocess.run(["cp", "--sparse=always", image, disk], check=True)
    drive = f"file={disk},format=raw,if=virtio,cache=unsafe"
    options = [*IOMMU, *wire.options(",ats=on"), "-no-reboot", "-drive", drive]
    # A process for each boot: behind a reset, loading takes QEMU ten times as long.
    yield lambda name: Guest("amd64", options, memory_mb=MEMORY_MB, pass_fds=(wire.fd,), name=name)
    disk.unlink()


def check_booted(guest: Guest) -> None:
    """As asked: by the kernel, by systemd, and in tokd-host's own eyes."""
    assert WORDS in guest.wait_for("cmdline-2")
    assert guest.wait_for("isolated") == "1"
    assert guest.wait_for("nohz_full") == "1"
    assert guest.wait_for("pages") == "1"
    assert guest.wait_for("mount") == "1"
    assert guest.wait_for("driver") == "vfio-pci"
    assert guest.wait_for("modprobe") == "1"  # by the unit, within its bounds
    assert guest.wait_for("service") == "active"
    assert guest.wait_for("verify") == "0"


def check_ids(guest: Guest, wire: Wire, reference, said: str, restarts: int) -> None:
    """The unit is active, started anew so many times, and serves."""
    assert guest.wait_for(f"serving-{said}") == f"active, {restarts} restarts"
    with wire.call(lambda: Client(SERVER_IP, timeout=60)) as client:
        for text in (*TEXTS.values(), documents()[:20_000]):
            want = reference.encode(text.decode("utf-8", "replace"), add_special_tokens=False).ids
            assert client.tokenize(text).tolist() == want, text[:100]
    guest.send("go on")


def check_units(guest: Guest, wire: Wire, reference) -> None:
    """guest/units.sh"""
    assert guest.wait_for("unit-wrong") == "1"
    assert guest.wait_for("wrong") == "failed by 2, 0 restarts"
    assert guest.wait_for("unit-start") == "0"
    assert any(
        "TOKD_IP=10.99.0.999: not an IPv4 address" in line for line in guest.said("wrong-log")
    )
    assert guest.wait_for("page-free") == "0"
    assert "dpdk-tokd 1" in guest.said("thread")
    check_ids(guest, wire, reference, "started", 0)
    assert guest.wait_for("unit-reload") == "0"
    check_ids(guest, wire, reference, "reloaded", 0)
    assert int(guest.wait_for("signs").split()[0]) > 0
    assert guest.wait_for("lives") == "yes"
    check_ids(guest, wire, reference, "hung", 1)
    check_ids(guest, wire, reference, "killed", 2)
    assert guest.wait_for("gpu-start") == "0"
    assert guest.wait_for("unit-restart") == "0"
    check_ids(guest, wire, reference, "restarted", 0)
    assert guest.wait_for("exporter-start") == "0"
    assert guest.wait_for("exporter-ready") == "serving"
    assert guest.wait_for("exporter-up") == "tokd_up 1.0"
    assert guest.wait_for("gateway-start") == "0"
    assert json.loads(guest.wait_for("gateway"))["tokens"] == [15496, 11, 995]
    assert guest.wait_for("gateway-stopped") == "inactive, success, 0"
    for unit in UNITS:  # by systemd-analyze security: at most 2.5
        assert guest.wait_for(f"rated-{unit}.service") == "0"
    assert guest.wait_for("unit-stop") == "0"
    assert guest.wait_for("stopped") == "inactive, success, 0"
    assert guest.wait_for("exporter-without") == "tokd_up 0.0"
    assert guest.wait_for("exporter-stopped") == "inactive, success, 0"
    assert guest.wait_for("gpu-stopped") == "inactive, success, 0"
    log = guest.said("unit-log")
    assert any("Watchdog timeout" in line for line in log)
    assert any("status=9/KILL" in line for line in log)


def test_what_is_applied_boots_is_verified_and_taken_back(boot, wire, gpt2_reference):
    with boot("as installed") as guest:
        assert guest.wait_for("check") == "1"
        assert guest.wait_for("apply") == "0"
        guest.end()
    with boot("applied") as guest:
        check_booted(guest)
        check_units(guest, wire, gpt2_reference)
        guest.end()
    with boot("without nohz_full") as guest:
        assert "nohz_full" not in guest.wait_for("cmdline-3")
        assert guest.wait_for("isolated-3") == "1"
        assert guest.wait_for("verify-less") == "1"
        assert "the kernel was booted without nohz_full, asked: nohz_full=1" in guest.wait_for(
            "less"
        )
        assert guest.wait_for("revert") == "0"
        assert guest.wait_for("driver-reverted") == "virtio-pci"
        left, of = guest.wait_for("left").split(" of ")
        assert int(left) == 0 and int(of) > 0
        guest.end()
