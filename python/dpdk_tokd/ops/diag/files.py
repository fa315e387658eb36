# SPDX-License-Identifier: BSD-3-Clause
"""sysfs and proc below a root: this machine's, or one that a test has prepared.

The content is not trusted: a file that is missing, too long, not text or not a file is "not known".
All text returned here is printable ASCII.
"""

from __future__ import annotations

import os
import re

NAMES_MAX = 1024
LINE_MAX = 160


def clean(text: str) -> str:
    """Replaces unprintable characters by '?'."""
    return re.sub(r"[^ -~]", "?", text)


def is_name(text: str) -> bool:
    """Is it printable and safe as a part of a path?"""
    return re.fullmatch(r"(?!\.)[!-.0-~]{1,63}", text) is not None


def _by_number(name: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", name)]


class Files:
    """Raises OSError if `root` is not a folder."""

    def __init__(self, root: str) -> None:
        real = os.path.realpath(root, strict=True)
        os.close(os.open(real, os.O_RDONLY | os.O_DIRECTORY))
        self.live = real == "/"  # this machine: devices and libraries may be asked
        self._root = "" if self.live else real

    def exists(self, path: str) -> bool:
        return os.path.exists(self._root + path)

    def data(self, path: str, room: int) -> bytes:
        """Up to `room` bytes; empty if it cannot be read."""
        found = b""
        try:
            # Do not block on a pipe or a terminal.
            fd = os.open(self._root + path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError):
            return found
        try:
            while len(found) < room and (more := os.read(fd, room - len(found))):
                found += more
        except OSError:
            pass
        finally:
            os.close(fd)
        return found

    def text(self, path: str, room: int = 1 << 18) -> str:
        """A file of several lines."""
        return self.data(path, room).decode("latin-1")

    def line(self, path: str) -> str | None:
        """The first line, stripped. None: it is empty."""
        first = self.text(path, LINE_MAX).split("\n", 1)[0]
        return clean(first.strip(" \t\r")) or None

    def number(self, path: str) -> int | None:
        """The 64-bit number, decimal or 0x..., that begins the first line."""
        found = re.match(r"0x[0-9a-fA-F]+|[0-9]+", self.line(path) or "")
        n = int(found[0], 16 if found[0].startswith("0x") else 10) if found else -1
        return n if 0 <= n < 1 << 64 else None

    def names(self, path: str) -> list[str]:
        """Names in a folder, in natural order."""
        try:
            found = [name for name in os.listdir(self._root + path) if is_name(name)]
        except OSError:
            return []
        return sorted(found, key=_by_number)[:NAMES_MAX]

    def real(self, path: str) -> str | None:
        """Target of a link, below the root. None: none, outside the root, or not printable."""
        try:
            real = os.path.realpath(self._root + path, strict=True)
        except (OSError, ValueError):
            return None
        if not real.startswith(self._root + "/") or re.search(r"[^!-~]", real[len(self._root) :]):
            return None
        return real[len(self._root) :]
