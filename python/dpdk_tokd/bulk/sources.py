# SPDX-License-Identifier: BSD-3-Clause
"""Files of text, cut into blocks of documents.

The blocks depend on the files and on a `Source` alone. So they are the same when a run is resumed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal, TypeAlias, cast

from .._native import libtok
from .errors import BulkError, pyarrow

Kind: TypeAlias = Literal["text", "json", "parquet"]
Piece: TypeAlias = Literal["", "open", "last"]

BLOCK = 4 << 20  # bytes of text, about
_JSON = (".json", ".jsonl", ".ndjson")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


@dataclass(frozen=True, slots=True)
class Position:
    """In file number `file`: bytes of (unpacked) text or rows of Parquet before the next block."""

    file: int
    offset: int


@dataclass(frozen=True, slots=True)
class Block:
    """Whole documents, or a piece of one that is longer than a block (`piece`).

    size: bytes of the input file, for progress. after: where the next block begins.
    """

    path: str
    kind: Kind
    data: Any  # bytes; a pyarrow.Array of strings
    offset: int
    size: int
    after: Position
    piece: Piece = ""


@dataclass(frozen=True, slots=True)
class Source:
    """What is a document.

    kind: of all files; None: by the ending of each name. field: of JSON or column of Parquet.
    separator: ends a document of a text file; None: each file is one.
    """

    kind: Kind | None
    field: str
    separator: bytes | None

    def kind_of(self, path: str) -> Kind:
        if self.kind is not None:
            return self.kind
        name = path.lower()
        for ending in _COMPRESSED:
            name = name.removesuffix(ending)
        if name.endswith(_JSON):
            return "json"
        return "parquet" if name.endswith(".parquet") else "text"

    def blocks(self, paths: Sequence[str], at: Position) -> Iterator[Block]:
        """Those of `paths` from `at` on."""
        for i, path in enumerate(paths[at.file :], at.file):
            offset = at.offset if i == at.file else 0
            kind = self.kind_of(path)
            try:
                if kind == "parquet":
                    yield from self._rows(path, i, offset)
                else:
                    yield from self._cut(path, kind, i, offset)
            except (OSError, EOFError, gzip.BadGzipFile) as error:
                reason = getattr(error, "strerror", None) or error
                raise BulkError(f"{path}: {reason}") from None

    def _cut(self, path: str, kind: Kind, i: int, offset: int) -> Iterator[Block]:
        separator = b"\n" if kind == "json" else self.separator
        keep = len(separator) - 1 if separator else 0  # bytes that may begin a separator
        rest, within, found = bytearray(), False, -1
        with open(path, "rb") as raw:
            file = _unpacked(path, raw)
            file.seek(offset) if file is raw else _skip(file, offset)
            told, at = raw.tell(), offset

            def block(n: int, piece: Piece, end: bool = False) -> Block:
                nonlocal told, at
                data = bytes(memoryview(rest)[:n])
                del rest[:n]
                begun, at = at, at + n
                size = n if file is raw else raw.tell() - told
                told = raw.tell()
                after = Position(i + 1, 0) if end else Position(i, at)
                return Block(path, kind, data, begun, size, after, piece)

            while more := file.read(BLOCK):
                start = max(0, len(rest) - keep)
                rest += more
                if separator and within and (found := rest.find(separator, start)) >= 0:
                    yield block(found + len(separator), "last")
                    within, start = False, 0
                if separator and not within and (end := _last(rest, separator, start)) > 0:
                    yield block(end, "")
                if kind == "text" and len(rest) > BLOCK + keep:
                    yield block(len(rest) - keep, "open")
                    within = True
            if rest or within or (offset == at == 0 and separator is None):
                yield block(len(rest), "last" if within else "", end=True)

    def _rows(self, path: str, i: int, offset: int) -> Iterator[Block]:
        pa = pyarrow("parquet", path)
        try:
            with pa.parquet.ParquetFile(path, memory_map=True) as file:
                schema, meta = file.schema_arrow, file.metadata
                index = schema.get_field_index(self.field)
                if index < 0:
                    raise BulkError(
                        f"{path}: no column {self.field!r} (there are: "
                        f"{', '.join(map(repr, schema.names))}): give --field"
                    )
                kind = schema.field(index).type
                if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                    raise BulkError(f"{path}: column {self.field!r} is {kind}, not string")
                size = os.path.getsize(path)
                row = 0
                for g in range(meta.num_row_groups):
                    n = meta.row_group(g).num_rows
                    if row + n <= offset:
                        row += n
                        continue
                    group = meta.row_group(g)
                    rows = max(1, min(n, n * BLOCK // max(1, group.total_byte_size)))
                    for batch in file.iter_batches(rows, row_groups=[g], columns=[self.field]):
                        begun, row = row, row + len(batch)
                        if row <= offset:
                            continue
                        yield Block(
                            path, "parquet", batch.column(0), begun,
                            size * row // meta.num_rows - size * begun // meta.num_rows,
                            Position(i, row),
                        )  # fmt: skip
        except pa.ArrowException as error:
            raise BulkError(f"{path}: {error}") from None


def _last(text: bytearray, separator: bytes, start: int) -> int:
    """Where the last document of `text` that is complete ends; 0: none. None does before `start`.

    Separators are found from the left: "\n\n\n" has one "\n\n", the first.
    """
    if len(separator) == 1:
        return text.rfind(separator, start) + 1
    return len(text) - len(text.split(separator)[-1])


def _unpacked(path: str, raw: IO[bytes]) -> IO[bytes]:
    name = _COMPRESSED.get(os.path.splitext(path)[1])
    if name is None:
        return raw
    if name == "gzip":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    return cast(IO[bytes], pyarrow("lib", path).CompressedInputStream(raw, name))


def _skip(file: IO[bytes], n: int) -> int:
    """Read past `n` bytes; the number of lines that end in them is returned."""
    lines = 0
    while n > 0 and (got := file.read(min(n, BLOCK))):
        lines += got.count(b"\n")
        n -= len(got)
    return lines


# ---- in the workers ----


def texts_of(block: Block, source: Source) -> Sequence[str | bytes]:
    """The documents of a block. BulkError names the line or row."""
    if block.kind == "parquet":
        if block.data.null_count:
            i = block.data.is_null().to_pylist().index(True)
            raise BulkError(f"{place(block, i)}: no text (null)")
        texts: list[bytes] = block.data.cast("large_binary").to_pylist()
        return texts
    if block.kind == "json":
        return _strings(block, source.field)
    if source.separator is None:
        return [block.data]
    texts = block.data.split(source.separator)
    return texts if texts[-1] else texts[:-1]


def _strings(block: Block, field: str) -> Sequence[str | bytes]:
    """By libtok's parser of JSON, without the GIL; by Python's what that one does not take."""
    found = libtok.json_lines(block.data, field)
    texts = [text for text in found if text is not None]
    if len(texts) == len(found):
        return texts
    return [
        _field(block, i, line, field) if text is None else text
        for i, (text, line) in enumerate(zip(found, _lines(block.data), strict=True))
    ]


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line and not line.isspace()]


def _field(block: Block, i: int, line: bytes, field: str) -> str:
    try:
        value: Any = json.loads(line)
    except ValueError as error:
        raise BulkError(f"{place(block, i)}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BulkError(f"{place(block, i)}: not a JSON object: each line has to be one")
    text = value.get(field)
    if isinstance(text, str):
        return text
    if field in value:
        raise BulkError(f"{place(block, i)}: field {field!r} is not a string")
    names = ", ".join(map(repr, [*value][:8]))
    raise BulkError(f"{place(block, i)}: no field {field!r} (there are: {names}): give --field")


def place(block: Block, i: int) -> str:
    """Where document i of a block is, for the user."""
    if block.kind == "parquet":
        return f"{block.path}: row {block.offset + i}"
    if block.kind == "text":
        return f"{block.path}: document {i} from byte {block.offset}"
    lines = block.data.split(b"\n")
    at = [k for k, line in enumerate(lines, 1) if line and not line.isspace()][i]
    with open(block.path, "rb") as raw:
        return f"{block.path}: line {_skip(_unpacked(block.path, raw), block.offset) + at}"
