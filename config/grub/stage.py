# SPDX-License-Identifier: BSD-3-Clause
"""Stage boot: the kernel's command line, by the tool of this distribution."""

from __future__ import annotations

import re
import zlib

from host import cpus, nic
from host.plan import Plan
from host.report import Finding, Level, Refusal
from host.root import Root
from hugepages import doca

from grub import bls, drop_in, tuned
from grub.words import NEEDS, ours, owned, takes_managed_irq, takes_nodes, wanted

NAME = "boot"
COST = {
    "isolcpus": "the scheduler puts other tasks on a worker's core: 1,000 to 10,000 us each time",
    "nohz_full": "a timer tick 100 to 1,000 times a second, 2 to 10 us each",
    "rcu_nocbs": "RCU callbacks on a worker's core, 1 to 100 us each",
    "irqaffinity": "interrupts of other devices on a worker's core, 2 to 20 us each",
    "hugepages": "pages that fragment: a start may find too few; TLB misses, 0.02 to 0.1 us each",
}


def _words(root: Root, plan: Plan) -> list[str]:
    return wanted(root, plan, _release(root), pages=not doca.is_here(root))


def _words_of_ours(root: Root, plan: Plan) -> list[str]:
    """The wanted words, without those that something else sets."""
    return [word for word in _words(root, plan) if word.partition("=")[0] not in tuned.gives(root)]


def _release(root: Root) -> str:
    """Release of the running kernel, else of the newest installed one; "" if unknown."""
    running = root.read("/proc/sys/kernel/osrelease").strip()
    names = [
        name.removeprefix("vmlinuz-") for name in root.names("/boot") if name.startswith("vmlinuz-")
    ]
    return running or max(names, key=_version, default="")


