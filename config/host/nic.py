# SPDX-License-Identifier: BSD-3-Clause
"""Stage nic: binds each port to the driver that DPDK needs. NVIDIA cards stay on their kernel
driver (mlx5_core), beside which DPDK works through verbs. All others go to vfio-pci, which needs
an IOMMU: without one a device may write anywhere, so that needs an explicit option.
"""

from __future__ import annotations

from host.journal import Entry
from host.plan import Plan
from host.report import Failed, Finding, Level, Refusal
from host.root import Root

NAME = "nic"
STAY = ("mlx5_core", "mlx4_core", "mana")
VFIO = "/sys/bus/pci/drivers/vfio-pci"
NOIOMMU = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
PROBE = "/sys/bus/pci/drivers_probe"
MELLANOX = "0x15b3"
IFF_UP = 1
UNSET = "(null)"  # the kernel's text for "no driver_override"; written back, it would name a driver
HARMLESS = ("", "vfio-pci", "pci-stub", "pcieport")  # drivers that do not block a group


def _device(nic: str) -> str:
    return f"/sys/bus/pci/devices/{nic}"


def driver(root: Root, nic: str) -> str:
    return root.link(f"{_device(nic)}/driver")


def stays(root: Root, nic: str) -> bool:
    return driver(root, nic) in STAY or root.read(f"{_device(nic)}/vendor").strip() == MELLANOX


def interface_up(root: Root, nic: str) -> str:
    """A network interface of the device that is up, because binding would cut it off; "" if none. A
    virtio port has it one folder deeper. operstate is of no use: it is often `unknown`."""
    device = _device(nic)
    for folder in (
        device,
        *(f"{device}/{name}" for name in root.names(device) if name.startswith("virtio")),
    ):
        for name in root.names(f"{folder}/net"):
            flags = root.read(f"{folder}/net/{name}/flags").strip()
            if flags and int(flags, 16) & IFF_UP:
                return name
    return ""


def has_iommu(root: Root, nic: str) -> bool:
    """Without an IOMMU, vfio makes up a group that protects nothing, and names it so."""
    group = f"{_device(nic)}/iommu_group"
    return root.exists(group) and root.read(f"{group}/name").strip() != "vfio-noiommu"


def in_the_way(root: Root, nic: str, plan: Plan) -> list[str]:
    """Other devices of its IOMMU group on kernel drivers: VFIO needs the whole group."""
    return [
        f"{other} ({driver(root, other)})"
        for other in root.names(f"{_device(nic)}/iommu_group/devices")
        if other != nic and other not in plan.nics and driver(root, other) not in HARMLESS
    ]


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
            Finding(
                NAME,
                Level.OK if good else Level.BAD,
                f"{nic}: {now}" + ("" if good else f", DPDK needs {want}"),
                "" if good else "DPDK does not see the port",
                "" if good else "tokd-host apply",
            )
        )
        if stays(root, nic):
            continue
        if not has_iommu(root, nic):
            told = plan.unsafe_noiommu
            found.append(
                Finding(
                    NAME,
                    Level.NOTE if told else Level.WARN,
                    f"{nic}: no IOMMU group: the device could write anywhere in memory"
                    + (", as --unsafe-noiommu accepts" if told else ""),
                    remedy="turn the IOMMU on (firmware; intel_iommu=on iommu=pt on the kernel's command "
                    "line)" + ("" if told else "; or accept it by --unsafe-noiommu"),
                    reboot=True,
                )
            )
        if others := in_the_way(root, nic, plan):
            found.append(
                Finding(
                    NAME,
                    Level.BAD,
                    f"{nic}: shares its IOMMU group with {', '.join(others)}",
                    "DPDK cannot open the port",
                    "give them to --nic too, or use a slot with a group of its own",
                )
            )
    return found


def prove(root: Root, plan: Plan) -> list[Finding]:
    """Raises Refusal if a port cannot or must not be bound."""
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
        if up := interface_up(root, nic):
            raise Refusal(
                f"{nic}: its interface {up} is up: binding would cut it off; ip link set {up} down first, if "
                "nothing needs it"
            )
        if not has_iommu(root, nic) and not plan.unsafe_noiommu:
            raise Refusal(
                f"{nic}: has no IOMMU group, so the device could write anywhere in memory; turn the IOMMU on "
                "(firmware; intel_iommu=on iommu=pt), or accept it by --unsafe-noiommu"
            )
        if others := in_the_way(root, nic, plan):
            raise Refusal(
                f"{nic}: shares its IOMMU group with {', '.join(others)}: VFIO opens all of a group or none; give "
                "them to --nic too, or use a slot with a group of its own"
            )
    return []


def apply(root: Root, plan: Plan) -> None:
    for nic in plan.nics:
        if stays(root, nic):
            continue
        root.touched.add(_journalled(nic))
        is_bound = driver(root, nic) == "vfio-pci"
        if not is_bound and not root.exists(VFIO):
            root.run("modprobe", "vfio-pci")
        if not has_iommu(root, nic):
            root.write(NOIOMMU, "Y\n")
        if not is_bound:
            _bind(root, nic)


def _journalled(nic: str) -> str:
    return f"{_device(nic)}/driver"


def _entry(root: Root, nic: str) -> Entry:
    """A journal entry that is valid for later boots too: early in a boot a port may have no driver
    yet, and later gets its old one back."""
    name, device, boot = _journalled(nic), _device(nic), root.journal.boot
    known = root.journal.get(name)
    if known and known["bound"] == boot:
        return known
    held = driver(root, nic) or (known["held"] if known else "")
    override = root.read(f"{device}/driver_override").strip().replace(UNSET, "")
    return {"name": name, "kind": "driver", "held": held, "override": override, "bound": boot}


def _bind(root: Root, nic: str) -> None:
    device, held, entry = _device(nic), driver(root, nic), _entry(root, nic)
    if not root.dry_run:
        if root.journal.get(entry["name"]) is not entry:
            root.journal.drop(entry["name"])
            root.journal.add(entry)
        root.on_undo(entry["name"], lambda: give_back(root, entry))
    root.poke(f"{device}/driver_override", "vfio-pci\n")
    if held:
        root.poke(f"{device}/driver/unbind", nic)
    root.poke(PROBE, nic)
    now = driver(root, nic)
    if now != "vfio-pci" and not root.dry_run:  # the write succeeds even if probing fails
        raise Failed(f"{nic}: vfio-pci did not take it, it has {now or 'no driver'}; see dmesg")


def give_back(root: Root, entry: Entry) -> None:
    """Bind it to the driver that it had in this boot; a binding of an earlier boot is gone. Raises
    Failed if that driver rejects it."""
    if entry["bound"] != root.journal.boot:
        return
    device, held = entry["name"].rpartition("/")[0], entry["held"]
    nic = device.rpartition("/")[2]
    if not root.exists(device):
        print(f"leave {nic}: it is gone")
        return
    if root.read(f"{device}/driver_override").strip() == "vfio-pci":
        root.poke(
            f"{device}/driver_override", entry["override"] + "\n"
        )  # an empty line clears the override
    now = driver(root, nic)
    if now == "vfio-pci" and held != now:
        root.poke(f"{device}/driver/unbind", nic)
        now = ""
    if not now:
        root.poke(PROBE, nic)
        now = driver(root, nic)
        if held and now != held and not root.dry_run:
            raise Failed(f"{nic}: has {now or 'no driver'}, had {held}: modprobe {held}; see dmesg")
    elif now != held:
        print(f"leave {nic}: {now} has it, which is not tokd-host's doing")


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
