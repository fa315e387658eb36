# SPDX-License-Identifier: BSD-3-Clause
"""config/bluefield/bf.cfg: what it leaves in a new image, as the installer calls it."""

import shutil
import subprocess
from pathlib import Path

import pytest
import roots

SOURCE = Path(__file__).parents[2]
URL = "http://192.0.2.7/dpdk-tokd.tar.gz"


@pytest.fixture
def image(tmp_path) -> Path:
    """An image that bfb_modify_os has been through, mounted elsewhere than the installer has it."""
    roots.bluefield(tmp_path)
    text = (SOURCE / "config/bluefield/bf.cfg").read_text().replace("/mnt", str(tmp_path))
    text = text.replace('TOKD_URL=""', f'TOKD_URL="{URL}"').replace('SHA256=""', 'SHA256="0123abcd"')
    subprocess.run(["bash", "-euc", text + "\nbfb_modify_os"], check=True)
    return tmp_path


def test_settings_are_there_and_nothing_is_applied(image):
    """Not by the installer, whose kernel and CPUs are others."""
    done = subprocess.run(
        [SOURCE / "config/tokd-host", "check", "--root", image], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "isolcpus=managed_irq,domain,4-15" in done.stdout and "huge pages of 2M, asked: 2048" in done.stdout
    assert not (image / "etc/default/grub.d").exists()
    assert "chroot" not in (SOURCE / "config/bluefield/bf.cfg").read_text()


def test_the_first_boot_fetches_proves_and_applies_in_this_order(image):
    script = image / "usr/local/sbin/tokd-first-boot"
    subprocess.run(["sh", "-n", script], check=True)
    text = script.read_text()
    steps = [URL, "'0123abcd' \"$archive\" | sha256sum -c", "tar -C / -x", "tokd-host apply", "disable tokd-first"]
    places = [text.find(step) for step in steps]
    assert -1 not in places and places == sorted(places)


def test_the_first_boot_is_a_unit_that_systemd_takes(image, tmp_path):
    unit = image / "etc/systemd/system/tokd-first-boot.service"
    link = image / "etc/systemd/system/multi-user.target.wants/tokd-first-boot.service"
    assert link.resolve() == unit
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing (package systemd)")
    unit.write_text(unit.read_text().replace("ExecStart=", f"ExecStart={image}"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