def _version(name: str) -> list[str | int]:
    """A key to sort by: 6.1.0-10 is after 6.1.0-9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def kernel_config(root: Root) -> str:
    """Configuration of the running kernel, else of the newest installed one; "" if unknown."""
    release = _release(root)
    if release:
        return root.read(f"/boot/config-{release}") or _running_config(root)
    names = [name for name in root.names("/boot") if name.startswith("config-")]
    return root.read(f"/boot/{max(names, key=_version)}") if names else ""


def _running_config(root: Root) -> str:
    """The configuration that the kernel itself shows, if built with CONFIG_IKCONFIG_PROC."""
    try:
        return zlib.decompress(root.path("/proc/config.gz").read_bytes(), wbits=31).decode(
            errors="replace"
        )
    except (OSError, zlib.error):
        return ""


def _unsupported(root: Root, words: list[str]) -> list[Finding]:
    config, found = kernel_config(root), []
    for word in words:
        key = word.partition("=")[0]
        if config and key in NEEDS and f"{NEEDS[key]}=y" not in config.splitlines():
            found.append(
                Finding(
                    NAME,
                    Level.WARN,
                    f"this kernel has no {NEEDS[key]}: it takes {word} and does nothing",
                    COST.get(key, ""),
                    "use a kernel that was built with it, or do without",
                )
            )
    return found


def _has_secure_boot(root: Root) -> bool:
    folder = "/sys/firmware/efi/efivars"
    names = [name for name in root.names(folder) if name.startswith("SecureBoot-")]
    return any(root.path(f"{folder}/{name}").read_bytes()[4:5] == b"\x01" for name in names)


def _unloaded(root: Root, plan: Plan) -> list[str]:
    """Needed modules that are not loaded: for --nic, and for GDRCopy if installed."""
    wants_vfio = any(not nic.stays(root, name) for name in plan.nics)
    has_gdrcopy = any(name.startswith("gdrdrv-") for name in root.names("/usr/src"))
    return [
        *(["vfio-pci"] if wants_vfio and not root.exists(nic.VFIO) else []),
        *(["gdrdrv"] if has_gdrcopy and not root.exists("/sys/module/gdrdrv") else []),
    ]


def _secure_boot(root: Root, plan: Plan) -> list[Finding]:
    if not _has_secure_boot(root):
        return []
    if wanted_here := _unloaded(root, plan):
        return [
            Finding(
                NAME,
                Level.WARN,
                f"Secure Boot is on, and {' and '.join(wanted_here)} not loaded: it loads only if it is signed",
                "without vfio-pci no port for DPDK, without gdrdrv no GDRCopy",
                "take the distribution's vfio-pci, which is signed; sign what was built here (mokutil --import), or do "
                "without gdrdrv: dma-buf needs none",
            )
        ]
    return [
        Finding(
            NAME,
            Level.NOTE,
            "Secure Boot is on: modules that are not signed (gdrdrv, igb_uio) do not load",
            remedy="sign them (mokutil --import), or use vfio-pci and dma-buf, which need none",
        )
    ]


def _booted(root: Root, words: list[str]) -> bool:
    """Was the running kernel booted with these words, and no others of their keys?"""
    return ours(root.read("/proc/cmdline"), owned(words)) == words


def _remedy(root: Root, plan: Plan) -> str:
    words = _words_of_ours(root, plan)
    is_set = bls.is_applied(root, words) if bls.is_here(root) else drop_in.is_applied(root, words)
    if not is_set:
        return "tokd-host apply"
    return "reboot; if that was done, the boot loader reads another file than tokd-host wrote"


def check(root: Root, plan: Plan) -> list[Finding]:
    """Compare the running kernel's command line with the plan."""
    words, line = _words(root, plan), root.read("/proc/cmdline")
    found = []
    have = ours(line, owned(words))
    remedy = _remedy(root, plan)
    for word in words:
        key = word.partition("=")[0]
        if word in have:
            found.append(Finding(NAME, Level.OK, f"the kernel was booted with {word}"))
        else:
            other = [w for w in have if w.partition("=")[0] == key]
            found.append(
                Finding(
                    NAME,
                    Level.BAD,
                    f"the kernel was booted {'with ' + ' '.join(other) if other else 'without ' + key}"
                    f", asked: {word}",
                    COST.get(key, ""),
                    remedy,
                    reboot=True,
                )
            )
    surplus = [w for w in have if w not in words]
    if surplus and not any(f.level is Level.BAD for f in found):
        found.append(
            Finding(
                NAME,
                Level.BAD,
                f"the kernel was booted also with {' '.join(surplus)}",
                "words that contradict each other",
                "tokd-host apply",
                reboot=True,
            )
        )
    if plan.cores:
        found += tuned.check(root, NAME)
    return found + _known(root, plan)


def _known(root: Root, plan: Plan) -> list[Finding]:
    """Problems that are visible before the boot."""
    unsupported = _unsupported(root, _words(root, plan))
    return (
        unsupported + _late_pages(root, plan) + _managed_irq(root, plan) + _secure_boot(root, plan)
    )


def _managed_irq(root: Root, plan: Plan) -> list[Finding]:
    release = _release(root)
    if takes_managed_irq(release) or not plan.cores:
        return []
    return [
        Finding(
            NAME,
            Level.NOTE,
            f"Linux {release} knows no isolcpus=managed_irq (5.6 does), and would drop the whole word: it is left out",
            "interrupts that the kernel places itself may come to a worker's core, 2 to 20 us each",
        )
    ]


def _late_pages(root: Root, plan: Plan) -> list[Finding]:
    release = _release(root)
    if takes_nodes(release) or all(p.node is None for p in plan.pages):
        return []
    return [
        Finding(
            NAME,
            Level.NOTE,
            f"Linux {release} takes no counts per node at boot (5.16 does): they are reserved later in the boot",
            "memory that is already in pieces: fewer pages of 1G than asked",
            "systemctl enable tokd-host; where too few come, one count for all nodes",
        )
    ]


