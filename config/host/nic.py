# SPDX-License-Identifier: BSD-3-Clause
"""Stage nic: each port at the driver that DPDK needs.

NVIDIA's cards stay on their kernel driver (mlx5_core): DPDK's mlx5 works beside it, through verbs. All others go to vfio-pci,
behind an IOMMU. Without one a device may write anywhere: that takes an explicit word.
"""

from host.plan import Plan
from host.report import Finding, Level, Refusal
from host.root import Root

NAME = "nic"
STAY = ("mlx5_core", "mlx4_core", "mana")
VFIO = "/sys/bus/pci/drivers/vfio-pci"
NOIOMMU = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
MELLANOX = "0x15b3"


def _device(nic: str) -> str:
    return f"/sys/bus/pci/devices/{nic}"


def driver(root: Root, nic: str) -> str:
    return root.link(f"{_device(nic)}/driver")


def stays(root: Root, nic: str) -> bool:
    return driver(root, nic) in STAY or root.read(f"{_device(nic)}/vendor").strip() == MELLANOX


def _has_address(root: Root, nic: str) -> str:
    """A network interface of it that is up: binding would cut it off; "" if none."""
    for name in root.names(f"{_device(nic)}/net"):
        if root.read(f"/sys/class/net/{name}/operstate").strip() == "up":
            return name
    return ""


def check(root: Root, plan: Plan) -> list[Finding]:
    found = []
    for nic in plan.nics:
        if not root.exists(_device(nic)):
            found.append(Finding(NAME, Level.BAD, f"{nic}: no such device", remedy="lspci -D"))
            continue
        now = driver(root, nic) or "no driver"
        good = now in STAY if stays(root, nic) else now == "vfio-pci"
        want = "its kernel driver (mlx5_core)" if stays(root, nic) else "vfio-pci"
        found.append(
            Finding(NAME, Level.OK if good else Level.BAD,
                f"{nic}: {now}" + ("" if good else f", DPDK needs {want}"),
                "" if good else "DPDK does not see the port", "" if good else "tokd-host apply")
        )
        if not stays(root, nic) and not root.exists(f"{_device(nic)}/iommu_group"):
            found.append(
                Finding(NAME, Level.WARN, f"{nic}: no IOMMU group: the device could write anywhere in memory",
                    remedy="turn the IOMMU on (firmware; intel_iommu=on iommu=pt on the kernel's command "
                    "line); or accept it by --unsafe-noiommu", reboot=True)
            )
    return found


def apply(root: Root, plan: Plan) -> None:
    for nic in plan.nics:
        if not root.exists(_device(nic)):
            raise Refusal(f"--nic {nic}: no such device; see lspci -D")
        now = driver(root, nic)
        if stays(root, nic):
            if now not in STAY:
                raise Refusal(
                    f"{nic}: is NVIDIA's and has {now or 'no driver'}: it must have mlx5_core; modprobe "
                    "mlx5_core, or give it back by driverctl unset-override"
                )
            continue
        if now != "vfio-pci":
            _bind(root, nic, plan)


def _bind(root: Root, nic: str, plan: Plan) -> None:
    up = _has_address(root, nic)
    if up:
        raise Refusal(
            f"{nic}: its interface {up} is up: binding would cut it off; ip link set {up} down first, if "
            "nothing needs it"
        )
    if not root.exists(f"{_device(nic)}/iommu_group") and not plan.unsafe_noiommu:
        raise Refusal(
            f"{nic}: has no IOMMU group, so the device could write anywhere in memory; turn the IOMMU on "
            "(firmware; intel_iommu=on iommu=pt), or accept it by --unsafe-noiommu"
        )
    if not root.exists(VFIO):
        root.run("modprobe", "vfio-pci")
    if not root.exists(f"{_device(nic)}/iommu_group"):
        root.write(NOIOMMU, "Y\n")
    root.write(f"{_device(nic)}/driver_override", "vfio-pci\n")
    if driver(root, nic):
        root.poke(f"{_device(nic)}/driver/unbind", nic)
    root.poke("/sys/bus/pci/drivers_probe", nic)


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
