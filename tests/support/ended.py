# SPDX-License-Identifier: BSD-3-Clause
"""Programs that end by themselves."""

import subprocess
from typing import Any


def ended(*command: object, timeout: float = 60, **more: Any) -> subprocess.CompletedProcess[str]:
    """What it wrote and how it ended, well or not."""
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, timeout=timeout, **more
    )
