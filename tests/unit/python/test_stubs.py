# SPDX-License-Identifier: BSD-3-Clause
"""The stubs of the C extensions agree with what they have: names, parameters, defaults."""

import subprocess
import sys
from pathlib import Path

# Types alone, and the buffer interface, which has no method before Python 3.12.
ALLOWED = r"""
dpdk_tokd\._native\.libtok\.(\w+Dict|Buffer|Ids|Uint32Ids|Offsets|Side|StreamKind|TokensInText)
dpdk_tokd\._native\.libtok\.EngineMemory
dpdk_tokd\._native\.\w+\.\w+\.__buffer__
"""


def test_the_stubs_are_what_the_extensions_have(tmp_path: Path) -> None:
    (tmp_path / "allowed").write_text(ALLOWED)
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-unused-allowlist"]
    command += ["--allowlist", str(tmp_path / "allowed"), "--ignore-disjoint-bases"]
    command += [f"dpdk_tokd._native.{name}" for name in ("libtok", "libtokd", "block_keys")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
