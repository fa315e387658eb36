# SPDX-License-Identifier: BSD-3-Clause
"""How many threads the package starts by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dpdk_tokd._cpus import cpus, quota_of


def test_a_quota_of_any_group_above_counts(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    inner = root / "pods/one"
    inner.mkdir(parents=True)
    for folder, text in (
        (tmp_path, "100000 100000"),  # no group
        (root, "400000 100000"),
        (root / "pods", "max 100000"),
        (inner, "150000 100000"),
    ):
        (folder / "cpu.max").write_text(text + "\n")
    assert quota_of("/pods/one", str(root)) == 2
    assert quota_of("/pods", str(root)) == 4
    assert quota_of("/", str(root)) == 4
    (root / "cpu.max").unlink()
    assert quota_of("/pods", str(root)) > 1 << 20
    assert quota_of("/gone/since", str(root)) > 1 << 20


def test_the_affinity_counts() -> None:
    all_of_them = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(all_of_them)})
        assert cpus() == 1
    finally:
        os.sched_setaffinity(0, all_of_them)


LONG_TEXT = """
import os, sys, types
sys.modules["dpdk_tokd._cpus"] = fake = types.ModuleType("dpdk_tokd._cpus")
fake.cpus, fake.quota = lambda: 64, lambda: {quota}
import dpdk_tokd
tokenizer = dpdk_tokd.Tokenizer.load({vocab!r})
before = len(os.listdir("/proc/self/task"))
tokenizer.encode("a b " * 1_000_000)
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.parametrize(("quota", "more"), [(1, 0), (64, 1)])
def test_a_long_text_keeps_to_the_quota(gpt2_file: Path, quota: int, more: int) -> None:
    """By affinity it would have two threads."""
    two = sorted(os.sched_getaffinity(0))[:2]
    if len(two) < 2:
        pytest.skip("needs two CPUs")
    command = ["taskset", "-c", ",".join(map(str, two)), sys.executable, "-c"]
    command.append(LONG_TEXT.format(quota=quota, vocab=str(gpt2_file)))
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert int(told) == more
