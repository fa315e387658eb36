# SPDX-License-Identifier: BSD-3-Clause
"""The plan: from the command line, else from the last apply."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from host import cpus
from host.report import Finding, Level, Refusal
from host.root import Root

CONF = "/etc/dpdk-tokd/host.conf"
SIZES = {"2M": 2048, "1G": 1048576, "32M": 32768, "512M": 524288, "16G": 16777216, "64K": 64}
COUNT_MAX = 1 << 20


@dataclass(frozen=True)
class Pages:
    count: int
    size_kb: int
    node: int | None = None  # NUMA node; None: the kernel chooses

    def show(self) -> str:
        size = next(name for name, kb in SIZES.items() if kb == self.size_kb)
        return f"{self.count}x{size}" + ("" if self.node is None else f"@{self.node}")


def parse_pages(text: str) -> tuple[Pages, ...]:
    """ "8x1G,512x2M@1" . Raises Refusal."""
    pages = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,7})x(\d+[KMG])(?:@(\d{1,3}))?", part.strip())
        if not match or match[2] not in SIZES or int(match[1]) > COUNT_MAX:
            raise Refusal(
                f"--hugepages {text}: {part!r} is not COUNTxSIZE[@NODE] with a size of "
                f"{', '.join(SIZES)} and at most {COUNT_MAX} pages; for example 8x1G or 4x1G@0,4x1G@1"
            )
        node = int(match[3]) if match[3] else None
        pages.append(Pages(int(match[1]), SIZES[match[2]], node))
    for size in {p.size_kb for p in pages}:
        nodes = [p.node for p in pages if p.size_kb == size]
        if len(nodes) != len(set(nodes)) or (None in nodes and len(nodes) > 1):
            raise Refusal(
                f"--hugepages {text}: one count for each size and node, or one for all nodes"
            )
    return tuple(sorted(pages, key=lambda p: (-p.size_kb, p.node or 0)))


@dataclass(frozen=True)
class Plan:
    cores: frozenset[int] = field(default_factory=frozenset)
    pages: tuple[Pages, ...] = ()
    nics: tuple[str, ...] = ()  # PCI addresses to bind
    unsafe_noiommu: bool = False

    def options(self) -> str:
        """As on the command line."""
        words = [f"--cores {cpus.show(self.cores)}"] if self.cores else []
        words += [f"--hugepages {','.join(p.show() for p in self.pages)}"] if self.pages else []
        words += [f"--nic {','.join(self.nics)}"] if self.nics else []
        words += ["--unsafe-noiommu"] if self.unsafe_noiommu else []
        return " ".join(words)

    def dropped_by(self, later: Plan) -> Plan:
        """What this plan asks for, and a later one does not ask for at all."""
        return Plan(
            frozenset() if later.cores else self.cores,
            () if later.pages else self.pages,
            tuple(nic for nic in self.nics if nic not in later.nics),
        )

    def text(self) -> str:
        lines = ["# The plan of tokd-host, for verify and for the next boot."]
        lines += [f"cores = {cpus.show(self.cores)}"] if self.cores else []
        lines += [f"hugepages = {','.join(p.show() for p in self.pages)}"] if self.pages else []
        lines += [f"nics = {','.join(self.nics)}"] if self.nics else []
        lines += ["unsafe-noiommu = yes"] if self.unsafe_noiommu else []
        return "\n".join(lines) + "\n"


def parse_nics(text: str) -> tuple[str, ...]:
    nics = []
    for part in text.split(","):
        name = part.strip().lower()
        if re.fullmatch(r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", name):
            name = "0000:" + name
        if not re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", name):
            raise Refusal(
                f"--nic {text}: {part!r} is no PCI address like 0000:3b:00.0; see lspci -D"
            )
        nics.append(name)
    return tuple(sorted(set(nics)))


def make(cores: str, pages: str, nics: str, unsafe_noiommu: bool) -> Plan:
    try:
        isolated = cpus.parse(cores)
    except cpus.BadList as error:
        raise Refusal(f"--cores {error}") from error
    return Plan(
        isolated,
        parse_pages(pages) if pages else (),
        parse_nics(nics) if nics else (),
        unsafe_noiommu,
    )


def kept(root: Root) -> Plan | None:
    """The plan of the last apply; None if there was none. Raises Refusal."""
    values = {}
    text = root.read(CONF)
    if not text:
        return None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or key.strip() not in ("cores", "hugepages", "nics", "unsafe-noiommu"):
            raise Refusal(
                f"{CONF} line {number}: {line!r} is none of cores, hugepages, nics, unsafe-noiommu"
            )
        values[key.strip()] = value.strip()
    unsafe = values.get("unsafe-noiommu", "no")
    if unsafe not in ("yes", "no"):
        raise Refusal(f"{CONF}: unsafe-noiommu = {unsafe}: expected yes or no")
    try:
        return make(
            values.get("cores", ""),
            values.get("hugepages", ""),
            values.get("nics", ""),
            unsafe == "yes",
        )
    except Refusal as error:
        raise Refusal(f"{CONF}: as {error}") from error


def present(root: Root) -> frozenset[int]:
    """All CPUs, running or not: masks include those that may be started later. In another root:
    --cpus."""
    return _cpus(root, "present") or _cpus(root, "online") or frozenset(range(root.cpus))


def online(root: Root) -> frozenset[int]:
    """The running CPUs. Others (SMT off, or switched off by hand) do no work."""
    return _cpus(root, "online") or present(root)


def _cpus(root: Root, which: str) -> frozenset[int]:
    try:
        return cpus.parse(root.read(f"/sys/devices/system/cpu/{which}"))
    except cpus.BadList:
        return frozenset()


def siblings(root: Root, cpu: int) -> frozenset[int]:
    """Hardware threads of this CPU's core, including itself."""
    text = root.read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return cpus.parse(text) or frozenset({cpu})
    except cpus.BadList:
        return frozenset({cpu})