def prove(root: Root, plan: Plan) -> list[Finding]:
    """Findings: other settings that will be lost, and words that cannot work. Raises Refusal if
    this machine's boot loader is not supported."""
    words, known = _words_of_ours(root, plan), _known(root, plan)
    if not words:
        return known
    if bls.is_here(root):
        bls.prove(root, words)
        lost = bls.others(root, owned(words))
    elif drop_in.is_here(root):
        lost = drop_in.others(root, owned(words))
        known += _behind(root, words)
    elif _booted(root, words):
        return [*known, Finding(NAME, Level.NOTE, "the boot line has all words, set by hand")]
    else:
        raise Refusal(
            "found neither grubby with entries in /boot/loader/entries nor a grub-mkconfig that "
            "reads /etc/default/grub.d: add these words to the kernel's command line by hand, "
            f"reboot, and apply again for the rest: {' '.join(words)}"
        )
    lost = [word for word in lost if word.split()[0] not in words]
    if not lost:
        return known
    return [
        *known,
        Finding(
            NAME,
            Level.WARN,
            f"removed from the boot line, set there by others: {', '.join(lost)}",
            remedy="if those huge pages or cores are needed, request them together with yours",
        ),
    ]


def _behind(root: Root, words: list[str]) -> list[Finding]:
    last = [word for word in drop_in.behind(root, owned(words)) if word.split()[0] not in words]
    if not last:
        return []
    return [
        Finding(
            NAME,
            Level.WARN,
            f"set after {drop_in.NAME}, which cannot remove it: {', '.join(last)}",
            "the kernel adds up some words and refuses others",
            "rename the file, so that its name sorts before, and apply again",
        )
    ]


def apply(root: Root, plan: Plan) -> None:
    words = _words_of_ours(root, plan)
    if plan.cores and tuned.profile(root):
        tuned.apply(root, plan.cores)
    if not words:
        return
    if bls.is_here(root):
        bls.apply(root, words)
    elif drop_in.is_here(root):
        drop_in.apply(root, words)


def _effect(what: str, key: str, wrong: str) -> Finding:
    remedy = (
        "tokd-host apply, if it was not; else see dmesg for what the kernel refused"
        if wrong
        else ""
    )
    return Finding(
        NAME,
        Level.BAD if wrong else Level.OK,
        what + (f", {wrong}" if wrong else ""),
        COST[key] if wrong else "",
        remedy,
        reboot=bool(wrong),
    )


def _interrupts(root: Root, plan: Plan) -> list[Finding]:
    """Effect of irqaffinity: the CPUs of a new interrupt."""
    path = "/proc/irq/default_smp_affinity"
    text = root.read(path).strip()
    try:
        on = cpus.parse_mask(text) & plan.cores
    except cpus.BadList:
        return [_effect(f"{path} is {text or 'empty'}", "irqaffinity", "expected a mask of CPUs")]
    wrong = f"asked: without {cpus.show(on)}" if on else ""
    return [_effect(f"{path} is {text}", "irqaffinity", wrong)]


def _callbacks(root: Root, plan: Plan) -> list[Finding]:
    """Effect of rcu_nocbs. No file shows it, but the kernel has a thread per such CPU, rcuop/1 or
    rcuos/1. No findings if kernel threads are not visible, as in a container."""
    names = {root.read(f"/proc/{pid}/comm").strip() for pid in root.names("/proc") if pid.isdigit()}
    if "kthreadd" not in names:
        return []
    have = {int(n.partition("/")[2]) for n in names if re.fullmatch(r"rcuo[bps]/\d+", n)}
    lacking = plan.cores - have
    wrong = f"none for CPU {cpus.show(lacking)}" if lacking else ""
    return [_effect("threads of the kernel's for RCU callbacks (rcuop/N)", "rcu_nocbs", wrong)]


def verify(root: Root, plan: Plan) -> list[Finding]:
    """Compare what the kernel reports after the boot with the plan."""
    found = [f for f in check(root, plan) if f.level is not Level.NOTE]
    if not plan.cores:
        return found
    found += _interrupts(root, plan) + _callbacks(root, plan)
    for name, what in (("isolated", "isolcpus"), ("nohz_full", "nohz_full")):
        path = f"/sys/devices/system/cpu/{name}"
        text = root.read(path).strip().replace("(null)", "")
        try:
            now = cpus.parse(text)
        except cpus.BadList:
            now = frozenset()
        wrong = "" if now == plan.cores else f"asked: {cpus.show(plan.cores)}"
        found.append(_effect(f"{path} is {text or 'empty'}", what, wrong))
    return found
