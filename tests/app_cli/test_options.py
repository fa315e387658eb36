# SPDX-License-Identifier: BSD-3-Clause
"""Exit codes and messages before EAL starts: no privileges, no huge pages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def run(binary: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [binary, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("args", [["--help"], ["-l", "99", "--help"], ["--", "--help"]])
def test_help_is_shown_on_both_sides_of_the_dashes(binary: Path, args: list[str]) -> None:
    done = run(binary, *args)
    assert done.returncode == 0
    assert done.stderr == ""
    for option in ("--ip ADDR", "--vocab NAME|PATH", "--ring-size BYTES", "--drain MS"):
        assert option in done.stdout
    assert "default 16M" in done.stdout


@pytest.mark.parametrize("args", [["--version"], ["--", "--version"]])
def test_version_names_ours_and_dpdks(binary: Path, args: list[str]) -> None:
    done = run(binary, *args)
    assert done.returncode == 0
    assert done.stdout.startswith("dpdk-tokd ")
    assert "DPDK" in done.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "--ip ADDR is missing"),
        (["--vocab", "gpt2"], "put it after --"),
        (["--", "--ip", "10.0.0.1", "--ring-size", "3M"], "give 2M or 4M"),
        (["--", "--ip", "10.0.0.1", "--udp-port", "70000"], "give 1 to 65535"),
        (["--", "--ip", "10.0.0.1", "--no-such"], "--no-such: no such application option"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_code_2(binary: Path, args: list[str], says: str) -> None:
    done = run(binary, *args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_has_the_exit_codes(binary: Path) -> None:
    assert "exit code: 0 after SIGINT" in run(binary, "--", "--help").stdout
