# SPDX-License-Identifier: BSD-3-Clause
"""tokd-diag --drivers: the DPDK drivers in programs and libraries, and the devices they claim.

DPDK's own dpdk-pmdinfo.py prints the same strings, but it cannot read a fully static program, lists
plug-ins that a static program never loads, does not say which file a driver is in, and runs ldd,
which may run the file. This module runs nothing of a file.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from .files import Files
from .gather import PCI

INFO = re.compile(rb"PMD_INFO_STRING= (\{[\x20-\x7e]{1,65536}\})\0")
PLUGINS = re.compile(rb"DPDK_PLUGIN_PATH=([\x20-\x7e]{1,4096})\0")
FILES_MAX = 4096
SEGMENTS_MAX = 64
ANY = 0xFFFF
ID_FILES = ("vendor", "device", "subsystem_vendor", "subsystem_device")
# What pyelftools raises on a malformed file.
BROKEN = (ELFError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError,
          OverflowError, MemoryError, AssertionError, UnicodeError)  # fmt: skip


class Elf:
    """The dynamic section and the driver strings of a file."""

    def __init__(self, path: Path) -> None:
        self.needed: list[str] = []
        self.run_path: list[str] = []
        self.infos: list[bytes] = []
        self.plugins: list[str] = []
        if not path.is_file():  # a pipe would block
            raise FileNotFoundError("no such file")
        with path.open("rb") as file:
            elf = ELFFile(file)
            for segment in itertools.islice(elf.iter_segments(), SEGMENTS_MAX):
                if segment["p_type"] == "PT_LOAD":
                    data = segment.data()
                    self.infos += INFO.findall(data)
                    self.plugins += [p.decode() for p in PLUGINS.findall(data)]
                elif isinstance(segment, DynamicSegment):
                    self._dynamic(segment, path)

    def _dynamic(self, segment: DynamicSegment, path: Path) -> None:
        tag: Any
        for tag in segment.iter_tags():
            if tag.entry.d_tag == "DT_NEEDED":
                self.needed.append(tag.needed)
            elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                text = tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath
                origin = str(path.resolve().parent)
                text = text.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
                self.run_path += filter(None, text.split(":"))


def library_cache() -> dict[str, str]:
    """Paths of libraries by name, from the dynamic linker's cache."""
    try:
        command = ["/sbin/ldconfig", "-p"]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, str] = {}
    for name, path in re.findall(r"^\t(\S+) .*=> (\S+)$", out, re.MULTILINE):
        found.setdefault(name, path)
    return found


def find_library(name: str, run_path: list[str], cache: dict[str, str]) -> Path | None:
    """In the order of ld.so(8), without hardware capabilities."""
    folders = run_path + os.environ.get("LD_LIBRARY_PATH", "").split(":")
    for folder in filter(None, folders):
        if (Path(folder) / name).is_file():
            return Path(folder) / name
    return Path(cache[name]) if name in cache else None


def elf_files(path: Path) -> Iterator[tuple[Path, str, Elf]]:
    """The file, the DPDK libraries linked to it, and the plug-ins that its EAL would load."""
    cache = library_cache()
    elf = Elf(path)
    yield path, "in it", elf
    waiting = [(name, elf.run_path) for name in elf.needed]
    seen, eal = {path.resolve()}, None
    while waiting and len(seen) < FILES_MAX:
        name, run_path = waiting.pop(0)
        library = find_library(name, run_path, cache) if name.startswith("librte_") else None
        if library is None or library.resolve() in seen:
            continue
        seen.add(library.resolve())
        elf = Elf(library)
        waiting += [(n, elf.run_path) for n in elf.needed]
        if name.startswith("librte_eal."):
            eal = elf
        yield library, "linked", elf
    # Only a shared EAL loads plug-ins.
    for folder in eal.plugins[:1] if eal else []:
        for plugin in sorted(Path(folder).glob("*.so*")):
            if plugin.resolve() in seen or len(seen) >= FILES_MAX:
                continue
            seen.add(plugin.resolve())
            try:
                yield plugin, "plug-in", Elf(plugin)
            except BROKEN as error:
                print(f"tokd-diag: {plugin}: not read: {error}", file=sys.stderr)


