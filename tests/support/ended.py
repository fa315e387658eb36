# SPDX-License-Identifier: BSD-3-Clause
"""Programs that end by themselves."""

import os
import subprocess
from typing import Any


def ended(
    *command: str | int | os.PathLike[str], timeout: float = 60, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program; any exit code is accepted. What it wrote and how it ended."""
    words = [str(word) if isinstance(word, int) else os.fspath(word) for word in command]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=timeout, **more
    )
