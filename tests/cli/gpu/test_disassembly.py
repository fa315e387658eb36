# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc made of the kernel: nothing that others write is loaded past the coherent caches.

A GPU's non-coherent loads (ld.global.nc, LDG.CONSTANT) may return what a word held long ago. The
compiler chooses them for what it believes to be constant: the source does not say it, and a run
shows it only on a GPU, seldom. So it is read from the object code: there must be none at all.
"""

import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

KERNEL = Path(os.environ["TOKD_BUILD"]) / "lib/gpu_sink/kernel"


def tools_path() -> str:
    """PATH, and before it where tools/requirements.txt has cuobjdump and nvdisasm put."""
    folders = []
    for package in ("nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm"):
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        folders += [str(Path(f.locate()).parent) for f in files if f.parent.name == "bin"]
    return os.pathsep.join([*folders, os.environ["PATH"]])


@pytest.fixture(scope="module", params=["device_cuda", "graphs_cuda"])
def sass(request: pytest.FixtureRequest) -> str:
    path = KERNEL / f"{request.param}.o"
    if not path.exists():
        pytest.skip("this build has no kernel: nvcc was not found")
    env = os.environ | {"PATH": tools_path()}
    missing = [
        tool for tool in ("cuobjdump", "nvdisasm") if not shutil.which(tool, path=env["PATH"])
    ]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found: run tools/setup")
    command = ["cuobjdump", "-sass", path]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_machine_code_has_no_load_that_is_not_coherent(sass: str, arch: str) -> None:
    code = next(part for part in sass.split("Fatbin elf code:") if f"arch = {arch}" in part)
    loads = re.findall(r"\bLDG?\.[\w.]+", code)
    assert any("STRONG.SYS" in load for load in loads)
    assert not [load for load in loads if "CONSTANT" in load or ".NC" in load]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_machine_code_keeps_rows_in_registers(sass: str, arch: str) -> None:
    """The kernel spills nothing: a row that is held would be in local memory, which is as far as
    the tables."""
    code = next(part for part in sass.split("Fatbin elf code:") if f"arch = {arch}" in part)
    assert not re.findall(r"\b(?:LDL|STL)\b.*", code)