def parse_info(text: bytes) -> dict[str, Any] | None:
    """One driver; None if the string is not what DPDK's build writes."""
    try:
        info = json.loads(text)
        ids = [tuple(int(n) for n in entry) for entry in info.get("pci_ids", [])]
        name = info["name"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(name, str) or any(len(entry) != len(ID_FILES) for entry in ids):
        return None
    params, kmod = info.get("params"), info.get("kmod")
    return {
        "name": name,
        "params": params if isinstance(params, str) else None,
        "kmod": kmod.strip() if isinstance(kmod, str) else None,
        "ids": ids,
    }


def pci_devices(files: Files) -> list[dict[str, Any]]:
    """PCI functions of the machine, as sysfs has them."""
    devices = []
    for address in files.names(PCI):
        ids = tuple(files.number(f"{PCI}/{address}/{name}") for name in ID_FILES)
        if None not in ids:
            bound = files.real(f"{PCI}/{address}/driver")
            driver = bound and os.path.basename(bound)
            devices.append({"address": address, "ids": ids, "driver": driver})
    return devices


def claims(ids: list[tuple[int, ...]], device: dict[str, Any]) -> bool:
    """0xffff matches any number."""
    return any(
        all(want in (ANY, have) for want, have in zip(entry, device["ids"], strict=True))
        for entry in ids
    )


def drivers_of(path: Path, devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drivers by name, each with its file and the devices it claims."""
    drivers = []
    for file, how, elf in elf_files(path):
        for info in filter(None, map(parse_info, elf.infos)):
            ids = info.pop("ids")
            claimed = [
                {"address": d["address"], "driver": d["driver"]} for d in devices if claims(ids, d)
            ]
            hexadecimal = [
                {n: f"{v:04x}" for n, v in zip(ID_FILES, entry, strict=True) if v != ANY}
                for entry in ids
            ]
            place = {"file": str(file), "how": how}
            drivers.append(info | place | {"pci_ids": hexadecimal, "devices": claimed})
    return sorted(drivers, key=lambda d: (d["name"], d["file"]))


def _lines(path: str, drivers: list[dict[str, Any]]) -> Iterator[str]:
    """Text: a line per driver, and one per device it claims here."""
    yield f"{os.fsencode(path).decode(errors='replace')}: {len(drivers)} drivers"
    for d in drivers:
        ids = len(d["pci_ids"])
        what = f"{ids} PCI ids" if ids else "no PCI ids: a --vdev, or another bus"
        kmod = f"; kernel modules: {d['kmod']}" if d["kmod"] else ""
        where = "" if d["how"] == "in it" else f" ({d['how']}: {Path(d['file']).name})"
        yield f"  {d['name']}{where}: {what}{kmod}"
        for device in d["devices"]:
            yield f"    claims {device['address']}, bound to {device['driver'] or 'no driver'}"


def report(paths: list[str], files: Files, as_json: bool) -> tuple[str, int]:
    """The text and the exit code: 1 if a file could not be read or has no drivers."""
    devices = pci_devices(files)
    found: dict[str, list[dict[str, Any]]] = {}
    code = 0
    for path in paths:
        try:
            found[path] = drivers_of(Path(path), devices)
        except BROKEN as error:
            text = str(error) or type(error).__name__
            print(f"tokd-diag: {path}: not an ELF program or library: {text}", file=sys.stderr)
            code = 1
            continue
        if not found[path]:
            print(
                f"tokd-diag: {path}: no DPDK driver in it, nor in what it loads; link one, or "
                "name librte_net_*.so",
                file=sys.stderr,
            )
            code = 1
    if as_json:
        return json.dumps({"files": found}, indent=2) + "\n", code
    lines = (line for path, drivers in found.items() for line in _lines(path, drivers))
    return "".join(f"{line}\n" for line in lines), code
