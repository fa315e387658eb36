# SPDX-License-Identifier: BSD-3-Clause
"""Stage irq: interrupts are handled on the cores that are not isolated."""

from host import cpus
from host.plan import Plan, present
from host.report import Finding, Level, Refusal
from host.root import Root

NAME = "irq"
BALANCE = "/etc/default/irqbalance"
BANNED = "IRQBALANCE_BANNED_CPULIST"
KEPT = "/run/tokd-host-irq"  # numbers of those that the kernel let nobody move in this boot


def _lists(root: Root) -> list[tuple[str, frozenset[int]]]:
    found = []
    for irq in root.names("/proc/irq"):
        name = f"/proc/irq/{irq}/smp_affinity_list"
        if irq.isdigit() and root.exists(name):
            try:
                found.append((name, cpus.parse(root.read(name))))
            except cpus.BadList:
                continue
    return found


def check(root: Root, plan: Plan) -> list[Finding]:
    if not plan.cores:
        return []
    touching = [_number(name) for name, on in _lists(root) if on & plan.cores]
    kept = root.read(KEPT).split()
    found = []
    if movable := [irq for irq in touching if irq not in kept]:
        found.append(
            Finding(NAME, Level.WARN, f"{len(movable)} interrupts may be handled on isolated cores: {_some(movable)}",
                "2 to 20 us each", "tokd-host apply; those that the kernel manages stay, isolcpus=managed_irq "
                "keeps them quiet")
        )
    else:
        found.append(Finding(NAME, Level.OK, "no interrupt that can be moved is handled on isolated cores"))
    if managed := [irq for irq in touching if irq in kept]:
        found.append(
            Finding(NAME, Level.NOTE, f"{len(managed)} interrupts are the kernel's to place, isolcpus=managed_irq "
                f"keeps them quiet: {_some(managed)}")
        )
    if root.exists(BALANCE) and not _ban(root.read(BALANCE), plan)[1]:
        found.append(
            Finding(NAME, Level.WARN, f"{BALANCE}: irqbalance may move interrupts to isolated cores",
                "2 to 20 us each", "tokd-host apply")
        )
    return found


def _number(name: str) -> str:
    return name.split("/")[3]


def _some(irqs: list[str]) -> str:
    return ", ".join(irqs[:8]) + (" ..." if len(irqs) > 8 else "")


def _ban(text: str, plan: Plan) -> tuple[str, bool]:
    """irqbalance's settings with the isolated cores banned; and whether they were."""
    wanted = f'{BANNED}="{cpus.show(plan.cores)}"'
    lines = text.splitlines()
    if wanted in lines:
        return text, True
    lines = [line for line in lines if not line.startswith(BANNED + "=")]
    return "\n".join([*lines, wanted]) + "\n", False


def apply(root: Root, plan: Plan) -> None:
    if not plan.cores:
        return
    if root.exists(BALANCE):
        text, is_so = _ban(root.read(BALANCE), plan)
        if not is_so:
            root.write(BALANCE, text)
            if root.names("/run/systemd/system"):
                root.run("systemctl", "try-restart", "irqbalance")
    rest = present(root) - plan.cores
    if root.exists("/proc/irq/default_smp_affinity"):
        root.write("/proc/irq/default_smp_affinity", cpus.mask(rest) + "\n")
    kept = []
    for name, on in _lists(root):
        if on & plan.cores:
            try:
                root.write(name, cpus.show((on - plan.cores) or rest) + "\n")
            except Refusal as error:
                print(f"note  {error}: the kernel manages this one")
                kept.append(_number(name))
    if kept:
        root.write(KEPT, " ".join(kept) + "\n")


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
