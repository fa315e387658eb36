# SPDX-License-Identifier: BSD-3-Clause
"""The machine, as files below a root: this one, or one prepared under --root DIR.

Every write is printed, and what stood there before is kept in the journal first, so that revert
restores it to the byte, also after half of an apply.
"""

import os
import subprocess
from pathlib import Path

from host.journal import Journal
from host.report import Refusal

# Kernel files: written in place, never replaced by rename, and gone with the next boot.
KERNEL = ("/proc/", "/sys/")
RUN_S = 300  # the slowest is update-grub on a machine of many disks


class Root:
    def __init__(self, folder: str = "/", dry_run: bool = False) -> None:
        self.folder = Path(folder)
        self.dry_run = dry_run
        self.journal = Journal(self.folder)
        self.writes = 0
        self._undo: list[tuple[str, bytes | None]] = []  # of this run, in order

    @property
    def is_this_machine(self) -> bool:
        return self.folder.resolve() == Path("/")

    def path(self, name: str) -> Path:
        return self.folder / name.lstrip("/")

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def read(self, name: str) -> str:
        """Text of a file; "" where there is none or it cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""

    def names(self, name: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(name)))
        except OSError:
            return []

    def link(self, name: str) -> str:
        """Last part of what a symbolic link points to; "" where there is none."""
        try:
            return os.path.basename(os.readlink(self.path(name)))
        except OSError:
            return ""

    def write(self, name: str, text: str, mode: int = 0o644) -> bool:
        """Make the file hold `text`. False if it did already. Raises Refusal."""
        if self.read(name) == text and self.exists(name):
            return False
        if name.startswith(KERNEL) and self.read(name).strip() == text.strip():
            return False
        print(f"write {name}: {shown(text)}")
        self.writes += 1
        if self.dry_run:
            return True
        target = self.path(name)
        try:
            if not name.startswith(KERNEL):
                self._make_folder(target.parent)
            self.journal.before(name, target)
            self._undo.append((name, target.read_bytes() if target.exists() else None))
            if name.startswith(KERNEL):
                target.write_text(text)
            else:
                new = target.with_name(target.name + ".tokd-new")
                new.write_text(text, encoding="utf-8", errors="surrogateescape")
                os.chmod(new, target.stat().st_mode & 0o7777 if target.exists() else mode)
                os.replace(new, target)
        except OSError as error:
            raise Refusal(f"{name}: cannot write {shown(text)}: {error.strerror}") from error
        return True

    def poke(self, name: str, text: str) -> None:
        """Write to a kernel file that is a command, not a state: there is nothing to restore."""
        print(f"write {name}: {shown(text)}")
        self.writes += 1
        if self.dry_run:
            return
        try:
            self.path(name).write_text(text)
        except OSError as error:
            raise Refusal(f"{name}: cannot write {text!r}: {error.strerror}") from error

    def symlink(self, name: str, to: str) -> bool:
        """Make `name` a symbolic link to `to`. False if it was already."""
        path = self.path(name)
        if path.is_symlink() and os.readlink(path) == to:
            return False
        print(f"link  {name} -> {to}")
        self.writes += 1
        if self.dry_run:
            return True
        if os.path.lexists(path):
            raise Refusal(f"{name}: is there already and is not a link to {to}: move it away")
        self._make_folder(path.parent)
        self.journal.before(name, path)
        self._undo.append((name, None))
        path.symlink_to(to)
        return True

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):
            self.journal.made_folder("/" + str(one.relative_to(self.folder)))
            one.mkdir()

    def remember(self, name: str) -> None:
        """A program is about to change this file."""
        if not self.dry_run:
            target = self.path(name)
            self.journal.before(name, target)
            self._undo.append((name, target.read_bytes() if target.exists() else None))

    def announce(self, name: str, kind: str) -> None:
        """Something that is no file is about to be changed: revert undoes it as its HOW says of `kind`."""
        if not self.dry_run:
            self.journal.announce(name, kind)

    def mark(self) -> int:
        """For undo_to."""
        return len(self._undo)

    def undo_to(self, mark: int) -> None:
        """Files written since `mark` get back what they held then."""
        while len(self._undo) > mark:
            name, held = self._undo.pop()
            print(f"undo  {name}")
            if held is None:
                self.path(name).unlink(missing_ok=True)
            else:
                self.path(name).write_bytes(held)

    def program(self, name: str) -> str:
        """Full name of an administrator's program of this root; "" if it has none."""
        for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"):
            if os.access(self.path(f"{folder}/{name}"), os.X_OK):
                return f"{folder}/{name}"
        return ""

    def ask(self, name: str, *args: str) -> str:
        """What a program of this root says that changes nothing; "" where it is not there or fails."""
        program = self.program(name)
        if not program:
            return ""
        chroot = [] if self.is_this_machine else ["chroot", str(self.folder)]
        try:
            done = subprocess.run(
                [*chroot, program, *args], capture_output=True, text=True, check=False,
                stdin=subprocess.DEVNULL, timeout=30,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout if done.returncode == 0 else ""

    def run(self, name: str, *args: str, in_root: bool = False) -> bool:
        """Run a program, printed. In another root it is run there by chroot if it is one that touches
        files alone (in_root), else not at all, and what to run is printed. False if it was not run.
        Raises Refusal with what it said."""
        line = " ".join((name, *args))
        command = [name, *args]
        if self.dry_run:
            print(f"run   {line}")
            return False
        if not self.is_this_machine:
            if not in_root:
                print(f"to do {line}   (in {self.folder}: not this machine, so not run)")
                return False
            command = ["chroot", str(self.folder), self.program(name) or name, *args]
        print(f"run   {line}")
        self.writes += 1
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                timeout=RUN_S,
            )
        except subprocess.TimeoutExpired as error:
            raise Refusal(f"{line}: not done after {RUN_S} s; run it by hand to see why") from error
        except OSError as error:
            raise Refusal(f"{line}: {error.strerror}") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Refusal(f"{line}: exit status {done.returncode}: {said[-1] if said else ''}")
        return True


def shown(text: str) -> str:
    lines = text.strip().splitlines()
    return repr(lines[0] if lines else "") if len(lines) <= 1 else f"{len(lines)} lines"
