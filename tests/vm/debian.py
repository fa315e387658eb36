# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages unpacked into a folder, not installed: kernels and programs of guests.

All that these tests make is under build/vm, in names that say what it was made of: a second run finds it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / os.environ.get("TOKD_BUILD", "build")
CACHE = BUILD / "vm"
SUITE = "bookworm"
UNPACK_S = 600

# One root for each architecture, with the Python that tokd-host needs. That of amd64 is also what the disk is made of:
# a system with systemd and GRUB.
PACKAGES = {
    "amd64": [
        "linux-image-amd64", "busybox-static", "systemd-sysv", "python3", "grub2-common", "grub-pc-bin",
        "base-files", "base-passwd", "bash", "coreutils", "dash", "debianutils", "findutils", "grep",
        "mawk", "mount", "sed", "util-linux",
    ],
    "arm64": ["linux-image-arm64", "busybox-static", "python3.11"],
}  # fmt: skip
# Never looked at, and half of all.
USELESS = ("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/lib/grub/i386-pc/*.module")
USELESS_DRIVERS = (
    "media",
    "gpu",
    "staging",
    "usb",
    "scsi",
    "hwmon",
    "iio",
    "input",
    "isdn",
    "mtd",
    "platform",
)


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


def root(arch: str) -> Path:
    """The unpacked packages of `arch`, as Debian calls it. Raises RuntimeError where they cannot be had."""
    packages = PACKAGES[arch]

    def make(folder: Path) -> None:
        command = ["mmdebstrap", "--quiet", f"--arch={arch}", "--variant=extract"]
        command += (
            ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
            if "base-files" in packages
            else []
        )
        command += [f"--include={','.join(packages)}", SUITE, str(folder)]
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
        for name in USELESS_DRIVERS:
            remove(modules(folder) / "kernel/drivers" / name)

    return made(f"root-{arch}", digest(packages, USELESS, USELESS_DRIVERS), make)


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
