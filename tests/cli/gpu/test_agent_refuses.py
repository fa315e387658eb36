# SPDX-License-Identifier: BSD-3-Clause
"""What tokd-gpu does not start with: one line with the option, and the exit code by which systemd
tries again (1) or does not (2)."""

import os
import subprocess
from pathlib import Path

import pytest
from gpu_agent import AGENT

AGAIN, NEVER = 1, 2


def refused(folder: Path, *options: str) -> tuple[int, str]:
    if not AGENT.is_file():
        pytest.skip(f"{AGENT} is missing: ninja -C build")
    command = [AGENT, "--table", "random:5x8", "--listen", f"unix:{folder}/ring"]
    command += ["--subscribers-socket", folder / "subscribers", *options]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOKD_")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.stderr.startswith("tokd-gpu: ") and done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr.strip().removeprefix("tokd-gpu: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--slot-bytes", "3000"], "--slot-bytes 3000: not a power of two; give 2k or 4k"),
        (["--out-bytes", "3000"], "--out-bytes 3000: not a power of two; give 2k or 4k"),
        (["--out-bytes", "1k"], "tokd-gpu --out-bytes) is 1024, must be "),
        (["--producers", "64", "--slots", "4096"], "(tokd-gpu --producers, --slots) is 262144,"),
        (["--first-cpu", "4095"], "--first-cpu 4095: 2 threads (--workers, scanner) from there"),
        (["--workers", "1000"], "--workers 1000: at most "),
        (["--rdma-tclass", "256"], "--rdma-tclass 256: "),
        (["--rdma-sl", "16"], "--rdma-sl 16: "),
        (["--listen", "tcp:99999"], "--listen tcp:99999: give up to "),
    ],
)
def test_options_that_cannot_be_are_named_and_not_tried_again(
    tmp_path: Path, options: list[str], said: str
) -> None:
    code, text = refused(tmp_path, *options)
    assert said in text and code == NEVER


def test_a_socket_without_a_folder_has_a_remedy(tmp_path: Path) -> None:
    for option, where in (("--listen", "unix:"), ("--subscribers-socket", "")):
        code, text = refused(tmp_path, option, f"{where}{tmp_path}/none/socket")
        assert text == (
            f"{tmp_path}/none/socket: No such file or directory: its folder must exist and be "
            "writable; or give another path"
        )
        assert code == AGAIN


def test_a_listener_for_rdma_without_it_names_its_option(tmp_path: Path) -> None:
    if Path("/sys/class/infiniband").is_dir() and os.listdir("/sys/class/infiniband"):
        pytest.skip("there is an RDMA device")
    code, text = refused(tmp_path, "--listen", "tcp:7472")
    assert text.startswith("--listen tcp needs RDMA: ") and text.endswith("; see tokd-diag")
    assert code == AGAIN


def test_the_journal_gets_the_level_of_a_line(tmp_path: Path) -> None:
    if not AGENT.is_file():
        pytest.skip(f"{AGENT} is missing: ninja -C build")
    command = [AGENT, "--table", "random:5x8", "--subscribers-socket", tmp_path / "no/socket"]
    with (tmp_path / "log").open("w") as log:
        held = os.fstat(log.fileno())
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOKD_")}
        environment["JOURNAL_STREAM"] = f"{held.st_dev}:{held.st_ino}"
        command += ["--listen", f"unix:{tmp_path}/ring"]
        done = subprocess.run(command, stderr=log, timeout=60, env=environment, check=False)
    assert done.returncode == AGAIN
    assert (tmp_path / "log").read_text().startswith(f"<3>tokd-gpu: {tmp_path}/no/socket: ")
