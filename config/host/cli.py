# SPDX-License-Identifier: BSD-3-Clause
"""tokd-host check | apply | verify | revert."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from types import ModuleType
from typing import NoReturn

from bluefield import stage as bluefield
from grub import stage as boot
from hugepages import memory
from hugepages import stage as hugepages

from host import governor, irq, limits, nic
from host.cpus import CPUS_MAX
from host.journal import JOURNAL
from host.lock import alone
from host.plan import CONF, Plan, keep, kept, make, online, prove
from host.report import Failed, Finding, Level, Partly, Refusal, is_good, tell
from host.revert import let_go, revert, signed
from host.root import Root

# In the order of apply: first what takes effect at boot, then what a reboot undoes.
STAGES = (bluefield, boot, hugepages, governor, irq, nic, limits)
AT_BOOT = (hugepages, governor, irq, nic)
PROVING = (
    boot,
    hugepages,
    irq,
    nic,
)  # stages that may refuse; all are checked before any writes

APPLY = "tokd-host apply"  # in remedies
UNIT = "/etc/systemd/system/multi-user.target.wants/tokd-host.service"  # where it is enabled

EXIT_OK, EXIT_FOUND, EXIT_USAGE, EXIT_FAILED = 0, 1, 2, 3

EPILOG = """\
exit status: 0 all is as asked; 1 something is not (check, verify); 2 impossible request; 3 failed

  tokd-host check                                   propose settings; show what is missing
  tokd-host check --cores 1-4 --hugepages 8x1G      show what is missing, its cost, the remedy
  tokd-host apply --cores 1-4 --hugepages 8x1G      do it; then reboot
  tokd-host verify                                  compare what booted with what was asked
  tokd-host revert                                  undo everything
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"tokd-host: {message}; see --help\n")


