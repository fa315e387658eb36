# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: built in a clean Debian 12 with their Build-Depends alone, and checked by
lintian; installed, run, upgraded, removed and purged in a fresh one (installed.sh)."""

import re
import subprocess
from pathlib import Path

import debian
import pytest

HERE = Path(__file__).resolve().parent
CONTROL = (debian.REPOSITORY / "debian/control").read_text()
LIMIT_S = 1800


def run(*command: object, cwd: Path = debian.REPOSITORY) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def builder() -> Path:
    """A Debian with what the packages are built of, and lintian."""
    field = re.search(r"^Build-Depends: (.*(?:\n .*)*)", CONTROL, re.MULTILINE)[1]
    needs = re.sub(r"\s+", " ", field)

    def make(folder: Path) -> None:
        satisfy = f'chroot "$1" apt-get satisfy -y --no-install-recommends "{needs}"'
        run("mmdebstrap", "--quiet", "--variant=apt", "--include=build-essential,lintian",
            f"--customize-hook={satisfy}", "bookworm", folder)  # fmt: skip

    return debian.made("builder", debian.digest(needs), make)


def inside(root: Path, script: str) -> str:
    mounts = (
        'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" sh -ec "$1"'
    )
    return run("unshare", "--mount", "sh", "-ec", mounts, root, script)


@pytest.fixture(scope="module")
def packages() -> Path:
    """The folder with the .deb files and the .changes file."""
    root = builder()
    sources = root / "build/dpdk-tokd"
    debian.remove(root / "build")
    sources.mkdir(parents=True)
    run("sh", "-c", 'git ls-files -z | tar -c --null -T - | tar -x -C "$0"', sources)
    inside(root, "cd /build/dpdk-tokd; dpkg-buildpackage -b -us -uc")
    return root / "build"


def test_lintian_finds_nothing(packages: Path) -> None:
    root = packages.parent
    said = inside(root, "cd /build; lintian --allow-root --fail-on error,warning *.changes")
    assert said == ""


def test_they_are_installed_run_upgraded_and_purged(
    packages: Path, tmp_path: Path, gpt2_file: Path
) -> None:
    debs, next_ones = tmp_path / "debs", tmp_path / "debs/next"
    next_ones.mkdir(parents=True)
    for package in packages.glob("*.deb"):
        if "-dbgsym" in package.name:
            continue
        run("cp", package, debs)
        unpacked = tmp_path / package.stem
        run("dpkg-deb", "--raw-extract", package, unpacked)
        run(
            "sed",
            "-i",
            r"s/^Version: .*/&+next/; s/(= [0-9][^)]*/&+next/g",
            unpacked / "DEBIAN/control",
        )
        run("dpkg-deb", "--build", "--root-owner-group", "-Znone", unpacked, next_ones)
    run("cp", gpt2_file, debs / f"vocabulary{gpt2_file.suffix}")
    run("cp", HERE / "installed.sh", debs)
    said = run("mmdebstrap", "--quiet", "--variant=minbase", "--include=iproute2",
        f"--customize-hook=copy-in {debs} /", '--customize-hook=chroot "$1" sh -eux /debs/installed.sh',
        "bookworm", "/dev/null")  # fmt: skip
    print(said)
