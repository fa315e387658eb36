# SPDX-License-Identifier: BSD-3-Clause
"""The user's own texts (--corpus FILE) instead of those of tools/fetch-corpus."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpdk_tokd.fetch.packages import sha256

from bench.sweep.reader import BoxError
from bench.texts import fetch_corpus

PARAMETER = "corpus"  # of tasks that use them
LEAST, MOST = 100_000, 256 << 20  # bytes; with less no task has enough texts
NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
TAKEN = (*fetch_corpus.CORPORA, "mixed")


@dataclass(frozen=True)
class Corpus:
    name: str
    path: Path
    size: int  # bytes
    sha256: str

    def recorded(self) -> dict[str, Any]:
        return {"name": self.name, "bytes": self.size, "sha256": self.sha256}


def _read(path: Path) -> Corpus:
    def error(what: str) -> BoxError:
        return BoxError(f"--corpus {path}: {what}")

    name = path.stem
    if not NAME.fullmatch(name):
        raise error(
            f"tests are named after it, {name!r}: name the file with 1 to 40 of A-Z, a-z, 0-9, "
            "'.', '_' and '-'"
        )
    if name in TAKEN:
        raise error(f"tools/fetch-corpus has a corpus {name!r}: rename the file")
    try:
        if not path.is_file():
            raise error("not a file" if path.exists() else "there is no such file")
        size = path.stat().st_size
        if not LEAST <= size <= MOST:
            raise error(f"{size:,} bytes: give a file of {LEAST:,} to {MOST:,}")
        data = path.read_bytes()
        data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise error(f"byte {wrong.start:,} is not UTF-8: convert it, as with iconv") from None
    except OSError as wrong:
        raise error(f"{wrong.strerror}") from None
    return Corpus(name, path.resolve(), len(data), sha256(data))


def read(paths: Iterable[Path]) -> list[Corpus]:
    """Raises BoxError with the remedy if a file cannot be a corpus."""
    found: dict[str, Corpus] = {}
    for path in paths:
        one = _read(path)
        if one.name in found:
            raise BoxError(f"--corpus {path}: same name as {found[one.name].path}: rename it")
        found[one.name] = one
    return list(found.values())


def notes(summary: dict[str, Any]) -> list[str]:
    """Lines that describe them."""
    return [
        f"Corpus {one['name']}: the user's own file, {one['bytes']:,} bytes, SHA-256 "
        f"{one['sha256']}."
        for one in summary.get("corpora", [])
    ]
