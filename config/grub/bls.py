# SPDX-License-Identifier: BSD-3-Clause
"""RHEL, Fedora and relatives: grubby changes every boot entry, and the default for new kernels."""

from __future__ import annotations

from host.journal import Entry, pack, replace, unpack
from host.report import Refusal
from host.root import Root

from grub.words import ours, owned

ENTRIES = "/boot/loader/entries"
KEPT = (
    "/etc/kernel/cmdline",
    "/etc/default/grub",
)  # grubby changes these too, for future kernels


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


def prove(root: Root, words: list[str]) -> None:
    """Raises Refusal if grubby cannot set these words."""
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


def others(root: Root, keys: tuple[str, ...]) -> list[str]:
    """Words with these keys in boot entries, except those of tokd-host."""
    known = (root.journal.get(ENTRIES) or {}).get("words", [])
    return list(
        dict.fromkeys(
            word
            for e in entries(root)
            for word in ours(options(root, e), keys)
            if word not in known
        )
    )


def apply(root: Root, words: list[str]) -> None:
    """One call changes each entry at once, even if the machine crashes. grubby does not add a word
    whose key exists, so it removes the old ones itself."""
    root.touched.add(ENTRIES)
    known = root.journal.get(ENTRIES)
    if known and any(word.partition("=")[0] not in owned(words) for word in known["words"]):
        give_back(root, known)  # an earlier plan had cores or pages, this one has not
        if not root.dry_run:
            root.journal.drop(ENTRIES)
    if is_applied(root, words):
        return
    now = {name: root.path(name).read_bytes() for name in _changed(root)}
    if not root.dry_run:
        _remember(root, words)
        root.on_undo(ENTRIES, lambda: _undo(root, now))
    root.run(
        "grubby",
        "--update-kernel=ALL",
        f"--remove-args={' '.join(owned(words))}",
        f"--args={' '.join(words)}",
        in_root=True,
    )
    for name, held in now.items():
        if root.path(name).read_bytes() != held:
            print(f"      grubby has changed {name}")
    if not root.dry_run:
        _wrote(root)


def _changed(root: Root) -> list[str]:
    """Every file that grubby writes, with links resolved."""
    return [root.resolved(name) for name in (*entries(root), *KEPT) if root.exists(name)]


def _remember(root: Root, words: list[str]) -> None:
    """Store what each file held before us. Files that are new, or were changed after our write, are
    not stored: revert lets grubby remove our words from them."""
    known = root.journal.get(ENTRIES)
    if known is None:
        files = {name: {"held": pack(root.path(name).read_bytes())} for name in _changed(root)}
        root.journal.add({"name": ENTRIES, "kind": "words", "words": words, "files": files})
    else:
        known["words"] = list(dict.fromkeys((*known["words"], *words)))
        known["files"] = {
            name: {"held": f["held"]}
            for name, f in known["files"].items()
            if _is_ours(root, name, f)
        }
        root.journal.keep(root.journal.entries)


def _undo(root: Root, held: dict[str, bytes]) -> None:
    for name, data in held.items():
        replace(root.path(name), data)
    _wrote(root)


def _wrote(root: Root) -> None:
    known = root.journal.get(ENTRIES)
    assert known is not None  # _remember() made it
    for name, file in known["files"].items():
        if root.exists(name):
            file["wrote"] = pack(root.path(name).read_bytes())
    root.journal.keep(root.journal.entries)


def _is_ours(root: Root, name: str, file: Entry) -> bool:
    """The file holds what grubby wrote for us, or its original content."""
    if not root.exists(name):
        return False
    return root.path(name).read_bytes() in (unpack(file["held"]), unpack(file.get("wrote", "")))


def give_back(root: Root, entry: Entry) -> None:
    """Restores the bytes of files that are as we left them. From edited files, and from those of
    newer kernels, only our words are removed. A deleted entry stays deleted: its kernel is gone."""
    same = [name for name, file in entry["files"].items() if _is_ours(root, name, file)]
    rest = [
        n
        for n in _changed(root)
        if n not in same and any(word in root.read(n) for word in entry["words"])
    ]
    if rest:
        print(
            f"mend  {' '.join(rest)}: made or changed since; only tokd-host's words are taken out"
        )
        root.run(
            "grubby",
            "--update-kernel=ALL",
            f"--remove-args={' '.join(entry['words'])}",
            in_root=True,
        )
    for name in same:
        held = unpack(entry["files"][name]["held"])
        if root.path(name).read_bytes() != held:
            print(f"restore {name}")
            if not root.dry_run:
                replace(root.path(name), held)
