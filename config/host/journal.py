# SPDX-License-Identifier: BSD-3-Clause
"""The original content of each file, on disk before tokd-host first writes it, and what it wrote.
Some contents are readable by root only, so the journal is too. An entry for something that a
reboot undoes names the boot; after another boot there is nothing to restore.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any

from host.report import Failed

JOURNAL = "/var/lib/dpdk-tokd/host/journal.json"
BOOT_ID = "/proc/sys/kernel/random/boot_id"

Entry = dict[str, Any]  # of JSON


def replace(target: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace a file atomically and durably. Keeps owner, mode and labels of an existing file; a
    new one gets `mode`."""
    new = target.with_name(target.name + ".tokd-new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(data)
        if target.exists():
            held = target.stat()
            os.fchown(out.fileno(), held.st_uid, held.st_gid)
            shutil.copystat(target, new)
            os.utime(new)
        else:
            os.fchmod(out.fileno(), mode)
        out.flush()
        os.fsync(out.fileno())
    os.replace(new, target)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def pack(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unpack(text: str) -> bytes:
    return base64.b64decode(text)


class Journal:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / JOURNAL.lstrip("/")
        self.is_late = False  # something is not on disk yet
        self.is_hidden = False  # there may be a journal that this user cannot read
        try:
            self.boot = (root / BOOT_ID.lstrip("/")).read_text().strip()
        except OSError:
            self.boot = ""  # no running system
        self.entries: list[Entry] = self._load()

    def _load(self) -> list[Entry]:
        try:
            entries = json.loads(self.file.read_text())
            return [
                e
                for e in entries
                if e["name"] and e["kind"] and e.get("boot", self.boot) == self.boot
            ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except PermissionError:
            self.is_hidden = True
            return []
        except (ValueError, TypeError, KeyError) as error:
            raise Failed(
                f"{JOURNAL}: is no journal of tokd-host ({type(error).__name__}: {error}): restore it, or move it "
                "away; without it nothing can be reverted"
            ) from error

    def get(self, name: str) -> Entry | None:
        return next((e for e in self.entries if e["name"] == name), None)

    def add(self, entry: Entry) -> None:
        """On disk when it returns."""
        self.entries.append(entry)
        self._keep_first()

    def _keep_first(self) -> None:
        """Also creates its folder, and records that."""
        for folder in reversed(self.file.parents):
            if not folder.exists():
                folder.mkdir(0o700 if folder == self.file.parent else 0o755)
                self.entries.insert(0, {"name": self._inside(folder), "kind": "folder"})
        self.keep(self.entries)

    def keep(self, entries: list[Entry]) -> None:
        """Durably and atomically."""
        self.entries, self.is_late = entries, False
        if self.file.exists():
            self.file.chmod(0o600)
        replace(self.file, json.dumps(entries, indent=1).encode(), 0o600)

    def flush(self) -> None:
        """Write postponed entries to disk as well. Without them a journal restores too much, never
        too little."""
        if self.is_late:
            self.keep(self.entries)

    def drop(self, name: str) -> None:
        """The announced change was not made."""
        self.entries = [e for e in self.entries if e["name"] != name]
        self.is_late = True

    def _inside(self, path: Path) -> str:
        return "/" + str(path.relative_to(self.root))

    def before(self, name: str, path: Path) -> None:
        """Store what is at `path`, unless stored before: the first content is the original. If
        somebody changed it since, that is stored too."""
        known = self.get(name)
        now = path.read_bytes() if path.exists() else None
        if known is None:
            kind = {"kind": "absent"} if now is None else {"kind": "file", "held": pack(now)}
            self.add({"name": name, **kind})
        elif known["kind"] == "file" and "wrote" in known and now is not None:
            wrote = unpack(known["wrote"])
            if now != wrote:
                known["held"] = pack(without_ours(now, unpack(known["held"]), wrote))

    def before_kernel(self, files: dict[str, Path]) -> None:
        """The same for files that a reboot undoes, all at once: there may be a thousand
        interrupts."""
        known = {e["name"] for e in self.entries}
        new = [
            {"name": name, "kind": "file", "held": pack(path.read_bytes()), "boot": self.boot}
            for name, path in files.items()
            if name not in known
        ]
        if new:
            self.entries += new
            self._keep_first()

    def wrote(self, name: str, path: Path) -> None:
        """The current content is ours."""
        known = self.get(name)
        now = pack(path.read_bytes()) if path.exists() else None
        if known and known.get("wrote") != now:
            known.pop("wrote", None)
            known |= {"wrote": now} if now is not None else {}
            self.is_late = True
            if "boot" not in known:
                self.flush()

    def announce(self, name: str, kind: str) -> None:
        """Announce a change of something that is not a file; `kind` says how it is undone."""
        if not self.get(name):
            self.add({"name": name, "kind": kind})

    def made_folder(self, name: str) -> None:
        if not self.get(name):
            self.add({"name": name, "kind": "folder"})

    def forget(self) -> None:
        """Everything has been restored."""
        self.entries = []
        self.file.unlink(missing_ok=True)


def without_ours(now: bytes, held: bytes, wrote: bytes) -> bytes:
    """For a file that was changed after us: remove the lines that we added, put the lines that we
    removed in place of the first of them, and keep everything else."""
    before, ours = held.splitlines(keepends=True), wrote.splitlines(keepends=True)
    added = [line for line in ours if line not in before]
    gone = [line for line in before if line not in ours]
    left: list[bytes] = []
    for line in now.splitlines(keepends=True):
        if line in added:
            left += gone
            gone = []
        else:
            left.append(line)
    return b"".join(left)
