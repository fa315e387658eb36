# SPDX-License-Identifier: BSD-3-Clause
"""Stage irq: moves interrupts to CPUs that are not isolated."""

from __future__ import annotations

import errno

from host import cpus
from host.plan import Plan, present
from host.report import Failed, Finding, Level, Partly, Refusal, tell
from host.root import Root

NAME = "irq"
BALANCE = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")  # Debian, RHEL
BANNED = "IRQBALANCE_BANNED_CPULIST"
BANNED_MASK = "IRQBALANCE_BANNED_CPUS"
DEFAULT = "/proc/irq/default_smp_affinity"
KEPT = "/run/tokd-host-irq"  # interrupts that cannot be moved in this boot


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
    touching = {_number(name): on for name, on in _lists(root) if on & plan.cores}
    kept = root.read(KEPT).split()
    found = []
    if movable := [irq for irq in touching if irq not in kept]:
        found.append(
            Finding(
                NAME,
                Level.WARN,
                f"{len(movable)} interrupts may be handled on isolated cores: {_some(movable)}",
                "2 to 20 us each",
                "tokd-host apply, which also finds out those that the kernel lets nobody move",
            )
        )
    else:
        found.append(
            Finding(NAME, Level.OK, "no interrupt that can be moved is handled on isolated cores")
        )
    managed = {irq: on for irq, on in touching.items() if irq in kept}
    # managed_irq removes isolated CPUs from a mask, unless none would be left.
    if quiet := [irq for irq, on in managed.items() if on - plan.cores]:
        found.append(
            Finding(
                NAME,
                Level.NOTE,
                f"{len(quiet)} interrupts are the kernel's to place, isolcpus=managed_irq "
                f"keeps them on the other cores: {_some(quiet)}",
            )
        )
    if loud := [irq for irq, on in managed.items() if not on - plan.cores]:
        found.append(
            Finding(
                NAME,
                Level.NOTE,
                f"{len(loud)} interrupts are the kernel's to place and have isolated cores "
                f"alone: {_some(loud)}; they come when a program on such a core uses that device's queue",
            )
        )
    for name in BALANCE:
        if root.exists(name) and not plan.cores <= _banned(root.read(name)):
            found.append(
                Finding(
                    NAME,
                    Level.WARN,
                    f"{name}: irqbalance may move interrupts to isolated cores",
                    "2 to 20 us each",
                    "tokd-host apply",
                )
            )
    return found


def _number(name: str) -> str:
    return name.split("/")[3]


def _some(irqs: list[str]) -> str:
    return ", ".join(irqs[:8]) + (" ..." if len(irqs) > 8 else "")


def _banned(text: str) -> frozenset[int]:
    """The CPUs that irqbalance's settings exclude: the list, else the older mask, as irqbalance
    reads them. Raises Refusal."""
    said = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            said[key.strip()] = value.strip().strip("\"'")
    try:
        if said.get(BANNED):
            return cpus.parse(said[BANNED])
        return cpus.parse_mask(said[BANNED_MASK]) if said.get(BANNED_MASK) else frozenset()
    except cpus.BadList as error:
        raise Refusal(f"irqbalance's banned CPUs: {error}; fix its settings") from error


def prove(root: Root, plan: Plan) -> list[Finding]:
    for name in BALANCE:
        _banned(root.read(name))
    return []


def restart_balance(root: Root) -> None:
    if root.names("/run/systemd/system"):
        root.run("systemctl", "try-restart", "irqbalance")


def _ban(root: Root, name: str, plan: Plan) -> None:
    """Exclude our CPUs in addition to the administrator's."""
    wanted = f'{BANNED}="{cpus.show(_banned(root.held(name)) | plan.cores)}"'
    lines = [
        line
        for line in root.read(name).splitlines()
        if line == wanted or not line.startswith(BANNED + "=")
    ]
    if wanted not in lines:
        lines.append(wanted)
    if root.write(name, "\n".join(lines) + "\n"):
        restart_balance(root)


def apply(root: Root, plan: Plan) -> None:
    if not plan.cores:
        return
    for name in BALANCE:
        if root.exists(name):
            _ban(root, root.resolved(name), plan)
    rest = present(root) - plan.cores
    if root.exists(DEFAULT):
        root.touched.add(DEFAULT)
        if not _is_mask(root.read(DEFAULT), rest):
            root.write(DEFAULT, cpus.mask(rest) + "\n")
    moves = _moves(root, plan, rest)
    root.remember_kernel(list(moves))
    kept, wrong = _move(root, moves)
    if kept or root.exists(KEPT):
        root.write(KEPT, " ".join(kept) + "\n")
    if wrong:
        tell([_stays(error) for error in wrong], False)
        raise Partly(f"{wrong[0]}" + (f"; and {len(wrong) - 1} more" if wrong[1:] else ""))


def _move(root: Root, moves: dict[str, frozenset[int]]) -> tuple[list[str], list[Failed]]:
    """Move what can be moved. Returns the interrupts that the kernel does not move, and errors of
    others."""
    kept, wrong = [], []
    for name, to in moves.items():
        try:
            root.write(name, cpus.show(to) + "\n")
        except Failed as error:
            if error.errno == errno.EIO:
                print(f"note  {error}: the kernel manages this one")
                kept.append(_number(name))
            else:
                wrong.append(error)
    return kept, wrong


def _stays(error: Failed) -> Finding:
    return Finding(
        NAME,
        Level.BAD,
        str(error),
        "2 to 20 us each on an isolated core",
        "see dmesg; tokd-host apply",
    )


def _is_mask(text: str, of: frozenset[int]) -> bool:
    """Compare as numbers: the number of leading zeros depends on the kernel."""
    try:
        return cpus.parse_mask(text) == of
    except cpus.BadList:
        return False


def _moves(root: Root, plan: Plan, rest: frozenset[int]) -> dict[str, frozenset[int]]:
    """New CPUs by interrupt, computed from the original ones, so that a smaller plan gives cores
    back."""
    moves = {}
    for name, on in _lists(root):
        before = cpus.parse(root.held(name))
        if not (on | before) & plan.cores:
            continue  # not affected by this plan
        root.touched.add(name)
        wanted = ((before if before & plan.cores else on) - plan.cores) or rest
        if on & plan.cores or (on != wanted and root.is_as_written(name)):
            moves[name] = wanted
    return moves


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
