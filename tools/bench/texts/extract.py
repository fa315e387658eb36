# SPDX-License-Identifier: BSD-3-Clause
"""Plain text from files of packages."""

import ast
import gzip
import html
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path


def decode(data: bytes) -> str:
    """The text of `data`; empty if it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def read(path: Path) -> str:
    data = path.read_bytes()
    return decode(gzip.decompress(data) if path.suffix == ".gz" else data)


def from_html(text: str) -> str:
    """Roughly the visible text: blocks become paragraphs, tags are removed."""
    text = re.sub(r"(?is)<(script|style|head)\b.*?</\1>", "", text)
    text = re.sub(r"(?i)<(br|/p|/div|/li|/h\d|/pre|/tr|/dt|/dd)\b[^>]*>", "\n", text)
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    text = re.sub(r"[ \t]+", " ", text)
    return re.sub(r"\n\s*\n+", "\n\n", text).strip() + "\n"


def from_po(text: str) -> str:
    """The translations of a gettext catalogue, one per paragraph."""
    found = re.findall(r'^msgstr(?:\[\d+\])? ("(?:.*)"(?:\n".*")*)', text, re.MULTILINE)
    # Adjacent string literals, with C's escapes: Python reads them the same way.
    strings = (ast.literal_eval("(" + literals.replace("\n", " ") + ")") for literals in found)
    return "\n\n".join(s for s in strings if s and "Content-Type:" not in s) + "\n"


def tar_members(path: Path, suffix: str) -> Iterator[tuple[str, str]]:
    """Name and text of the files with a suffix inside a tar archive."""
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(suffix):
                file = tar.extractfile(member)
                if file is not None:
                    yield member.name, decode(file.read())
