# SPDX-License-Identifier: BSD-3-Clause
"""What a started appliance may still do, as the kernel says."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from appliance import Appliance


@pytest.fixture
def ready(start: Callable[..., Appliance], gpt2_file: Path) -> Callable[..., Appliance]:
    def make(*own: str) -> Appliance:
        appliance = start("--vocab", str(gpt2_file), *own).ready()
        return appliance

    return make


def statuses(pid: int) -> list[dict[str, str]]:
    """Of each thread."""
    return [
        dict(line.split(":\t", 1) for line in path.read_text().splitlines())
        for path in Path(f"/proc/{pid}/task").glob("*/status")
    ]


def test_no_thread_keeps_a_capability(ready) -> None:
    appliance = ready()
    for status in statuses(appliance.pid):
        assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh")] == [0, 0, 0]
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    info = appliance.telemetry("/tokd/info")
    assert (info["sandbox"], info["calls_denied"]) == ("yes", 0)
    assert appliance.stop() == 0


# kB that EAL has for rte_lcore_var.h, from DPDK 24.11 and from 25.11 on; no text is there.
LCORE_VARS = ((16 << 10) + 4, (32 << 10) + 4)


def test_texts_are_in_no_core_dump(ready) -> None:
    """Should the process be made dumpable again: rings and EAL's memory are left out."""
    appliance = ready()
    if os.geteuid() != 0:
        pytest.skip("the kernel shows the memory of what is not dumpable to root alone")
    left_out, written = 0, []
    for mapping in re.split(r"\n(?=[0-9a-f]+-)", Path(f"/proc/{appliance.pid}/smaps").read_text()):
        size = int(re.search(r"^Size: +(\d+) kB", mapping, re.MULTILINE)[1])
        if " dd" in re.search(r"^VmFlags:.*", mapping, re.MULTILINE)[0]:
            left_out += size
        elif size >= 16 << 10 and size not in LCORE_VARS and re.search(r"\nRss: +[1-9]", mapping):
            written.append(mapping.splitlines()[0])
    assert written == []
    assert left_out >= 256 << 10  # -m 256
    assert appliance.stop() == 0


def test_without_it_nothing_is_dropped(ready) -> None:
    appliance = ready("--sandbox=no")
    assert {status["Seccomp"] for status in statuses(appliance.pid)} == {"0"}
    assert appliance.telemetry("/tokd/info")["sandbox"] == "no"
    assert appliance.stop() == 0


def with_handler(monkeypatch, folder: Path, code: str) -> None:
    """The process is made to run this at SIGUSR2."""
    (folder / "made.c").write_text(
        "#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        f"static void on_usr2(int s) {{ {code} }}\n"
        "__attribute__((constructor)) static void begin(void) { signal(SIGUSR2, on_usr2); }\n"
    )
    library = folder / "made.so"
    subprocess.run(
        ["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, folder / "made.c"], check=True
    )
    monkeypatch.setenv("LD_PRELOAD", str(library))
    own_options = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", f"{own_options}:verify_asan_link_order=0")


def test_a_denied_call_fails_the_test_that_started_the_appliance(
    binary, gpt2_file, tmp_path, monkeypatch
) -> None:
    with_handler(monkeypatch, tmp_path, "(void)!acct((void *)0);")
    eal = ["-l", str(min(os.sched_getaffinity(0))), "--no-huge", "-m", "256", "--vdev=net_null0"]
    own = ["--ip", "10.0.0.1", "--streams", "64", "--vocab", str(gpt2_file)]
    appliance = Appliance(tmp_path, eal, own)
    appliance.wait_ready(60)
    appliance.send_signal(signal.SIGUSR2)
    appliance.wait_for("system call acct denied")
    assert appliance.telemetry("/tokd/info")["calls_denied"] == 1
    with pytest.raises(AssertionError, match="acct denied"):
        appliance.stop()


def test_no_disk_can_be_opened(ready, tmp_path, monkeypatch) -> None:
    """Nor another device of root's that has nothing to do with packets."""
    opens = 'dprintf(2, "opened: %d %d\\n", open("/dev/full", O_RDWR), open("/dev/null", O_RDWR));'
    with_handler(monkeypatch, tmp_path, opens)
    appliance = ready()
    if "no Landlock" in appliance.log.read_text():
        pytest.skip("this kernel has no Landlock")
    appliance.send_signal(signal.SIGUSR2)
    line = appliance.wait_for("opened: ")
    assert re.search(r"opened: -1 [0-9]+$", line, re.MULTILINE)
    assert appliance.stop() == 0
