# SPDX-License-Identifier: BSD-3-Clause
"""Debian, Ubuntu and relatives: a file of our own under /etc/default/grub.d. The main file is not
changed. grub-mkconfig sources the folder's files after it, by name. Ours comes last: it removes
our words from what the others set, and adds them once.
"""

from __future__ import annotations

from host.root import Root

from grub.words import ours, owned

NAME = "/etc/default/grub.d/zz-dpdk-tokd.cfg"
GRUB_CFG = "/boot/grub/grub.cfg"

TEXT = """\
# Written by tokd-host; tokd-host revert removes it.
# Removes other settings of these words: the kernel would add some up and reject others.
tokd_without() {{
\tfor tokd_word in $1; do
\t\tcase $tokd_word in
\t\t{pattern}) ;;
\t\t*) printf '%s ' "$tokd_word" ;;
\t\tesac
\tdone
}}
set -f # a word may hold an asterisk
GRUB_CMDLINE_LINUX_DEFAULT="$(tokd_without "${{GRUB_CMDLINE_LINUX_DEFAULT-}}" | sed 's/ $//')"
GRUB_CMDLINE_LINUX="$(tokd_without "${{GRUB_CMDLINE_LINUX-}}"){words}"
set +f
"""


def is_here(root: Root) -> bool:
    """Debian's grub-mkconfig reads the folder, the original GRUB does not."""
    program = root.program("grub-mkconfig")
    return root.exists("/etc/default/grub") and "default/grub.d" in (
        root.read(program) if program else ""
    )


def _names(root: Root) -> list[str]:
    folder = NAME.rpartition("/")[0]
    return [f"{folder}/{name}" for name in root.names(folder) if name.endswith(".cfg")]


def others(root: Root, keys: tuple[str, ...]) -> list[str]:
    """Words with these keys that other files set, and our file removes."""
    return _said(root, ["/etc/default/grub", *(name for name in _names(root) if name < NAME)], keys)


def behind(root: Root, keys: tuple[str, ...]) -> list[str]:
    """The same in files that are read after ours, which cannot remove them."""
    return _said(root, [name for name in _names(root) if name > NAME], keys)


def _said(root: Root, names: list[str], keys: tuple[str, ...]) -> list[str]:
    found = []
    for name in names:
        for line in root.read(name).splitlines():
            if line.lstrip().startswith("GRUB_CMDLINE_LINUX"):
                said = line.partition("=")[2].replace('"', " ").replace("'", " ")
                found += [f"{word} ({name})" for word in ours(said, keys)]
    return found


def text(words: list[str]) -> str:
    return TEXT.format(pattern="|".join(f"{key}=*" for key in owned(words)), words=" ".join(words))


def is_applied(root: Root, words: list[str]) -> bool:
    return root.read(NAME) == text(words) and _has_all(root.read(GRUB_CFG), words)


def apply(root: Root, words: list[str]) -> None:
    """Also runs update-grub if GRUB's own file has lost a word meanwhile."""
    if root.write(NAME, text(words)) or not _has_all(root.read(GRUB_CFG), words):
        update(root)


def _has_all(config: str, words: list[str]) -> bool:
    """Does each line that boots this system have all words? True also without a file or such lines.
    Other systems and memory tests have sections of their own."""
    lines, section = [], ""
    for line in config.splitlines():
        part = line.split()
        if part[:2] in (["###", "BEGIN"], ["###", "END"]):
            section = part[2] if part[1] == "BEGIN" and len(part) > 2 else ""
        elif part[:1] == ["linux"] and section.startswith("/etc/grub.d/10_linux"):
            lines.append(part)
    return all(word in line for line in lines for word in words if "recovery" not in line)


def update(root: Root) -> None:
    """Rebuild the file that GRUB reads."""
    if root.program("update-grub"):
        root.run("update-grub")
    else:
        root.run("grub-mkconfig", "-o", GRUB_CFG)