def keep(root: Root) -> frozenset[int]:
    """The CPUs that a proposal leaves to the system: core 0; of eight or more, another core too."""
    running = online(root)
    left = siblings(root, 0)
    if len(running) >= 8:
        left |= siblings(root, min(running - left, default=0))
    return left


def prove(root: Root, plan: Plan) -> list[Finding]:
    """Findings about the plan. Raises Refusal if it is impossible."""
    have = present(root)
    found: list[Finding] = []
    if not plan.cores:
        return found
    if not have:
        raise Refusal(
            f"{root.path('/sys/devices/system/cpu/present')}: no list of CPUs, so what cores "
            f"{cpus.show(plan.cores)} leave is not known; for a root that is not running, an image, say how many "
            "CPUs the machine will have, as at apply: --cpus N"
        )
    running = online(root)
    missing, asleep, left = plan.cores - have, plan.cores - running, running - plan.cores
    if missing:
        raise Refusal(
            f"--cores {cpus.show(plan.cores)}: CPU {cpus.show(missing)} is not there; the machine has "
            f"{cpus.show(have)}"
        )
    if asleep:
        raise Refusal(
            f"--cores {cpus.show(plan.cores)}: CPU {cpus.show(asleep)} is offline, {cpus.show(running)} run; start "
            "it (echo 1 >/sys/devices/system/cpu/cpuN/online; where SMT is off, /sys/devices/system/cpu/smt/control), or "
            "leave it out"
        )
    if 0 in plan.cores:
        raise Refusal(
            f"--cores {cpus.show(plan.cores)}: core 0 cannot be isolated: the kernel's own work and "
            "interrupts stay there; leave it out"
        )
    if not left:
        raise Refusal(
            f"--cores {cpus.show(plan.cores)}: none is left for the system; leave at least one"
        )
    if len(running) >= 8 and len(left) < 2:
        found.append(
            Finding(
                "cores",
                Level.WARN,
                f"{cpus.show(left)} alone is left for the system, on a machine of {len(running)} CPUs",
                "control threads, interrupts and logging wait for each other",
                "isolate fewer",
            )
        )
    for cpu in sorted(plan.cores):
        shared = siblings(root, cpu) - plan.cores
        if shared:
            found.append(
                Finding(
                    "cores",
                    Level.WARN,
                    f"CPU {cpu} shares its core with CPU {cpus.show(shared)}, which is not isolated",
                    "what runs there takes execution units and cache: up to half of the speed",
                    f"leave CPU {cpu} out"
                    if 0 in shared
                    else f"isolate {cpus.show(plan.cores | shared)}, and run workers on one of each pair",
                )
            )
    return found
