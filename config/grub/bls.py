# SPDX-License-Identifier: BSD-3-Clause
"""RHEL, Fedora and what descends from them: grubby changes every boot entry, and the default of new kernels."""

from grub.words import ours, owned
from host.report import Refusal
from host.root import Root

ENTRIES = "/boot/loader/entries"
KEPT = ("/etc/kernel/cmdline", "/etc/default/grub", "/boot/grub2/grubenv")


def is_here(root: Root) -> bool:
    return bool(root.program("grubby")) and bool(entries(root))


def entries(root: Root) -> list[str]:
    return [f"{ENTRIES}/{name}" for name in root.names(ENTRIES) if name.endswith(".conf")]


def options(root: Root, entry: str) -> str:
    for line in root.read(entry).splitlines():
        key, _, value = line.partition(" ")
        if key == "options":
            return value
    return ""


def is_applied(root: Root, words: list[str]) -> bool:
    return all(ours(options(root, entry), owned(words)) == words for entry in entries(root))


def apply(root: Root, words: list[str]) -> None:
    """In one call, so that a crash leaves an entry as it was or as it should be. grubby itself takes the
    old words out, since it adds none whose key is there."""
    if is_applied(root, words):
        return
    keys = [word.partition("=")[0] for word in words]
    if len(keys) != len(set(keys)):
        raise Refusal(
            f"{' '.join(words)}: grubby keeps one word of each key, so only one size of huge pages can "
            "be had at boot here; give tokd-host one size, and reserve the other at run time"
        )
    if any("$kernelopts" in options(root, entry) for entry in entries(root)):
        raise Refusal(
            f"{ENTRIES}: entries take $kernelopts from grubenv, as RHEL 8 before 8.2 does; add to it, by "
            f"grub2-editenv - set kernelopts=...: {' '.join(words)}"
        )
    for name in (*entries(root), *(k for k in KEPT if root.exists(k))):
        root.remember(name)
    root.run(
        "grubby",
        "--update-kernel=ALL",
        f"--remove-args={' '.join(owned(words))}",
        f"--args={' '.join(words)}",
        in_root=True,
    )
