# SPDX-License-Identifier: BSD-3-Clause
"""One apply or revert at a time: two would record each other's changes as the original state."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from host.journal import Journal
from host.report import Failed, Refusal
from host.root import Root


@contextmanager
def alone(root: Root) -> Iterator[None]:
    """Hold the lock, with the journal read anew. Raises Refusal if another run has it. Not for a
    dry run."""
    if root.dry_run:
        yield
        return
    folder = root.journal.file.parent
    made = _make(folder)
    lock = _locked(folder)
    try:
        root.journal = Journal(root.folder)
        for one in made:
            root.journal.made_folder("/" + str(one.relative_to(root.folder)))
        yield
    finally:
        os.close(lock)


def _make(folder: Path) -> list[Path]:
    """Returns the folders that were missing: revert removes them."""
    made = []
    for one in (*reversed(folder.parents), folder):
        if not one.exists():
            one.mkdir(0o700 if one == folder else 0o755)
            made.append(one)
    return made


def _locked(folder: Path) -> int:
    """A file descriptor. Closing it, also at the end of the process, releases the lock."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not folder.exists() or not os.path.samestat(os.fstat(lock), folder.stat()):
            raise BlockingIOError  # a revert has just removed it
    except BlockingIOError as error:
        os.close(lock)
        raise Refusal(
            f"{folder}: another tokd-host is running: try again when it has ended"
        ) from error
    except OSError as error:
        os.close(lock)
        raise Failed(f"{folder}: cannot lock it: {error.strerror}") from error
    return lock
