# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages unpacked into folders, not installed: kernels and programs of guests, and
Pythons.

All that is made is under build/vm, in names that say what it was made of: a second run finds it.

    debian.py NAME...     make the roots of ROOTS so named
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / os.environ.get("TOKD_BUILD", "build")
CACHE = REPOSITORY / "build/vm"
UNPACK_S = 600


@dataclass(frozen=True)
class Root:
    packages: tuple[str, ...]
    suite: str = "bookworm"
    arch: str = ""  # Debian's name; empty: this machine's


PYTHONS = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}  # as of tools/wheels

ROOTS = {
    # For each architecture of guests, with the Python that tokd-host needs. That of amd64 is also
    # what the disk is made of: a system with systemd and GRUB.
    "amd64": Root(
        (
            "linux-image-amd64", "busybox-static", "systemd-sysv", "python3", "grub2-common", "grub-pc-bin",
            "base-files", "base-passwd", "bash", "coreutils", "dash", "debianutils", "findutils", "grep",
            "kmod", "libstdc++6", "mawk", "mount", "sed", "util-linux",
        ),
        arch="amd64",
    ),
    "arm64": Root(("linux-image-arm64", "busybox-static", "python3.11"), arch="arm64"),
    # What a wheel runs in, with NumPy's library.
    **{
        f"python{version}-{machine}": Root((f"python{version}", "libstdc++6"), suite, arch)
        for version, suite in PYTHONS.items()
        for machine, arch in (("x86_64", "amd64"), ("aarch64", "arm64"))
    },
    # RHEL 9's Python, the oldest that tokd-host supports.
    "python3.9": Root(("python3.9",), suite="bullseye"),
    # For the CPU alone: PyPI's is 3 GB with the CUDA libraries that it does not load without.
    "pytorch": Root(("python3-torch",)),
}  # fmt: skip
# Never looked at, and half of all.
USELESS = ("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/lib/grub/i386-pc/*.module")
USELESS_DRIVERS = (
    "media", "gpu", "staging", "usb", "scsi", "hwmon", "iio", "input", "isdn", "mtd", "platform"
)  # fmt: skip


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def made(kind: str, inputs: str, make: Callable[[Path], None]) -> Path:
    """build/vm/KIND-INPUTS, by `make` unless it is there; older ones of the kind are removed.

    Whole or not there, whatever ends `make`; of several processes one makes it.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{kind}-{inputs}"
    with locked(CACHE / f"{kind}.lock"):
        if path.exists():
            return path
        for old in CACHE.glob(f"{kind}-*"):
            remove(old)
        new = CACHE / f"{kind}-new"
        make(new)
        new.rename(path)
    return path


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among processes that lock `path`."""
    with path.open("w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _inputs(name: str) -> str:
    return digest(ROOTS[name], USELESS, USELESS_DRIVERS)


def root(name: str) -> Path:
    """The unpacked packages of ROOTS[name]. Raises RuntimeError where they cannot be had."""
    which = ROOTS[name]

    def make(folder: Path) -> None:
        # A mirror's copy of a release that is not stable yet may be weeks old.
        expired = '--aptopt=Acquire::Check-Valid-Until "false"'
        command = ["mmdebstrap", "--quiet", "--variant=extract", expired]
        command += [f"--arch={which.arch}"] if which.arch else []
        if "base-files" in which.packages or which.suite in ("trixie", "forky"):
            command.append("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr")
        command += [f"--include={','.join(which.packages)}", which.suite, str(folder)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=UNPACK_S,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        for pattern in USELESS:
            for path in folder.glob(pattern):
                remove(path)
        for drivers in folder.glob("lib/modules/*/kernel/drivers"):
            for useless in USELESS_DRIVERS:
                remove(drivers / useless)

    return made(f"root-{name}", _inputs(name), make)


def python(name: str) -> list[str] | None:
    """A command that starts the Python of ROOTS[name] with the root's own libraries; None where the
    root was not made yet."""
    folder = CACHE / f"root-{name}-{_inputs(name)}"
    if not folder.is_dir():
        return None
    (loader,) = folder.glob("lib/*-linux-gnu/ld-linux-*.so.*")
    triplet = loader.parent.name
    places = [f"lib/{triplet}", f"usr/lib/{triplet}", "usr/lib"]
    places += [f"usr/lib/{triplet}/{name}" for name in ("blas", "lapack")]
    (program,) = folder.glob("usr/bin/python3.*[0-9]")
    libraries = ":".join(str(folder / place) for place in places)
    home = f"PYTHONHOME={folder / 'usr'}"
    return ["env", home, str(loader), "--library-path", libraries, str(program)]


def modules(folder: Path) -> Path:
    """The kernel's modules in an unpacked root."""
    (path,) = (folder / "lib/modules").iterdir()
    return path


def kernel(folder: Path) -> Path:
    """The kernel in an unpacked root."""
    (path,) = (folder / "boot").glob("vmlinuz-*")
    return path


def config(folder: Path) -> Path:
    """What that kernel was built with."""
    (path,) = (folder / "boot").glob("config-*")
    return path


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        try:
            print(root(wanted))
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            sys.exit(f"debian.py: {wanted}: {error}")
