# SPDX-License-Identifier: BSD-3-Clause
"""tokd-host on a machine that boots by GRUB: applied, booted, verified, spoilt, reverted."""

from __future__ import annotations

import shutil
import subprocess

import disk
import pytest
from guest import Guest, why_not

WORDS = (
    "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0 "
    "default_hugepagesz=2M hugepagesz=2M hugepages=64"
)


@pytest.fixture(scope="module")
def image():
    if reason := why_not("amd64"):
        pytest.skip(reason)
    for program in ("mke2fs", "chroot", "meson"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: apt-get install e2fsprogs coreutils meson")
    return disk.image()


@pytest.fixture
def boot(image, tmp_path):
    """Turns the machine on once more, on its disk as it was left."""
    disk = tmp_path / "disk"
    subprocess.run(["cp", "--sparse=always", image, disk], check=True)
    drive = f"file={disk},format=raw,if=virtio,cache=unsafe"
    # A process for each boot: behind a reset, loading takes QEMU ten times as long.
    yield lambda name: Guest("amd64", ["-no-reboot", "-drive", drive], memory_mb=768, name=name)
    disk.unlink()


def test_what_is_applied_boots_is_verified_and_taken_back(boot):
    with boot("as installed") as guest:
        assert guest.wait_for("check") == "1"
        assert guest.wait_for("apply") == "0"
        guest.end()
    with boot("applied") as guest:
        assert WORDS in guest.wait_for("cmdline-2")
        assert guest.wait_for("isolated") == "1"
        assert guest.wait_for("nohz_full") == "1"
        assert guest.wait_for("pages") == "64"
        assert guest.wait_for("mount") == "1"
        assert guest.wait_for("service") == "active"
        assert guest.wait_for("verify") == "0"
        guest.end()
    with boot("without nohz_full") as guest:
        assert "nohz_full" not in guest.wait_for("cmdline-3")
        assert guest.wait_for("isolated-3") == "1"
        assert guest.wait_for("verify-less") == "1"
        assert "the kernel was booted without nohz_full, asked: nohz_full=1" in guest.wait_for("less")
        assert guest.wait_for("revert") == "0"
        left, of = guest.wait_for("left").split(" of ")
        assert int(left) == 0 and int(of) > 0
        guest.end()
