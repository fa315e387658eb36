# SPDX-License-Identifier: BSD-3-Clause
"""A guest under QEMU without KVM, and what it says on its console.

What tests read are lines of two at signs, a name, and a value ("@@ isolated 1"); the rest is for
people, and printed when a test fails.
"""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Self

import debian
from bench.appliance import DENIED

QEMU = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
PACKAGE = {"amd64": "qemu-system-x86", "arm64": "qemu-system-arm"}
# On a busy host a guest's timers stop for so long that its kernel takes them for broken.
WORDS = {"amd64": "console=ttyS0 no_timer_check", "arm64": "console=ttyAMA0"}
PANIC = "Kernel panic - not syncing"
# Of x86-64, before the devices behind it; a card says ",ats=on". On ARM it is the machine's.
IOMMU = ["-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on"]
LIMIT_S = 600.0  # of a guest's whole life; a minute is usual, where nothing else runs


def why_not(arch: str) -> str | None:
    """Why no guest can be had here, or None."""
    if os.geteuid() != 0:
        return "needs root, for what a disk's files belong to and for taps"
    for program, package in ((QEMU[arch], PACKAGE[arch]), ("mmdebstrap", "mmdebstrap")):
        if shutil.which(program) is None:
            return f"needs {program}: apt-get install {package}"
    return None


class Guest:
    """A running guest. A context manager: at the end it is gone; its console is printed, which
    pytest shows of tests that fail."""

    def __init__(
        self,
        arch: str,
        options: list[str],
        *,
        memory_mb: int,
        kernel: Path | None = None,
        initramfs: Path | None = None,
        words: str = "",
        pass_fds: tuple[int, ...] = (),
        name: str = "guest",
    ) -> None:
        """words: of the kernel's command line. Without a kernel the guest boots from its disk."""
        self.name, self._fds = name, pass_fds
        self._console = (
            debian.CACHE / f"{name.replace(' ', '-')}.console"
        )  # to be looked at while it runs
        machine = {
            "amd64": ["-machine", "q35,kernel-irqchip=split", "-cpu", "max"],
            "arm64": ["-machine", "virt,gic-version=3,iommu=smmuv3", "-cpu", "cortex-a76"],
        }[arch]
        command = [QEMU[arch], "-accel", "tcg,thread=multi", *machine]
        command += [
            "-smp",
            "2",
            "-m",
            str(memory_mb),
            "-nodefaults",
            "-display",
            "none",
            "-serial",
            "stdio",
        ]
        if kernel is not None:
            line = f"{WORDS[arch]} panic=-1 quiet {words}".strip()
            command += [
                "-no-reboot",
                "-kernel",
                str(kernel),
                "-initrd",
                str(initramfs),
                "-append",
                line,
            ]
        self.command = [*command, *options]
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False

    def __enter__(self) -> Self:
        self._begin = time.monotonic()
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=self._fds,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stdin.close()
        self._process.stdout.close()
        took = time.monotonic() - self._begin
        print(f"--- {self.name}, {took:.0f} s: {' '.join(self.command)}")
        print("\n".join(self._lines))

    def _read(self) -> None:
        with self._console.open("w") as console:
            for raw in self._process.stdout:
                line = raw.decode("utf-8", "replace").rstrip()
                with self._changed:
                    self._lines.append(f"{time.monotonic() - self._begin:6.1f}  {line}")
                    self._ended |= PANIC in line
                    self._changed.notify_all()
                print(self._lines[-1], file=console, flush=True)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, name: str) -> str:
        """The value of the first line `@@ name value`, there or to come."""
        deadline = self._begin + LIMIT_S
        mark = f"@@ {name}"
        with self._changed:
            seen = 0
            while True:
                for line in self._lines[seen:]:
                    # Behind the mark of a line's begin, since kernels write between.
                    _, found, value = (line + " ").partition(mark + " ")
                    if found:
                        return value.strip()
                seen = len(self._lines)
                if self._ended:
                    raise AssertionError(
                        f"{self.name} ended, or its kernel panicked, and never said {name!r}"
                    )
                if not self._changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"{self.name} did not say {name!r} within {LIMIT_S:.0f} s")

    def said(self, name: str) -> list[str]:
        """Values of all lines of that name so far."""
        mark = f"@@ {name} "
        with self._changed:
            return [
                (line + " ").partition(mark)[2].strip()
                for line in self._lines
                if mark in line + " "
            ]

    def send(self, line: str) -> None:
        """On the guest's console."""
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Waits until it has turned itself off."""
        left = self._begin + LIMIT_S - time.monotonic()
        try:
            status = self._process.wait(max(left, 1))
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name} did not turn itself off within {LIMIT_S:.0f} s"
            ) from None
        assert status == 0, f"{self.name}: QEMU's exit status is {status}"
        self._reader.join()
        assert not [line for line in self._lines if DENIED.search(line)]
