# SPDX-License-Identifier: BSD-3-Clause
"""What stood in each file before tokd-host first wrote there, on disk before the write."""

import base64
import json
import os
from pathlib import Path

JOURNAL = "/var/lib/dpdk-tokd/host/journal.json"


class Journal:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / JOURNAL.lstrip("/")
        self.entries: list[dict] = []
        if self.file.exists():
            self.entries = json.loads(self.file.read_text())

    def _known(self, name: str) -> bool:
        return any(e["name"] == name for e in self.entries)

    def _add(self, entry: dict) -> None:
        self.entries.append(entry)
        for folder in reversed(self.file.parents):
            if not folder.exists():
                folder.mkdir()
                self.entries.insert(0, {"name": self._inside(folder), "kind": "folder"})
        self.keep(self.entries)

    def keep(self, entries: list[dict]) -> None:
        """On disk, whole or as before."""
        self.entries = entries
        new = self.file.with_suffix(".new")
        with open(new, "w", encoding="utf-8") as out:
            json.dump(entries, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        os.replace(new, self.file)

    def _inside(self, path: Path) -> str:
        return "/" + str(path.relative_to(self.root))

    def before(self, name: str, path: Path) -> None:
        """Keep what stands at `path`, unless it was kept before: the first is what was there
        before us."""
        if self._known(name):
            return
        if path.exists():
            held = base64.b64encode(path.read_bytes()).decode()
            self._add({"name": name, "kind": "file", "held": held, "mode": path.stat().st_mode & 0o7777})
        else:
            self._add({"name": name, "kind": "absent"})

    def announce(self, name: str, kind: str) -> None:
        """Something that is no file is about to be changed; `kind` says how it is undone."""
        if not self._known(name):
            self._add({"name": name, "kind": kind})

    def made_folder(self, name: str) -> None:
        if not self._known(name):
            self._add({"name": name, "kind": "folder"})

    def forget(self) -> None:
        """All has been restored."""
        self.entries = []
        self.file.unlink(missing_ok=True)
