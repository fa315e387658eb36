# SPDX-License-Identifier: BSD-3-Clause
"""From nothing but a wheel: a vocabulary is fetched, and the Python lines of the documents run."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import debian
import pytest
from bench.programs import ROOT

DOCUMENTED = Path(__file__).with_name("documented.py")
PAGES = (ROOT / "README.md", ROOT / "doc/user/python.md")
VOCABULARIES = sorted(
    {name for page in PAGES for name in re.findall(r'Tokenizer\.load\("(\w+)"\)', page.read_text())}
)
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def ran(*command: object, **environment: object) -> str:
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    if "PYTHONPATH" not in environment:
        env.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(part) for part in command], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheel(arch: str, version: str) -> Path:
    known = ran(ROOT / "tools/wheels", "--help")
    if f"{arch}-{version}" not in known:
        pytest.skip(f"tools/wheels makes no wheel of Python {version} for {arch}")
    ran(ROOT / "tools/wheels", f"{arch}-{version}")
    tag = f"cp{version.replace('.', '')}"
    (found,) = (ROOT / "build-wheels/dist").glob(f"*-{tag}-{tag}-manylinux_*_{arch}.whl")
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def test_a_fresh_environment_with_the_wheel(tmp_path: Path, data: Path) -> None:
    python = tmp_path / "bin/python"
    ran(sys.executable, "-m", "venv", tmp_path)
    ran(python, "-m", "pip", "install", "--quiet", wheel(os.uname().machine, VERSION))
    for name in VOCABULARIES:
        ran(python, "-m", "dpdk_tokd.fetch", name, XDG_DATA_HOME=data)
    ran(python, DOCUMENTED, *PAGES, XDG_DATA_HOME=data)
    isa = "import dpdk_tokd; print(dpdk_tokd.Tokenizer.load('gpt2').info.isa)"
    ours = ran(ROOT / "build/venv/bin/python", "-c", isa)
    assert ran(python, "-c", isa, XDG_DATA_HOME=data) == ours  # the vector code is in the wheel


def test_an_aarch64_machine_with_the_wheel(tmp_path: Path, data: Path) -> None:
    made = wheel("aarch64", "3.11")
    root = debian.root("python-arm64")
    numpy = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.11"]
    numpy += ["--platform=manylinux_2_28_aarch64", "--platform=manylinux_2_27_aarch64"]
    ran(sys.executable, "-m", "pip", *numpy, "numpy", "--dest", tmp_path)
    site = tmp_path / "site"
    for archive in (made, *tmp_path.glob("*.whl")):
        with zipfile.ZipFile(archive) as files:
            files.extractall(site)
    python = ["qemu-aarch64-static", "-cpu", "max", "-L", root, root / "usr/bin/python3.11"]
    names = {"XDG_DATA_HOME": data, "PYTHONPATH": site}
    for name in VOCABULARIES:
        ran(ROOT / "tools/fetch-vocab", name, XDG_DATA_HOME=data)
    ran(*python, DOCUMENTED, *PAGES, **names)
    isa = "import dpdk_tokd; print(dpdk_tokd.Tokenizer.load('gpt2').info.isa)"
    assert ran(*python, "-c", isa, **names) == "neon\n"
