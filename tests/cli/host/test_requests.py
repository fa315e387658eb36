# SPDX-License-Identifier: BSD-3-Clause
"""What config/tokd-host is asked for: options, the plan of an earlier apply, a journal that is
gone, a disk that cannot be written."""

import os
import shutil
import subprocess
import sys

import pytest
import roots
from test_tokd_host import ASK, DROP_IN, PROGRAM, command_line, good, host, refused


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("check", "--cores", ""), "--cores '': give a value"),
        (("apply", "--hugepages", " "), "--hugepages '': give a value"),
        (("apply", "--at-boot", "--cores", "1"), "--at-boot takes --cores from"),
        (("verify", "--at-boot"), "verify --at-boot: only apply has it"),
        (("apply", *ASK, "--json"), "apply --json: only check and verify have it"),
        (("check", "--cpus", "-1"), "--cpus -1: expected 1 to 4096"),
        (("check", "--cpus", "x"), "see --help"),
        (("undo",), "see --help"),
    ],
)
def test_options_that_a_command_would_not_look_at_are_refused(debian, args, said):
    good(debian, "apply", *ASK)
    before = roots.snapshot(debian)
    wrong = refused(debian, *args)
    assert said in wrong and wrong.startswith("tokd-host: ") and wrong.count("\n") == 1
    assert roots.snapshot(debian) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cores = 1-x\n", "as --cores '1-x'"),
        ("cores = 1-4 # of eight\n", "as --cores '1-4 # of eight'"),
        ("core = 1\n", "line 1: 'core = 1' is none of"),
        ("nics = 3b:00.0\nunsafe-noiommu = true\n", "unsafe-noiommu = true: expected yes or no"),
    ],
)
def test_a_plan_that_is_broken_is_named_and_a_new_one_replaces_it(debian, text, said):
    conf = "etc/dpdk-tokd/host.conf"
    roots.put(debian, f"/{conf}", text)
    before = roots.snapshot(debian)
    for do in ("verify", "check", "apply"):
        assert f"tokd-host: /{conf}" in (wrong := refused(debian, do)) and said in wrong
    assert roots.snapshot(debian) == before
    assert "proposed" not in host(debian, "check", *ASK).stdout
    good(debian, "apply", *ASK)
    assert (debian / conf).read_text().endswith("\ncores = 1-4\nhugepages = 8x1G\n")
    good(debian, "revert")
    assert roots.snapshot(debian) == before


def test_comments_of_a_plan_may_be_indented(debian):
    roots.put(debian, "/etc/dpdk-tokd/host.conf", " # mine\ncores = 1-4\n")
    good(debian, "apply")
    assert "isolcpus=managed_irq,domain,1-4" in command_line(debian)


def test_what_a_plan_does_not_ask_for_any_more_is_named(debian):
    """Who binds a port later may not mean to undo all else."""
    name = roots.nic(debian)
    good(debian, "apply", *ASK)
    said = good(debian, "apply", "--nic", name, "--dry-run")
    assert "undone, because this apply does not ask for it: --cores 1-4 --hugepages 8x1G\n" in said
    keep = "apply --cores 1-4 --hugepages 8x1G --nic 0000:3b:00.0"
    assert f"to keep it: tokd-host {keep}\n" in said
    assert "undone" not in good(debian, *keep.split())
    assert "undone" not in good(
        debian, "apply", "--cores", "2", "--hugepages", "4x1G", "--nic", name
    )


def test_a_revert_without_its_journal_names_what_is_left(debian):
    good(debian, "apply", *ASK)
    shutil.rmtree(debian / "var")
    done = host(debian, "revert")
    assert done.returncode == 3 and "journal.json: is missing" in done.stderr
    for name in (DROP_IN, "etc/systemd/system/dev-hugepages\\x2d1G.mount"):
        assert f"/{name}" in done.stderr
        (debian / name).unlink()
    (debian / "etc/security/limits.d/dpdk-tokd.conf").unlink()
    assert good(debian, "revert") == "0 restored\n"


def test_a_disk_that_cannot_be_written_is_named(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("not root: cannot mount")
    roots.debian(tmp_path)
    read_only = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'

    def run(where: str, *args: str) -> tuple[int, str, str]:
        command = ["unshare", "-m", "sh", "-c", read_only, "sh", tmp_path / where]
        command += [sys.executable, PROGRAM, *args, "--root", tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout, done.stderr

    before = roots.snapshot(tmp_path)
    status, _, wrong = run(".", "apply", *ASK)
    assert (status, wrong) == (3, f"tokd-host: {tmp_path}/var: Read-only file system\n")
    assert run(".", "revert") == (0, "0 restored\n", "")
    (tmp_path / "etc/security/limits.d").mkdir(parents=True)
    status, _, wrong = run("etc/security", "apply", *ASK)
    assert status == 3 and "limits: /etc/security/limits.d/dpdk-tokd.conf: cannot write" in wrong
    assert wrong.endswith(
        "; what was applied before stays: correct this and apply again, or run tokd-host revert\n"
    )
    good(tmp_path, "revert")
    shutil.rmtree(tmp_path / "etc/security")
    assert roots.snapshot(tmp_path) == before


def test_what_a_boot_undoes_needs_the_unit(debian):
    wanted = "tokd-host.service is not enabled"
    assert wanted not in host(debian, "check", *ASK).stdout
    assert wanted in good(debian, "apply", *ASK)
    assert wanted in host(debian, "verify").stdout
    enabled = debian / "etc/systemd/system/multi-user.target.wants/tokd-host.service"
    enabled.parent.mkdir()
    enabled.symlink_to("/lib/systemd/system/tokd-host.service")
    assert wanted not in good(debian, "apply", *ASK) + host(debian, "verify").stdout
    enabled.unlink()
    assert wanted not in good(debian, "apply", "--hugepages", "8x1G")  # at boot by the kernel
