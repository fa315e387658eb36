# SPDX-License-Identifier: BSD-3-Clause
"""An initramfs: busybox, programs with the libraries they need, and kernel modules with those they
depend on."""

import gzip
import os
import stat
from pathlib import Path

import debian
from elftools.elf.elffile import ELFFile

GUEST = Path(__file__).resolve().parent / "guest"
APPLETS = [
    "awk", "basename", "cat", "chmod", "cut", "dmesg", "echo", "env", "free", "grep", "head",
    "hostname", "id", "ifconfig", "insmod", "ip", "kill", "killall", "ln", "ls", "mkdir", "mount",
    "nc", "nproc", "ping", "poweroff", "printf", "ps", "readlink", "rm", "sed", "seq", "sh",
    "sleep", "sort", "switch_root", "sync", "tail", "taskset", "test", "timeout", "touch", "tr",
    "umount", "uname", "wc"
]  # fmt: skip
FOLDERS = ("lib", "drivers")  # where libraries are, see guest/init


class Archive:
    """A cpio archive, as the kernel unpacks one at boot (newc)."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = set()

    def folder(self, name: str) -> None:
        name = name.strip("/")
        if name and name not in self._names:
            self._add(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, data: bytes, mode: int = 0o755) -> None:
        self._add(name.strip("/"), stat.S_IFREG | mode, data)

    def link(self, name: str, target: str) -> None:
        self._add(name.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def __contains__(self, name: str) -> bool:
        return name.strip("/") in self._names

    def _add(self, name: str, mode: int, data: bytes) -> None:
        if name in self._names:
            return
        self.folder(os.path.dirname(name))
        self._names.add(name)
        self._parts.append(self._entry(name, mode, data, len(self._names)))

    @staticmethod
    def _entry(name: str, mode: int, data: bytes, inode: int) -> bytes:
        # inode, mode, owner, group, links, mtime, size, 2 of the device, 2 of a device file's,
        # length of the name, sum
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name.encode()) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
        return b"".join(part + bytes(-len(part) % 4) for part in (head, data))

    def write(self, path: Path) -> None:
        end = self._entry("TRAILER!!!", 0, b"", 0)
        path.write_bytes(gzip.compress(b"".join([*self._parts, end]), 1))


class Initramfs(Archive):
    """What is common to all guests: /init of guest/init, /bin of busybox."""

    def __init__(self, root: Path) -> None:
        """root: unpacked packages, see debian.root()."""
        super().__init__()
        self._modules = {
            path.stem.replace("-", "_"): path for path in debian.modules(root).rglob("*.ko")
        }
        self._load: list[str] = []
        self.file("bin/busybox", (root / "bin/busybox").read_bytes())
        for name in APPLETS:
            self.link(f"bin/{name}", "busybox")
        for name in ("init", "said.sh"):
            self.file(name, (GUEST / name).read_bytes())
        for name in ("proc", "sys", "dev", "tmp", "run"):
            self.folder(name)

    def module(self, *names: str) -> None:
        """Loaded at boot in this order, each behind those it depends on. KeyError: it is not
        there."""
        for name in names:
            path = self._modules[name.replace("-", "_")]
            if path.stem in self._load:
                continue
            self.module(*depends(path))
            self._load.append(path.stem)
            self.file(f"modules/{path.stem}.ko", path.read_bytes(), 0o644)

    def program(self, path: Path, libraries: list[Path], name: str | None = None) -> None:
        """With its libraries, which are looked for in `libraries`, and its loader."""
        self.file(name or f"bin/{path.name}", path.read_bytes())
        self.libraries_of(path, libraries)

    def library(self, name: str, libraries: list[Path]) -> None:
        """With those that it needs."""
        found = find(name, libraries)
        self.file(f"{FOLDERS[0]}/{name}", found.read_bytes())
        self.libraries_of(found, libraries)

    def libraries_of(self, path: Path, libraries: list[Path]) -> None:
        loader, needed = reads(path)
        if loader:
            self.file(loader, find(Path(loader).name, libraries).read_bytes())
        for name in needed:
            # A second copy of a driver would be a second driver.
            if not any(f"{folder}/{name}" in self for folder in FOLDERS) and not name.startswith(
                "ld-linux"
            ):
                self.library(name, libraries)

    def write(self, path: Path) -> None:
        self.file("modules/order", "".join(f"{name}\n" for name in self._load).encode(), 0o644)
        super().write(path)


def find(name: str, folders: list[Path]) -> Path:
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"{name} is in none of {', '.join(map(str, folders))}")


def reads(path: Path) -> tuple[str | None, list[str]]:
    """The loader that a program names, and the libraries that it, or a library, needs."""
    with path.open("rb") as f:
        elf = ELFFile(f)
        loader = next((s.get_interp_name() for s in elf.iter_segments("PT_INTERP")), None)
        dynamic = next(elf.iter_segments("PT_DYNAMIC"), None)
        tags = dynamic.iter_tags("DT_NEEDED") if dynamic else ()
        return loader, [tag.needed for tag in tags]


def depends(path: Path) -> list[str]:
    """What a kernel module says that it depends on."""
    with path.open("rb") as f:
        section = ELFFile(f).get_section_by_name(".modinfo")
        words = dict(
            w.split(b"=", 1) for w in section.data().split(b"\0") if w.startswith(b"depends=")
        )
    return [name for name in words.get(b"depends", b"").decode().split(",") if name]
