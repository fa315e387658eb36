#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tokd-host with a kernel behind a prepared root's /proc and /sys: what is written there is
answered as Linux does.

Files alone would take anything and show it again. Linux shows a mask without leading zeros, moves
no interrupt whose `managed` file is there, binds a device to the driver that its driver_override
names, and reads "(null)" as a name.
"""

import errno
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "config"))
sys.dont_write_bytecode = True

import roots
from host import cli, root
from host.report import Failed

os.fsync = lambda fd: None  # no test pulls the plug, and a busy disk takes its time


def fail(number: int, path: Path) -> None:
    raise OSError(number, os.strerror(number), str(path))


def override(path: Path, text: str) -> None:
    """An empty line is none. Whatever else is a name, "(null)" too, which is shown as none is."""
    name = text.partition("\n")[0]
    path.write_text((name or "(null)") + "\n")
    path.with_name("x-override").unlink(missing_ok=True)
    if name:
        path.with_name("x-override").write_text(name)


def unbind(path: Path, text: str) -> None:
    device = path.resolve().parents[2] / "devices" / text.strip()
    driver = device / "driver"
    if not driver.is_symlink() or driver.resolve() != path.resolve().parent:
        fail(errno.ENODEV, path)
    driver.unlink()


def probe(path: Path, text: str) -> None:
    """The driver that the override names, else the one that knows the device; its probe may fail,
    in silence."""
    device = path.parent / "devices" / text.strip()
    if not device.is_dir():
        fail(errno.ENODEV, path)
    said = device / "x-override"
    name = (said if said.exists() else device / "x-native").read_text().strip()
    if (
        (device / "driver").is_symlink()
        or not name
        or not (path.parent / "drivers" / name).is_dir()
    ):
        return
    if name == "vfio-pci":
        unsafe = path.parents[2] / "module/vfio/parameters/enable_unsafe_noiommu_mode"
        if (device / "x-vfio-fails").exists():
            return
        if not (device / "iommu_group").exists():
            if unsafe.read_text() != "Y\n":
                return
            (device / "iommu_group").mkdir()
            (device / "iommu_group/name").write_text("vfio-noiommu\n")
    elif (device / "iommu_group/name").exists():
        (device / "iommu_group/name").unlink()
        (device / "iommu_group").rmdir()
    (device / "driver").symlink_to(f"../../drivers/{name}")


def default_mask(path: Path, text: str) -> None:
    path.write_text(re.sub(r"^[0,]+(?=.)", "", text.strip()) + "\n")


def affinity(path: Path, text: str) -> None:
    if (path.parent / "x-errno").exists():
        fail(int((path.parent / "x-errno").read_text()), path)
    if (once := path.parent / "x-once").exists():  # moved, and then it is gone with its device
        once.rename(path.parent / "x-errno").write_text(str(errno.EIO))
    path.write_text(text.strip() + "\n")


def pages(path: Path, text: str) -> None:
    """As many as memory has in one piece."""
    most = path.parent / "x-most"
    count = int(text)
    path.write_text(f"{min(count, int(most.read_text())) if most.exists() else count}\n")


FILES = {
    "driver_override": override,
    "unbind": unbind,
    "drivers_probe": probe,
    "default_smp_affinity": default_mask,
    "smp_affinity_list": affinity,
    "nr_hugepages": pages,
}


def to_kernel(path: Path, text: str) -> None:
    if not path.exists():
        fail(errno.ENOENT, path)
    FILES.get(path.name, lambda p, t: p.write_text(t))(path, text)


root.to_kernel = to_kernel
run = root.Root.run


def run_or_fail(self: root.Root, name: str, *args: str, in_root: bool = False) -> bool:
    """A program of this root fails where the file /x-fails names it: most are not run in a prepared
    root at all."""
    if self.read("/x-fails").strip() == name:
        raise Failed(f"{name}: exit status 1: as told")
    return run(self, name, *args, in_root=in_root)


root.Root.run = run_or_fail
root.Root.ask = lambda self, name, *args: roots.ask(self.folder, name, *args)

if __name__ == "__main__":
    sys.exit(cli.main())
