# SPDX-License-Identifier: BSD-3-Clause
"""What tools/wheels makes: from nothing but it, the Python lines of the documents run."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import debian
import pytest
from bench.programs import ROOT

DOCUMENTED = ROOT / "tests/support/documented.py"
PAGES = (ROOT / "README.md", *(ROOT / f"doc/user/{name}.md" for name in ("python", "chat", "bulk")))
VOCABULARIES = sorted(
    {name for page in PAGES for name in re.findall(r'Tokenizer\.load\("(\w+)"\)', page.read_text())}
)
MACHINE = os.uname().machine
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
ISA = "import dpdk_tokd; print(dpdk_tokd.Tokenizer.load('gpt2').info.isa)"
IMPORT_MS = """
import time, numpy
begin = time.process_time()
import dpdk_tokd
print((time.process_time() - begin) * 1000)
"""


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
    if f"{arch}-{version}" not in ran(ROOT / "tools/wheels", "--help"):
        pytest.skip(f"tools/wheels makes no wheel of Python {version} for {arch}")
    ran(ROOT / "tools/wheels", f"{arch}-{version}")
    tag = f"cp{version.replace('.', '')}"
    (found,) = (ROOT / "build-wheels/dist").glob(f"*-{tag}-{tag}-manylinux_*_{arch}.whl")
    return found


def sdist() -> Path:
    (found,) = (ROOT / "build-wheels/dist").glob("*.tar.gz")
    return found


def ours() -> str:
    """The vector code that this machine's build chooses."""
    return ran(ROOT / "build/venv/bin/python", "-c", ISA)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where vocabularies are looked up: empty, so that nothing else is found."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a fresh environment with the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    ran(sys.executable, "-m", "venv", folder)
    ran(folder / "bin/pip", "install", "--quiet", wheel(MACHINE, VERSION))
    return folder / "bin/python"


@pytest.fixture
def skips(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Puts what was skipped of the documents into the record."""

    def record(printed: str) -> None:
        lines = [line for line in printed.splitlines() if ": skipped, " in line]
        record_property("text", "\n".join(f"- {line}" for line in lines))

    return record


def test_a_fresh_environment_with_the_wheel(
    python: Path, data: Path, skips: Callable[[str], None]
) -> None:
    for name in VOCABULARIES:
        ran(python, "-m", "dpdk_tokd.fetch", name, XDG_DATA_HOME=data)
    ran(python, "-m", "pip", "install", "--quiet", "dpdk-tokd[chat]")  # as its absence is reported
    skips(ran(python, "-P", DOCUMENTED, *PAGES, XDG_DATA_HOME=data))
    assert ran(python, "-m", "pip", "check") == "No broken requirements found.\n"
    assert ran(python, "-c", ISA, XDG_DATA_HOME=data) == ours()  # the vector code is in the wheel


def test_it_encodes_files(python: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "Hello, world"}\n' * 3)
    command = [python, "-m", "dpdk_tokd", "encode", "gpt2", tmp_path / "in.jsonl"]
    ran(*command, "-o", tmp_path / "out", XDG_DATA_HOME=data)
    assert (tmp_path / "out.bin").read_bytes() == bytes([136, 60, 11, 0, 227, 3] * 3)


def test_it_is_imported_in_20_ms(
    python: Path, record_property: Callable[[str, object], None]
) -> None:
    """Of processor time beyond numpy's; the least of 10, for other programs take caches away."""
    took = min(float(ran(python, "-c", IMPORT_MS)) for _ in range(10))
    record_property("ms to import", round(took, 1))
    assert took < 20


def test_wheel_and_sdist_hold_licence_and_types(python: Path) -> None:
    (made,) = (ROOT / "build-wheels/dist").glob(f"*-cp{VERSION.replace('.', '')}-*_{MACHINE}.whl")
    held = zipfile.ZipFile(made).namelist()
    assert {"dpdk_tokd/py.typed", "dpdk_tokd/_native/libtok.pyi"} <= {*held}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in held)
    assert not [name for name in held if name.endswith((".c", ".h")) or name.startswith("tests")]
    with tarfile.open(sdist()) as archive:
        root = sdist().name.removesuffix(".tar.gz")
        names = {f"{root}/LICENSE", f"{root}/dpdk_tokd/py.typed", f"{root}/lib/tokenizer/tok.h"}
        assert names <= {*archive.getnames()}
    version = ran(python, "-c", "import dpdk_tokd; print(dpdk_tokd.__version__)").strip()
    assert root == f"dpdk_tokd-{version}" and made.name.startswith(f"{root}-")


def test_the_sdist_needs_a_compiler_alone(tmp_path: Path, data: Path) -> None:
    ran(sys.executable, "-m", "venv", tmp_path)
    path = "/usr/bin:/bin"
    ran(tmp_path / "bin/pip", "install", "--quiet", sdist(), PATH=path)
    assert ran(tmp_path / "bin/pip", "check") == "No broken requirements found.\n"
    python = tmp_path / "bin/python"
    ran(python, "-m", "dpdk_tokd.fetch", "gpt2", XDG_DATA_HOME=data)
    assert ran(python, "-c", ISA, XDG_DATA_HOME=data) == ours()


@pytest.mark.parametrize("version", debian.PYTHONS)
@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_another_python_with_its_wheel(tmp_path: Path, data: Path, arch: str, version: str) -> None:
    """Debian's, unpacked; that of another architecture by qemu-user."""
    if (arch, version) == (MACHINE, VERSION):
        pytest.skip("this machine's own: the tests above")
    made = wheel(arch, version)
    root = debian.root(f"python{version}-{arch}")
    site = tmp_path / "site"
    options = ["--quiet", "--only-binary=:all:", f"--python-version={version}", "--target", site]
    platforms = [f"--platform=manylinux_2_{glibc}_{arch}" for glibc in (28, 27, 26, 17)]
    ran(sys.executable, "-m", "pip", "install", *options, *platforms, f"{made}[chat]")
    if arch == MACHINE:
        python = debian.python(f"python{version}-{arch}")
    else:
        python = [
            f"qemu-{arch}-static",
            "-cpu",
            "max",
            "-L",
            root,
            root / f"usr/bin/python{version}",
        ]
    names = {"XDG_DATA_HOME": data, "PYTHONPATH": site}
    for name in VOCABULARIES:
        ran(ROOT / "tools/fetch-vocab", name, XDG_DATA_HOME=data)
    ran(*python, "-P", DOCUMENTED, *PAGES, **names)
    assert ran(*python, "-c", ISA, **names) == ("neon\n" if arch == "aarch64" else ours())
