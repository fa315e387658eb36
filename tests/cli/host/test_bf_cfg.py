# SPDX-License-Identifier: BSD-3-Clause
"""config/bluefield/bf.cfg: what it leaves in a new image, as the installer calls it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import roots
from ended import ended

SOURCE = Path(__file__).parents[3]
URL = "http://192.0.2.7/dpdk-tokd.tar.gz"


def installed(root: Path, url: str = URL, sha256: str = "0123abcd") -> subprocess.CompletedProcess:
    """bfb_modify_os on an image that is mounted elsewhere than the installer has it."""
    roots.bluefield(root)
    text = (SOURCE / "config/bluefield/bf.cfg").read_text().replace("/mnt", str(root))
    text = text.replace('TOKD_URL=""', f'TOKD_URL="{url}"').replace(
        'SHA256=""', f'SHA256="{sha256}"'
    )
    return ended("bash", "-euc", text + "\nbfb_modify_os")


@pytest.fixture
def image(tmp_path) -> Path:
    done = installed(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return tmp_path


@pytest.mark.parametrize(
    ("url", "sha256", "empty"), [("", "0123abcd", "TOKD_URL"), (URL, "", "TOKD_SHA256")]
)
def test_what_is_not_set_is_named_and_nothing_is_written(tmp_path, url, sha256, empty):
    done = installed(tmp_path, url, sha256)
    assert done.returncode == 1 and f"{empty} is empty: set it" in done.stderr
    assert not (tmp_path / "etc/dpdk-tokd").exists() and not (tmp_path / "usr/local").exists()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_first_boot_that_fails_leaves_no_archive(tmp_path, is_there):
    """It is tried again each minute: not fetched, or not what its checksum says."""
    if shutil.which("curl") is None:
        pytest.skip("curl is missing (package curl)")
    archive, image, kept = tmp_path / "dpdk-tokd.tar.gz", tmp_path / "image", tmp_path / "tmp"
    image.mkdir()
    kept.mkdir()
    if is_there:
        archive.write_bytes(b"another")
    assert installed(image, archive.as_uri(), "0" * 64).returncode == 0
    script = image / "usr/local/sbin/tokd-first-boot"
    done = ended("sh", script, env={**os.environ, "TMPDIR": str(kept)})
    assert done.returncode != 0 and ("FAILED" in done.stdout) == is_there
    assert list(kept.iterdir()) == []


def test_settings_are_there_and_nothing_is_applied(image):
    """Not by the installer, whose kernel and CPUs are others."""
    done = ended(SOURCE / "config/tokd-host", "check", "--root", image)
    assert done.returncode == 1, done.stderr
    assert (
        "isolcpus=managed_irq,domain,4-15" in done.stdout
        and "huge pages of 2M, asked: 2048" in done.stdout
    )
    assert not (image / "etc/default/grub.d").exists()
    assert "chroot" not in (SOURCE / "config/bluefield/bf.cfg").read_text()


def test_the_first_boot_fetches_proves_and_applies_in_this_order(image):
    script = image / "usr/local/sbin/tokd-first-boot"
    subprocess.run(["sh", "-n", script], check=True)
    text = script.read_text()
    steps = [
        URL,
        "'0123abcd' \"$archive\" | sha256sum -c",
        "tar -C / -x",
        "tokd-host apply",
        "disable tokd-first",
    ]
    places = [text.find(step) for step in steps]
    assert -1 not in places and places == sorted(places)


def test_the_first_boot_is_a_unit_that_systemd_takes(image, tmp_path):
    unit = image / "etc/systemd/system/tokd-first-boot.service"
    link = image / "etc/systemd/system/multi-user.target.wants/tokd-first-boot.service"
    assert link.resolve() == unit
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing (package systemd)")
    unit.write_text(unit.read_text().replace("ExecStart=", f"ExecStart={image}"))
    done = ended("systemd-analyze", "verify", "--man=no", unit)
    assert (done.returncode, done.stderr) == (0, "")
