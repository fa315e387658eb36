# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the host that a sweep changes, and that are as before afterwards."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

host_measures = pytest.importorskip("bench.lab.host_measures", reason="run tools/setup")
from bench.process import ENDS_WITH_US


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """One of four CPUs, the last the worker's, with three interrupts and two governors."""
    monkeypatch.setattr(host_measures, "JOURNAL", tmp_path / "journal")
    monkeypatch.setattr(host_measures, "WORKER_CPU", 3)
    monkeypatch.setattr(host_measures, "CLIENT_CPU", 0)
    for irq, cpus in (("7", "0-3"), ("8", "3"), ("9", "0-1")):
        (tmp_path / "irq" / irq).mkdir(parents=True)
        (tmp_path / "irq" / irq / "smp_affinity_list").write_text(cpus + "\n")
    for cpu in (0, 3):
        folder = tmp_path / "cpu" / f"cpu{cpu}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text("powersave\n")
        (folder / "scaling_available_governors").write_text("performance powersave\n")
    return tmp_path


def everything(folder: Path) -> dict[str, str]:
    return {str(p): p.read_text() for p in folder.glob("[ic]*/**/*") if p.is_file()}


def test_lists_of_cpus_are_read_as_the_kernel_writes_them():
    assert host_measures.parse_cpus("0-2,5\n") == {0, 1, 2, 5}
    assert host_measures.parse_cpus("\n") == set()


def test_interrupts_leave_the_workers_cpu(machine):
    found = host_measures.interrupts_off_worker(machine / "irq")
    assert {path.parent.name: cpus for path, cpus in found.items()} == {"7": "0,1,2", "8": "0"}


def test_governors_are_chosen_where_there_are_two(machine):
    assert set(host_measures.governors(True, machine / "cpu").values()) == {"performance"}
    assert set(host_measures.governors(False, machine / "cpu").values()) == {"powersave"}
    offered = machine / "cpu/cpu3/cpufreq/scaling_available_governors"
    offered.write_text("performance\n")
    assert host_measures.governors(True, machine / "cpu") == {}
    assert host_measures.governors(True, machine / "nothing") == {}


def test_what_is_changed_is_as_before_afterwards_also_after_an_error(machine):
    before = everything(machine)
    wanted = host_measures.interrupts_off_worker(machine / "irq")
    with pytest.raises(RuntimeError), host_measures._changed(wanted) as done:
        assert len(done) == 2 and (machine / "irq/8/smp_affinity_list").read_text() == "0"
        raise RuntimeError
    assert everything(machine) == before and not host_measures.JOURNAL.exists()


def test_what_a_killed_sweep_changed_is_undone(machine):
    file = machine / "irq/8/smp_affinity_list"
    dead = subprocess.Popen(["true"])
    dead.wait()
    host_measures.JOURNAL.write_text(json.dumps({"pid": dead.pid, "files": {str(file): "3\n"}}))
    file.write_text("0")
    host_measures.restore_left_over()
    assert file.read_text() == "3\n" and not host_measures.JOURNAL.exists()


def test_another_sweep_that_changes_the_host_is_not_disturbed(machine):
    host_measures.JOURNAL.write_text(json.dumps({"pid": os.getppid(), "files": {}}))
    with pytest.raises(host_measures.Missing, match="has changed settings"):
        host_measures.restore_left_over()


def test_what_a_sweep_started_ends_when_it_is_killed(tmp_path):
    beside = [*ENDS_WITH_US, "sleep", "600"]
    code = (
        f"import subprocess; p = subprocess.Popen({beside!r}); print(p.pid, flush=True); p.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as sweep:
        name = Path("/proc") / sweep.stdout.readline().decode().strip() / "comm"
        deadline = time.monotonic() + 60
        while name.read_text() != "sleep\n" and time.monotonic() < deadline:
            time.sleep(0.01)  # until then setpriv may not have asked for the signal
        sweep.kill()
        sweep.wait()
        while name.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert not name.exists() or "Z" in name.with_name("stat").read_text().split()[2]


def test_a_measure_is_left_out_alone_or_with_all():
    taken = host_measures.taken
    assert taken("polling", "nothing") and taken("polling", "affinity")
    assert not taken("polling", "polling") and not taken("polling", "everything")
