# SPDX-License-Identifier: BSD-3-Clause
"""Findings for the operator, besides the path: what does not work here, and what is slow."""

from __future__ import annotations

from dataclasses import dataclass

from .gids import Chosen, NoneChosen, Rank, has_address
from .machine import Gpu, Machine, Rdma, bytes_text
from .paths import BAR1_REMEDY, MEMLOCK_REMEDY, GpuPaths, Reason, Sizes, memlock_is_low
from .pci import Between, between

HEADER_BYTES = 64  # of a slot: sent inline
MTU_BEST = 4096
FINDINGS_MOST = 128


@dataclass
class Finding(Reason):
    problem: bool = False  # something that is here does not work


@dataclass
class _Judge:
    m: Machine
    chosen: Chosen | NoneChosen
    sizes: Sizes
    role: str
    paths: list[GpuPaths]
    found: list[Finding]

    def add(self, problem: bool, thing: str, value: str, remedy: str = "") -> None:
        self.found.append(Finding(thing, value, remedy, problem))

    # Faults of devices and ports are no PROBLEM if a working one was chosen.
    @property
    def counts(self) -> bool:
        return isinstance(self.chosen, NoneChosen)

    def libraries(self) -> None:
        m = self.m
        if m.verbs_note:
            self.add(bool(m.rdma), "verbs", m.verbs_note.value, m.verbs_note.remedy)
        if m.nvml_note:
            self.add(False, "NVML", m.nvml_note.value, m.nvml_note.remedy)
        if m.names_note:
            self.add(False, "names of devices", m.names_note.value, m.names_note.remedy)

    def ports(self, d: Rdma) -> None:
        for p in d.ports:
            thing = f"{d.name} port {p.port}"
            if p.state != "ACTIVE":
                state = f"{p.state or 'state not known'} (physically {p.phys_state or 'not known'})"
                remedy = (
                    "check the cable, the module and the port at the other end; set its network "
                    "device up: ip link set NETDEV up"
                )
                self.add(self.counts, thing, f"{state}, must be ACTIVE", remedy)
            elif not has_address(p):
                remedy = "is a subnet manager running (opensm)?"
                if p.link_layer == "Ethernet":
                    remedy = "give its network device an IPv4 address, and set it up"
                value = f"{len(p.gids)} GIDs, none of RoCE or InfiniBand"
                self.add(self.counts, thing, value, remedy)
        if not d.ports:
            self.add(self.counts, d.name, "it has no port", "is all of its driver loaded?")
        if d.ports_left_out:
            value = f"{d.ports_left_out} more ports, not looked at"
            self.add(False, d.name, value, "name the port with --rdma-port")

    def devices(self) -> None:
        for d in self.m.rdma:
            if d.open_error:
                remedy = (
                    "is ib_uverbs loaded, is the provider's library installed (ibverbs-providers), "
                    "and may this user open /dev/infiniband/uverbs*?"
                )
                self.add(self.counts, d.name, f"cannot be opened: {d.open_error}", remedy)
            if d.iwarp:
                value = "is an iWARP device, which is not supported"
                self.add(self.counts, d.name, value, "use a device of InfiniBand or RoCE")
            else:
                self.ports(d)
        if self.m.rdma_left_out:
            value = f"{self.m.rdma_left_out} more devices, not looked at"
            self.add(False, "RDMA", value, "name the device with --rdma-device")

    def chosen_device(self, c: Chosen) -> None:
        d, mtu = c.rdma, c.port.mtu
        if c.rank == Rank.ROCE_V1:
            value = "RoCE v1 is all there is: no router and few fabrics forward it"
            remedy = (
                "a driver and firmware with RoCE v2 (cma_roce_mode), and an IPv4 address on its "
                "network device"
            )
            self.add(True, d.name, value, remedy)
        if c.rank == Rank.LINK_LOCAL:
            value = "a link-local GID is the best there is: no router forwards it"
            self.add(False, d.name, value, "give its network device an IPv4 address")
        if mtu and mtu < MTU_BEST:
            remedy = "ip link set dev NETDEV mtu 4200 at both ends and in the switches between"
            self.add(False, d.name, f"RDMA's MTU is {mtu}, {MTU_BEST} is possible", remedy)
        inline = d.max_inline or 0
        if d.opened and inline < HEADER_BYTES:
            value = (
                f"takes {inline} bytes inline, a slot's header has {HEADER_BYTES}: "
                "the NIC reads it from memory"
            )
            self.add(False, d.name, value)

    def memlock(self) -> None:
        in_host_memory = not self.m.gpus or self.role == "producer"
        need = self.sizes.ring if self.role == "producer" else self.sizes.region
        limit = self.m.system.memlock
        if in_host_memory and isinstance(limit, int) and memlock_is_low(self.m, need):
            value = f"limit {bytes_text(limit)}, verbs register {bytes_text(need)}"
            self.add(True, "locked memory", value, MEMLOCK_REMEDY)

    def gpu(self, g: Gpu) -> None:
        if not self.m.system.nvidia:
            value = f"at {g.pci.address}, its driver is not loaded"
            self.add(True, g.name, value, "install the NVIDIA driver; modprobe nvidia")
        if g.bar1 and g.bar1 < self.sizes.region:
            have, need = bytes_text(g.bar1), bytes_text(self.sizes.region)
            self.add(True, g.name, f"BAR1 is {have}, the GPU ring needs {need}", BAR1_REMEDY)
        if g.asked and g.write_order in ("none", "not known"):
            value = f"CUDA does not promise the order of RDMA's writes ({g.write_order})"
            remedy = "none needed: each header waits for its payload (STRICT)"
            self.add(False, g.name, value, remedy)

    def between(self, c: Chosen, g: Gpu) -> None:
        d, thing = c.rdma, f"{c.rdma.name} and {g.pci.address}"
        distance = between(d.pci, g.pci)
        if distance >= Between.NODE:
            remedy = "use a NIC and a GPU of one PCIe root, by --rdma-device"
            self.add(False, thing, f"{distance.text} lie between them", remedy)
        if distance == Between.SWITCH and g.acs_bridge:
            value = f"bridge {g.acs_bridge} sends their traffic up to the root (ACS)"
            remedy = (
                "switch ACS off in the firmware's set-up, or setpci -s BRIDGE ECAP_ACS+6.w=0; not "
                "if virtual machines share the switch"
            )
            self.add(False, thing, value, remedy)
        types = [p.iommu_type if p else None for p in (d.pci, g.pci)]
        if any(t and t.startswith("DMA") for t in types):
            value = f"the IOMMU translates ({', '.join(t or 'no group' for t in types)})"
            self.add(False, thing, value, "iommu=pt on the kernel's command line")

    def nearer(self, c: Chosen, g: Gpu) -> None:
        now = between(c.rdma.pci, g.pci)
        for d in self.m.rdma:
            other = between(d.pci, g.pci)
            if d is c.rdma or not Between.NOT_KNOWN < other < now:
                continue
            if any(p.state == "ACTIVE" and has_address(p) for p in d.ports):
                value = f"is nearer to {g.pci.address} than {c.rdma.name} is: {other.text}"
                self.add(False, d.name, value, "choose it by --rdma-device")
                return

    def gpu_writes(self, c: Chosen) -> None:
        """A GPU that the NIC cannot reach is no PROBLEM if it reaches another."""
        unreached = [p for p in self.paths if all(w.works == "no" for w in p.paths[:2])]
        for p in unreached:
            if p.gpu:
                value = (
                    f"{c.rdma.name} cannot write into the memory of the GPU at "
                    f"{p.gpu.pci.address}, by dma-buf or peer memory"
                )
                remedy = "see the reasons under its paths; or tokd-gpu --ring host"
                self.add(len(unreached) == len(self.paths), "GPUDirect RDMA", value, remedy)

    def huge_pages(self) -> None:
        s = self.m.system
        if not any(h.total for h in s.huge_pages):
            remedy = "reserve some (nr_hugepages), or start dpdk-tokd with --no-huge"
            self.add(False, "huge pages", "none are reserved on any node", remedy)
        elif not s.hugetlbfs:
            remedy = "mount -t hugetlbfs none /dev/hugepages, or --in-memory"
            self.add(False, "hugetlbfs", "not mounted: EAL finds no huge pages", remedy)

    def all(self) -> None:
        c = self.chosen
        self.libraries()
        self.devices()
        if isinstance(c, Chosen):
            self.chosen_device(c)
            self.memlock()
        if self.role == "agent":
            for g in self.m.gpus:
                self.gpu(g)
            if isinstance(c, Chosen):
                for g in self.m.gpus:
                    self.between(c, g)
                    self.nearer(c, g)
                if self.m.system.nvidia:
                    self.gpu_writes(c)
        self.huge_pages()


def judge_findings(
    m: Machine, chosen: Chosen | NoneChosen, sizes: Sizes, role: str, paths: list[GpuPaths]
) -> list[Finding]:
    look = _Judge(m, chosen, sizes, role, paths, [])
    look.all()
    return look.found[:FINDINGS_MOST]