def parser() -> argparse.ArgumentParser:
    p = _Parser(
        "tokd-host",
        description="Makes a machine ready for dpdk-tokd: isolated cores, huge pages, clocks, interrupts, NICs, limits.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = ("check", "apply", "verify", "revert")
    p.add_argument("do", choices=commands, metavar="{" + ",".join(commands) + "}")
    p.add_argument("--cores", metavar="LIST", help="cores for workers, as 1-4; never core 0")
    p.add_argument("--hugepages", metavar="NxSIZE[@NODE],...", help="as 8x1G or 4x1G@0,4x1G@1")
    p.add_argument("--nic", metavar="PCI,...", help="ports for DPDK, as 0000:3b:00.0")
    p.add_argument("--unsafe-noiommu", action="store_true", help="bind --nic even without an IOMMU")
    p.add_argument(
        "--at-boot",
        action="store_true",
        help="apply: only what a boot undoes, as in the last apply (tokd-host.service)",
    )
    p.add_argument(
        "--dry-run", action="store_true", help="print what would be written, without writing"
    )
    p.add_argument("--root", metavar="DIR", default="/", help="folder with another machine's files")
    p.add_argument(
        "--cpus",
        metavar="N",
        type=int,
        default=0,
        help="number of CPUs, if --root is an image without /sys",
    )
    p.add_argument(
        "--memory",
        metavar="SIZE",
        default="",
        help="amount of memory, as 64G, if --root has no /proc",
    )
    p.add_argument("--json", action="store_true", help="findings as JSON")
    return p


def _asked(args: argparse.Namespace) -> dict[str, str]:
    """Which of the plan's options the command line has."""
    said = {"--cores": args.cores, "--hugepages": args.hugepages, "--nic": args.nic}
    return {name: text for name, text in said.items() if text is not None}


def _fits(args: argparse.Namespace) -> None:
    """Raises Refusal for options that the command would not look at."""
    asked = _asked(args)
    for name, text in asked.items():
        if not text.strip():
            raise Refusal(f"{name} '': give a value, or leave the option out")
    if args.unsafe_noiommu and not args.nic:
        raise Refusal("--unsafe-noiommu needs --nic: give both")
    if args.at_boot and args.do != "apply":
        raise Refusal(f"{args.do} --at-boot: only apply has it; leave it out")
    if args.at_boot and asked:
        raise Refusal(f"--at-boot takes {', '.join(asked)} from {CONF}; leave out one of them")
    if args.json and args.do in ("apply", "revert"):
        raise Refusal(f"{args.do} --json: only check and verify have it; leave it out")


def _known(root: Root, args: argparse.Namespace) -> Plan | None:
    """The plan of the last apply. None also if its file is broken and another plan is given."""
    try:
        return kept(root)
    except Refusal:
        if not _asked(args):
            raise
        return None


def _plan(root: Root, args: argparse.Namespace, known: Plan | None) -> Plan:
    """The plan of the command line, else of the last apply."""
    if _asked(args):
        return make(args.cores or "", args.hugepages or "", args.nic or "", args.unsafe_noiommu)
    plan = known or (_proposal(root) if args.do == "check" else None)
    if plan is None:
        raise Refusal(f"nothing to do: give --cores, --hugepages or --nic; there is no {CONF}")
    return plan


def _proposal(root: Root) -> Plan | None:
    """For a machine of which nothing is asked; None if too little is known of it."""
    cores = online(root) - keep(root)
    plan = Plan(cores, memory.propose(root, len(cores)))
    return plan if plan.options() else None


def _stage(root: Root, plan: Plan, stage: ModuleType, at_boot: bool) -> None:
    """Run one stage. If it fails, undo what it has written. Raises Refusal, Failed."""
    mark = root.mark()
    try:
        if at_boot and stage in PROVING:
            stage.prove(root, plan)
        stage.apply(root, plan)
    except (Refusal, Failed, OSError) as error:
        wrong = [] if at_boot and isinstance(error, Partly) else root.undo_to(mark)
        left = f"; not undone: {'; '.join(wrong)}" if wrong else ""
        kind = Refusal if isinstance(error, Refusal) else Failed
        raise kind(f"{stage.NAME}: {error}{left}") from error
    finally:
        root.journal.flush()


def _dropped(plan: Plan, known: Plan | None) -> list[Finding]:
    """What an earlier plan has and this one undoes: who asks for a port alone may not mean it."""
    gone = known.dropped_by(plan).options() if known else ""
    if not gone:
        return []
    return [
        Finding(
            "plan",
            Level.WARN,
            f"undone, because this apply does not ask for it: {gone}",
            remedy=f"to keep it: {APPLY} {gone} {plan.options()}",
        )
    ]


def _apply(root: Root, plan: Plan, args: argparse.Namespace) -> int:
    """Check all stages, then apply them; stages before a failing one stay applied. Then restore
    what only an earlier plan had."""
    found = prove(root, plan) + _dropped(plan, _known(root, args))
    for stage in PROVING:
        found += stage.prove(root, plan)
    tell(found, False)
    with alone(root):
        for stage in STAGES:
            writes = root.writes
            try:
                _stage(root, plan, stage, False)
            except Failed as error:
                if not writes:
                    raise
                raise Failed(
                    f"{error}; what was applied before stays: correct this and apply again, "
                    "or run tokd-host revert"
                ) from error
        if _known(root, args) != plan:  # else keep the file, with the administrator's comments
            root.write(CONF, plan.text())
        root.touched.add(CONF)
        root.writes += len(let_go(root))
    late = [f for f in boot.check(root, plan) if f.level is Level.BAD]
    _tell_writes(root)
    tell(_unit(root, plan), False)
    if late:
        print("reboot, then: tokd-host verify")
    return EXIT_OK


def _apply_at_boot(root: Root, plan: Plan) -> int:
    """Apply what is lost at a reboot. A failing stage does not stop the others: nobody is there to
    retry."""
    wrong: list[Exception] = []
    try:
        tell(prove(root, plan), False)
    except Refusal as error:
        wrong.append(error)
        plan = replace(plan, cores=frozenset())
    with alone(root):
        for stage in AT_BOOT:
            try:
                _stage(root, plan, stage, True)
            except (Refusal, Failed) as error:
                wrong.append(error)
    _tell_writes(root)
    for one in wrong:
        print(f"tokd-host: {one}", file=sys.stderr)
    return EXIT_FAILED if wrong else EXIT_OK


def _revert(root: Root) -> int:
    undone: list[str] = []
    if root.journal.file.parent.exists():
        with alone(root):
            undone = revert(root)
    if not undone and (left := signed(root)):
        raise Failed(
            f"{JOURNAL}: is missing, so nothing can be restored; tokd-host wrote "
            f"{', '.join(left)}: remove by hand (in /etc/default/grub.d, then run update-grub)"
        )
    print(f"{len(undone)} restored" + ("; reboot to run without them" if undone else ""))
    return EXIT_OK


def _unit(root: Root, plan: Plan) -> list[Finding]:
    """Without the unit, the next boot undoes clocks, interrupts and ports."""
    is_lost = plan.cores or plan.nics or any(p.node is not None for p in plan.pages)
    if not is_lost or os.path.lexists(root.path(UNIT)):
        return []
    return [
        Finding(
            "plan",
            Level.NOTE,
            "tokd-host.service is not enabled: each boot undoes governor, interrupts and NIC binding",
            remedy="systemctl enable tokd-host, which applies them again",
        )
    ]


def _tell_writes(root: Root) -> None:
    print("nothing to change" if root.writes == 0 else f"{root.writes} changes")


def _look(root: Root, plan: Plan, verify: bool) -> list[Finding]:
    found = prove(root, plan)
    for stage in STAGES:
        found += stage.verify(root, plan) if verify else stage.check(root, plan)
    refusals = _refusals(root, plan) if any(APPLY in f.remedy for f in found) else []
    if not refusals:
        return found
    found = [replace(f, remedy="", reboot=False) if APPLY in f.remedy else f for f in found]
    return found + [f for f in refusals if f.what not in {one.what for one in found}]


def _refusals(root: Root, plan: Plan) -> list[Finding]:
    """Why apply would refuse."""
    found = []
    for stage in PROVING:
        try:
            stage.prove(root, plan)
        except Refusal as error:
            found.append(Finding(stage.NAME, Level.BAD, str(error), "nothing can be applied"))
    return found


def run(args: argparse.Namespace) -> int:
    _fits(args)
    if not 0 <= args.cpus <= CPUS_MAX:
        raise Refusal(f"--cpus {args.cpus}: expected 1 to {CPUS_MAX}")
    root = Root(args.root, args.dry_run, args.cpus, memory.parse(args.memory))
    if not root.folder.is_dir():
        raise Refusal(f"--root {args.root}: no such folder")
    if (
        args.do in ("apply", "revert")
        and root.is_this_machine
        and os.geteuid() != 0
        and not args.dry_run
    ):
        raise Refusal(
            f"{args.do} writes to /etc, /proc and /sys: run it as root, or give --dry-run"
        )
    if root.journal.is_hidden and args.do in ("apply", "revert"):
        if args.do == "revert" or not args.dry_run:
            raise Refusal(f"{JOURNAL}: only root can read it, and {args.do} needs it: run as root")
        print(f"note  only root can read {JOURNAL}: shown as if nothing had been applied")
    if args.do == "revert":
        if asked := _asked(args):
            print(f"note  revert undoes everything, not only {', '.join(asked)}")
        return _revert(root)
    known = _known(root, args)
    plan = _plan(root, args, known)
    if args.do == "apply":
        return _apply_at_boot(root, plan) if args.at_boot else _apply(root, plan, args)
    found = _look(root, plan, args.do == "verify")
    if known is not None:
        found += _unit(root, plan)
    if known is None and not _asked(args):
        found.insert(
            0, Finding("plan", Level.NOTE, f"nothing is asked; proposed: {plan.options()}")
        )
    tell(found, args.json)
    if not args.json and plan != known and any(APPLY in f.remedy for f in found):
        print(f"{APPLY} stands for: {APPLY} {plan.options()}")
    return EXIT_OK if is_good(found) else EXIT_FOUND


def main() -> int:
    args = parser().parse_args()
    try:
        return run(args)
    except Refusal as error:
        print(f"tokd-host: {error}", file=sys.stderr)
        return EXIT_USAGE
    except Failed as error:
        print(f"tokd-host: {error}", file=sys.stderr)
        return EXIT_FAILED
    except OSError as error:
        print(f"tokd-host: {error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_FAILED
