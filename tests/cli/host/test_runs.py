# SPDX-License-Identifier: BSD-3-Clause
"""Runs of config/tokd-host among others: at a boot, and two at once."""

import errno
import fcntl
import os
import subprocess
from contextlib import contextmanager

import pytest
import roots
from test_tokd_host import ASK, PROGRAM, bound, good, host, refused

JOURNAL = "var/lib/dpdk-tokd/host"
MOST = "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
PLAN = "cores = {}\nhugepages = {}\nnics = 0000:3b:00.0\n"


def rebooted(root, cores="1-4", pages="8x1G"):
    roots.debian(root)
    roots.nic(root)
    roots.put(root, "/etc/dpdk-tokd/host.conf", PLAN.format(cores, pages))


@pytest.mark.parametrize(
    ("plan", "said"),
    [({"pages": "4x1G@9"}, "hugepages: "), ({"cores": "1-20"}, "CPU 8-20 is not there")],
)
def test_at_boot_one_that_cannot_be_does_not_stop_the_rest(tmp_path, plan, said):
    rebooted(tmp_path, **plan)
    done = host(tmp_path, "apply", "--at-boot")
    assert done.returncode == 3 and said in done.stderr
    assert bound(tmp_path, "0000:3b:00.0") == "vfio-pci"
    moved = "0-7" if "cores" in plan else "0,5-7"
    assert (tmp_path / "proc/irq/24/smp_affinity_list").read_text().strip() == moved
    assert (tmp_path / MOST).read_text().strip() == ("8" if "cores" in plan else "0")


def test_at_boot_two_that_fail_are_both_named(tmp_path):
    rebooted(tmp_path, pages="4x1G@9")
    roots.put(tmp_path, "/sys/bus/pci/devices/0000:3b:00.0/net/eth0/flags", "0x1003\n")
    done = host(tmp_path, "apply", "--at-boot")
    assert done.returncode == 3 and "hugepages: " in done.stderr and "nic: " in done.stderr


def test_at_boot_one_interrupt_does_not_bring_the_others_back(tmp_path):
    rebooted(tmp_path)
    for irq in ("9", "24"):
        roots.put(tmp_path, f"/proc/irq/{irq}/x-errno", f"{errno.ENOSPC}")
    done = host(tmp_path, "apply", "--at-boot")
    assert done.returncode == 3 and "; and 1 more" in done.stderr
    for irq in ("9", "24"):
        assert f"bad   irq       /proc/irq/{irq}/smp_affinity_list: cannot write" in done.stdout
    assert (tmp_path / "proc/irq/25/smp_affinity_list").read_text() == "0,5-7\n"
    assert bound(tmp_path, "0000:3b:00.0") == "vfio-pci"


@contextmanager
def another_at_work(root):
    lock = os.open(root / JOURNAL, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield
    os.close(lock)


@pytest.mark.slow
def test_two_do_not_write_at_once(debian):
    before = roots.snapshot(debian)
    good(debian, "apply", *ASK)
    applied = roots.snapshot(debian)
    with another_at_work(debian):
        for do in (("apply", "--cores", "2"), ("revert",)):
            assert "another tokd-host is running" in refused(debian, *do)
        good(debian, "apply", "--cores", "2", "--dry-run")
        host(debian, "check", *ASK)
    assert roots.snapshot(debian) == applied
    good(debian, "revert")
    assert roots.snapshot(debian) == before


@pytest.mark.slow
def test_of_many_at_once_each_does_all_or_nothing(debian):
    before = roots.snapshot(debian)
    good(debian, "apply", *ASK)
    command = [PROGRAM, "apply", "--root", debian, "--cores"]
    many = [
        subprocess.Popen(
            [*command, cores], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for cores in ("1", "2", "3", "4")
    ]
    said = [one.communicate(timeout=60)[1] for one in many]
    assert {one.returncode for one in many} <= {0, 2} and 0 in {one.returncode for one in many}
    assert all(
        "another tokd-host" in text
        for one, text in zip(many, said, strict=True)
        if one.returncode == 2
    )
    good(debian, "revert")
    assert roots.snapshot(debian) == before
