# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd for a guest's CPU, which is not the one that build/ is for."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import debian
import pytest
from initramfs import Initramfs, find

CPU = "x86-64-v3"  # the most that QEMU has without KVM
BUILD_S = 1200
CARD_DRIVERS = ("librte_bus_pci", "librte_bus_vdev", "librte_mempool_ring", "librte_net_virtio")
ABI = "23"  # of DPDK 22.11


@dataclass(frozen=True)
class Programs:
    """A build, and where its libraries are."""

    build: Path
    libraries: list[Path]
    drivers: Path

    @property
    def appliance(self) -> Path:
        return self.build / "app/dpdk-tokd"

    def add_appliance(self, archive: Initramfs, names: tuple[str, ...] = CARD_DRIVERS) -> None:
        """dpdk-tokd, and DPDK's drivers in /drivers: those that it needs for one virtio card, or
        others."""
        archive.program(self.appliance, self.libraries)
        archive.library(
            "libgcc_s.so.1", self.libraries
        )  # opened by name when a thread is cancelled
        drivers = [self.drivers / f"{name}.so.{ABI}" for name in names]
        for path in (
            drivers
        ):  # EAL loads those with its own ending, the loader what drivers call each other
            archive.file(f"drivers/{path.name}.0", path.read_bytes())
            archive.link(f"drivers/{path.name}", f"{path.name}.0")
        for path in drivers:
            archive.libraries_of(path, self.libraries)

    def add_rdma(self, archive: Initramfs) -> None:
        """libibverbs' driver for soft-RoCE, and the tool that makes a device of it; of this
        machine."""
        driver = find("libibverbs/librxe-rdmav34.so", self.libraries)
        archive.file(str(driver), driver.read_bytes())
        archive.libraries_of(driver, self.libraries)
        archive.file("etc/libibverbs.d/rxe.driver", b"driver rxe\n", 0o644)
        archive.program(Path("/usr/bin/rdma"), self.libraries)


def amd64(*targets: str) -> Programs:
    """Built into build/vm, beside build/."""
    build = debian.CACHE / CPU
    debian.CACHE.mkdir(parents=True, exist_ok=True)
    with debian.locked(debian.CACHE / f"{CPU}.lock"):
        if not (build / "build.ninja").is_file():
            _run("meson", "setup", str(build), f"-Dcpu={CPU}", cwd=debian.REPOSITORY)
        _run("ninja", "-C", str(build), *(targets or ("app/dpdk-tokd",)))
    libraries = Path("/usr/lib/x86_64-linux-gnu")
    return Programs(build, [libraries, Path("/lib64")], libraries / f"dpdk/pmds-{ABI}.0")


def arm64() -> Programs:
    """What tools/arm made."""
    build = debian.REPOSITORY / "build-arm"
    if not (build / "app/dpdk-tokd").is_file():
        pytest.skip(f"{build}/app/dpdk-tokd is not there: run tools/arm")
    libraries = build / "root/usr/lib/aarch64-linux-gnu"
    return Programs(
        build,
        [libraries, build / "root/lib/aarch64-linux-gnu", build / "root/lib"],
        libraries / f"dpdk/pmds-{ABI}.0",
    )


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=BUILD_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
