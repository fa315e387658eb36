# SPDX-License-Identifier: BSD-3-Clause
"""Restores the original content, byte for byte, in reverse order. A file that was changed since is
kept; only our part is removed from it, and reported.
"""

from __future__ import annotations

import os

from grub import bls, drop_in, tuned
from hugepages import doca
from hugepages import stage as hugepages

from host import irq, limits, nic
from host.journal import Entry, replace, unpack, without_ours
from host.plan import SIZES
from host.report import Failed, Refusal
from host.root import KERNEL, Root

# Programs that must be told when their file is restored. Until then it counts as not restored.
AFTER = {drop_in.NAME: drop_in.update, tuned.VARIABLES: tuned.tell} | dict.fromkeys(
    irq.BALANCE, irq.restart_balance
)


def _remove(root: Root, entry: Entry) -> None:
    name, path = entry["name"], root.path(entry["name"])
    if not os.path.lexists(path):
        return
    if "wrote" in entry and (not path.is_file() or path.read_bytes() != unpack(entry["wrote"])):
        print(f"rename {name} to {name}.edited: it was changed since tokd-host wrote it")
        if not root.dry_run:
            os.replace(path, f"{path}.edited")
        return
    print(f"remove {name}")
    if not root.dry_run:
        path.unlink()


def _remove_link(root: Root, entry: Entry) -> None:
    name, path = entry["name"], root.path(entry["name"])
    if path.is_symlink() and os.readlink(path) == entry["to"]:
        print(f"remove {name}")
        if not root.dry_run:
            path.unlink()
    elif os.path.lexists(path):
        print(f"leave {name}: it is no longer the link that tokd-host made")


def _restore(root: Root, entry: Entry) -> None:
    """Restore a file, of the disk or the kernel, that existed before."""
    name = root.resolved(entry["name"])
    path, held = root.path(name), unpack(entry["held"])
    if not path.exists():
        print(f"leave {name}: it is gone")
        return
    now = path.read_bytes()
    is_ours = "wrote" not in entry or now == unpack(entry["wrote"])
    if now == held:
        return
    if name.startswith(KERNEL):
        if not is_ours:
            print(
                f"leave {name}: {now.decode(errors='replace').strip()!r} is not what tokd-host wrote"
            )
            return
        root.poke(name, held.decode())
        return
    if not is_ours:
        held = without_ours(now, held, unpack(entry["wrote"]))
        print(f"mend  {name}: it was changed since; only what tokd-host wrote is taken out")
    else:
        print(f"restore {name}")
    if not root.dry_run and held != now:
        replace(path, held)


def _remove_folder(root: Root, entry: Entry) -> None:
    path = root.path(entry["name"])
    if not root.dry_run and path.is_dir() and os.listdir(path):
        print(f"leave {entry['name']}/: it is not empty")
        return
    print(f"remove {entry['name']}/")
    if not root.dry_run and path.is_dir():
        path.rmdir()


HOW = {
    "folder": _remove_folder,
    "absent": _remove,
    "link": _remove_link,
    "file": _restore,
    "driver": nic.give_back,
    "words": bls.give_back,
    doca.KIND: doca.give_back,
}


def _give_back(root: Root, chosen: list[Entry]) -> list[str]:
    """Undo these; returns the names that were restored. Failures are reported, stay in the journal,
    and do not stop the rest."""
    undone, wrong = [], []
    left = list(root.journal.entries)
    after = {root.resolved(name): tell for name, tell in AFTER.items()}
    for entry in reversed(chosen):
        try:
            HOW[entry["kind"]](root, entry)
            if entry["name"] in after:
                after[entry["name"]](root)
        except (Failed, Refusal) as error:
            wrong.append(str(error))
        except OSError as error:
            wrong.append(f"{entry['name']}: {error.strerror}")
        else:
            undone.append(entry["name"])
            left.remove(entry)
    if not root.dry_run and undone:
        root.journal.keep(left)
    if wrong:
        raise Failed("not restored: " + "; ".join(wrong))
    return undone


def let_go(root: Root) -> list[str]:
    """Restore what earlier plans wrote and this plan does not concern."""
    return _give_back(
        root,
        [
            e
            for e in root.journal.entries
            if e["kind"] != "folder" and e["name"] not in root.touched
        ],
    )


def signed(root: Root) -> list[str]:
    """Files that begin as ours do."""
    units = (hugepages.unit(size) for size in SIZES)
    names = (drop_in.NAME, *units, limits.FILE)
    return [name for name in names if root.read(name).startswith("# Written by tokd-host")]


def revert(root: Root) -> list[str]:
    """Undo everything in the journal."""
    entries = root.journal.entries
    own = [
        e
        for e in entries
        if e["kind"] == "folder" and root.path(e["name"]) in root.journal.file.parents
    ]
    undone = _give_back(root, [e for e in entries if e not in own])
    if not root.dry_run:
        root.journal.forget()
        for entry in sorted(own, key=lambda e: -len(e["name"])):  # the journal itself comes last
            path = root.path(entry["name"])
            if path.is_dir() and not os.listdir(path):
                path.rmdir()
    return undone
