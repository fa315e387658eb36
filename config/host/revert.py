# SPDX-License-Identifier: BSD-3-Clause
"""Back to what stood there before, to the byte, the last written first."""

import base64
import errno
import os
from pathlib import Path

from grub import tuned
from host.report import Refusal
from host.root import KERNEL, Root
from hugepages import doca

# What is undone by other means than by bytes: the kind of its entry.
HOW = {doca.KIND: doca.give_back}
# What reads a file has to be told that it is as before.
AFTER = {tuned.VARIABLES: tuned.tell}


def _restore(root: Root, entry: dict) -> None:
    name, path = entry["name"], root.path(entry["name"])
    if entry["kind"] in HOW:
        HOW[entry["kind"]](root, entry)
    elif entry["kind"] == "folder":
        print(f"remove {name}/")
        if not root.dry_run and path.is_dir() and not os.listdir(path):
            path.rmdir()
    elif entry["kind"] == "absent":
        print(f"remove {name}")
        if not root.dry_run and os.path.lexists(path):
            path.unlink()
    elif name.startswith(KERNEL):
        held = base64.b64decode(entry["held"])
        if path.exists() and path.read_bytes() != held:
            print(f"write {name}: {held.decode().strip()!r}")
            if not root.dry_run:
                _write_kernel(path, name, held)
    else:
        print(f"restore {name}")
        if not root.dry_run:
            new = path.with_name(path.name + ".tokd-new")
            new.write_bytes(base64.b64decode(entry["held"]))
            os.chmod(new, entry["mode"])
            os.replace(new, path)


def _write_kernel(path: Path, name: str, held: bytes) -> None:
    try:
        path.write_bytes(held)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        # An interrupt that cannot be moved: apply could not either, and the next boot places it.
        print(f"note  {name}: the kernel manages this one")


def revert(root: Root) -> list[str]:
    """Undo all that the journal has. The names that were restored. What cannot be is told, kept in the
    journal, and does not stop the rest."""
    undone, own, wrong = [], [], []
    kept: list[dict] = []
    for entry in reversed(root.journal.entries):
        if entry["kind"] == "folder" and root.path(entry["name"]) in root.journal.file.parents:
            own.append(entry)  # the journal's: last of all
            continue
        try:
            _restore(root, entry)
            if entry["name"] in AFTER:
                AFTER[entry["name"]](root)
            undone.append(entry["name"])
        except Refusal as error:
            kept.append(entry)
            wrong.append(str(error))
        except OSError as error:
            kept.append(entry)
            wrong.append(f"{entry['name']}: {error.strerror}")
    if root.dry_run:
        return undone
    if wrong:
        root.journal.keep(own + kept[::-1])
        raise Refusal("not restored: " + "; ".join(wrong))
    root.journal.forget()
    for entry in sorted(own, key=lambda e: -len(e["name"])):
        path = root.path(entry["name"])
        if path.is_dir() and not os.listdir(path):
            path.rmdir()
    return undone
