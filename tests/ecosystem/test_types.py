# SPDX-License-Identifier: BSD-3-Clause
"""The types of the installed package, as mypy and Pyright see them in a user's program."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("typed_user.py")


def checked(folder: Path, *command: str) -> str:
    """Run elsewhere, where no configuration of the repository is found."""
    done = subprocess.run(
        [sys.executable, "-m", *command, str(PROGRAM)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="pip install mypy")
    assert "no issues found in 1 source file" in checked(tmp_path, "mypy", "--strict")


def test_pyright_strict(tmp_path: Path) -> None:
    """basedpyright is Pyright with its node: PyPI's pyright downloads one when it starts."""
    pytest.importorskip("basedpyright", reason="pip install basedpyright")
    assert "0 errors" in checked(
        tmp_path, "basedpyright", "--level=error", f"--pythonpath={sys.executable}"
    )
