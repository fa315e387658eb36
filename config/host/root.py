# SPDX-License-Identifier: BSD-3-Clause
"""The machine as files below a root: this machine, or a folder (--root DIR). Every write is
printed, and the original content is stored in the journal first, so that revert restores every
byte, also after an incomplete apply.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from host.journal import Journal, replace, unpack
from host.report import Failed

# Kernel files: written in place, never replaced by rename, and lost at a reboot.
KERNEL = ("/proc/", "/sys/")
RUN_S = 300  # the slowest is update-grub on a machine with many disks
LINKS_MAX = 40  # as in the kernel


def to_kernel(path: Path, text: str) -> None:
    """In one write, because the kernel takes each write as a whole value. Never creates a file."""
    file = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


class Root:
    def __init__(
        self, folder: str = "/", dry_run: bool = False, cpus: int = 0, memory_kb: int = 0
    ) -> None:
        self.folder = Path(folder)
        self.dry_run = dry_run
        self.cpus = cpus  # --cpus, for another root; 0: not given
        self.memory_kb = memory_kb  # likewise
        self.journal = Journal(self.folder)
        self.writes = 0
        self.touched: set[str] = set()  # names that this plan concerns, changed or not
        self._undo: list[tuple[str, Callable[[], None]]] = []  # in order

    @property
    def is_this_machine(self) -> bool:
        return self.folder.resolve() == Path("/")

    def path(self, name: str) -> Path:
        return self.folder / name.lstrip("/")

    def exists(self, name: str) -> bool:
        return self.path(self.resolved(name)).exists()

    def read(self, name: str) -> str:
        """Text of a file; "" if it is missing or unreadable."""
        try:
            return self.path(self.resolved(name)).read_text(
                encoding="utf-8", errors="surrogateescape"
            )
        except OSError:
            return ""

    def names(self, name: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(name)))
        except OSError:
            return []

    def link(self, name: str) -> str:
        """Last part of a symbolic link's target; "" if it is no link."""
        try:
            return os.path.basename(os.readlink(self.path(name)))
        except OSError:
            return ""

    def resolved(self, name: str) -> str:
        """The file behind a name, within this root: links are followed, as by programs that run
        there."""
        done, rest, links = "/", name.split("/"), 0
        while rest:
            part = rest.pop(0)
            step = os.path.normpath(os.path.join(done, part))
            if part in ("", ".", "..") or not self.path(step).is_symlink():
                done = step
                continue
            links += 1
            if links > LINKS_MAX:
                raise Failed(f"{name}: more than {LINKS_MAX} links, one after the other")
            to = os.readlink(self.path(step))
            done = "/" if to.startswith("/") else done
            rest = to.split("/") + rest
        return done

    def held(self, name: str) -> str:
        """Text of a file before tokd-host first wrote there."""
        known = self.journal.get(name)
        if known and "held" in known:
            return unpack(known["held"]).decode(errors="surrogateescape")
        return "" if known else self.read(name)

    def is_as_written(self, name: str) -> bool:
        """Does it still have what tokd-host wrote?"""
        known = self.journal.get(name)
        return (
            known is not None and "wrote" in known and self._bytes(name) == unpack(known["wrote"])
        )

    def _bytes(self, name: str) -> bytes | None:
        path = self.path(name)
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, text: str, mode: int = 0o644) -> bool:
        """Make the file hold `text`. False if it already does. Raises Failed."""
        kernel = name.startswith(KERNEL)
        name = name if kernel else self.resolved(name)
        self.touched.add(name)
        held = self.read(name)
        if self.exists(name) and (held == text or (kernel and held.strip() == text.strip())):
            return False
        print(f"write {name}: {shown(text)}")
        if not self.dry_run:
            try:
                if kernel:
                    self._write_kernel(name, text)
                else:
                    self._write_file(name, text.encode(errors="surrogateescape"), mode)
            except OSError as error:
                raise Failed(
                    f"{name}: cannot write {shown(text)}: {error.strerror}", error.errno or 0
                ) from error
        self.writes += 1
        return True

    def _write_file(self, name: str, data: bytes, mode: int) -> None:
        target = self.path(name)
        if target.exists() and not target.is_file():
            raise Failed(f"{name}: is no regular file: it cannot be written; move it away")
        self._make_folder(target.parent)
        self.remember(name)
        replace(target, data, mode)
        self.journal.wrote(name, target)

    def _write_kernel(self, name: str, text: str) -> None:
        """The kernel may reject the value, or show it in another form."""
        self.journal.before_kernel({name: self.path(name)})
        held = self._bytes(name)
        try:
            to_kernel(self.path(name), text)
        except OSError:
            if "wrote" not in (self.journal.get(name) or {}):
                self.journal.drop(name)
            raise
        self._undo.append((name, lambda: self._put_back_kernel(name, (held or b"").decode())))
        self.journal.wrote(name, self.path(name))

    def _put_back_kernel(self, name: str, held: str) -> None:
        to_kernel(self.path(name), held)
        self.journal.wrote(name, self.path(name))

    def remember_kernel(self, names: list[str]) -> None:
        """Store the originals of all these in the journal at once."""
        if names and not self.dry_run:
            self.journal.before_kernel({name: self.path(name) for name in names})

    def poke(self, name: str, text: str) -> None:
        """Write to a kernel file without a journal: it is a command, or undoes something. Raises
        Failed."""
        print(f"write {name}: {shown(text)}")
        self.writes += 1
        if self.dry_run:
            return
        try:
            to_kernel(self.path(name), text)
        except OSError as error:
            raise Failed(
                f"{name}: cannot write {shown(text)}: {error.strerror}", error.errno or 0
            ) from error

    def symlink(self, name: str, to: str) -> bool:
        """Make `name` a symbolic link to `to`. False if it already is. Raises Failed."""
        path = self.path(name)
        self.touched.add(name)
        if path.is_symlink() and os.readlink(path) == to:
            return False
        print(f"link  {name} -> {to}")
        self.writes += 1
        if self.dry_run:
            return True
        if os.path.lexists(path):
            raise Failed(f"{name}: is there already and is not a link to {to}: move it away")
        try:
            self._make_folder(path.parent)
            if not self.journal.get(name):
                self.journal.add({"name": name, "kind": "link", "to": to})
            path.symlink_to(to)
            self._undo.append((name, lambda: path.unlink(missing_ok=True)))
        except OSError as error:
            raise Failed(
                f"{name}: cannot link to {to}: {error.strerror}", error.errno or 0
            ) from error
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
        """Announce that this file will be changed, by us or by a program."""
        name = self.resolved(name)
        self.touched.add(name)
        if not self.dry_run:
            self.journal.before(name, self.path(name))
            held = self._bytes(name)
            self._undo.append((name, lambda: self._put_back(name, held)))

    def _put_back(self, name: str, held: bytes | None) -> None:
        target = self.path(name)
        if held is None and not os.path.lexists(target):
            pass  # on a disk that is read-only, unlink would fail
        elif held is None:
            target.unlink()
        elif self._bytes(name) != held:
            replace(target, held)
        self.journal.wrote(name, target)

    def on_undo(self, name: str, undo: Callable[[], None]) -> None:
        """`undo` is called if the stage fails."""
        self._undo.append((name, undo))

    def announce(self, name: str, kind: str) -> None:
        """Announce a change of something that is not a file; HOW of `kind` undoes it."""
        self.touched.add(name)
        if not self.dry_run:
            self.journal.announce(name, kind)

    def mark(self) -> int:
        """A position for undo_to."""
        return len(self._undo)

    def undo_to(self, mark: int) -> list[str]:
        """Undo everything since `mark`. Returns errors."""
        wrong = []
        while len(self._undo) > mark:
            name, undo = self._undo.pop()
            print(f"undo  {name}")
            try:
                undo()
            except (OSError, Failed) as error:
                wrong.append(f"{name}: {error}")
        return wrong

    def program(self, name: str) -> str:
        """Path of a system program in this root; "" if it has none."""
        for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"):
            if os.access(self.path(f"{folder}/{name}"), os.X_OK):
                return f"{folder}/{name}"
        return ""

    def ask(self, name: str, *args: str) -> str:
        """Output of a program that changes nothing; "" if it is missing or fails. Programs of
        another root are not run: they would report on this machine."""
        program = self.program(name)
        if not program or not self.is_this_machine:
            return ""
        try:
            done = subprocess.run(
                [program, *args],
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=30,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout if done.returncode == 0 else ""

    def run(self, name: str, *args: str, in_root: bool = False) -> bool:
        """Run a program, and print the command. In another root: by chroot if it only touches files
        (in_root); else only print what to run. False if it was not run. Raises Failed with its
        output."""
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
                command,
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=RUN_S,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{line}: not done after {RUN_S} s; run it by hand to see why") from error
        except OSError as error:
            raise Failed(f"{line}: {error.strerror}") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Failed(f"{line}: exit status {done.returncode}: {said[-1] if said else ''}")
        return True


def shown(text: str) -> str:
    lines = text.strip().splitlines()
    return repr(lines[0] if lines else "") if len(lines) <= 1 else f"{len(lines)} lines"
