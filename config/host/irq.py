# SPDX-License-Identifier: BSD-3-Clause
"""Stage irq: interrupts are handled on the cores that are not isolated."""

from host import cpus
from host.plan import Plan, present
from host.report import Finding, Level, Refusal
from host.root import Root

NAME = "irq"
BALANCE = "/etc/default/irqbalance"
BANNED = "IRQBALANCE_BANNED_CPULIST"


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
    touching = [(name, on & plan.cores) for name, on in _lists(root) if on & plan.cores]
    found = []
    if touching:
        some = ", ".join(name.split("/")[3] for name, _ in touching[:8])
        found.append(
            Finding(NAME, Level.WARN,
                f"{len(touching)} interrupts may be handled on isolated cores: {some}"
                + (" ..." if len(touching) > 8 else ""),
                "2 to 20 us each", "tokd-host apply; those that the kernel manages stay, isolcpus=managed_irq "
                "keeps them quiet")
        )
    else:
        found.append(Finding(NAME, Level.OK, "no interrupt is handled on isolated cores"))
    if root.exists(BALANCE) and not _ban(root.read(BALANCE), plan)[1]:
        found.append(
            Finding(NAME, Level.WARN, f"{BALANCE}: irqbalance may move interrupts to isolated cores",
                "2 to 20 us each", "tokd-host apply")
        )
    return found


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
    for name, on in _lists(root):
        if on & plan.cores:
            try:
                root.write(name, cpus.show((on - plan.cores) or rest) + "\n")
            except Refusal as error:
                print(f"note  {error}: the kernel manages this one")


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
