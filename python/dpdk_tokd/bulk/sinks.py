# SPDX-License-Identifier: BSD-3-Clause
"""Files of ids, so written that a run which was killed at any time can be resumed.

A sink's state says what of its files is complete and on the disk. `open` removes what came later.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO, Any, Literal, Protocol, TypeAlias

import numpy as np

from ..tokenizer.batch import LENGTH_MAX, Batch, Ids
from .errors import BulkError, pyarrow

Lengths: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
To: TypeAlias = Literal["bin", "parquet", "arrow"]
State: TypeAlias = dict[str, int]

PART_IDS = 1 << 26  # of a part, about
_PIECE = 1 << 20  # numbers of the index in memory


class Sink(Protocol):
    def holds(self, path: Path) -> bool:
        """Whether this absolute path is one of its files, or may become one."""

    def open(self, state: State) -> None:
        """Continue after `state`; {}: begin. Nobody else has it open: `locked`."""

    def add(self, ids: Ids, lengths: Lengths) -> None:
        """Ids of documents, and how many each has. Without lengths: the first ids of a document,
        which the length of the next one counts."""

    def save(self, due: bool) -> State | None:
        """Make all that was added durable, if it is `due` or a part is full. None: it is not."""

    def finish(self) -> None:
        """Give the files their names. Called again if it was interrupted."""

    def clean(self) -> None:
        """Remove what was needed to continue, once the manifest says that all is done."""

    def close(self) -> None:
        """What is not saved is lost."""


def sink_of(to: To, out: Path, n_ids: int) -> Sink:
    return BinSink(out, n_ids) if to == "bin" else PartSink(out, to)


def durable(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())


def rename(old: Path, new: Path) -> None:
    """Durably, `old` being so already."""
    os.replace(old, new)
    folder = os.open(new.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that the file `path` stands for: it is removed at the end. BulkError: another
    holds it."""
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BulkError(
                    f"{path}: another process writes this output: wait for that one, or give "
                    "another output"
                ) from None
            if not _is(file, path):
                continue  # another one that has ended removed it after it was opened here
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _continued(path: Path, size: int) -> IO[bytes]:
    """Open `path` to write after its first `size` bytes."""
    file = path.open("ab")
    if file.tell() < size:
        raise BulkError(
            f"{path}: has {file.tell()} bytes, {size} were written: remove the manifest to begin "
            "again"
        )
    file.truncate(size)
    return file


class BinSink:
    """OUT.bin: all ids, one after the other; OUT.idx: where each document is.

    They are an indexed dataset of Megatron-LM (version 1), as its tools/preprocess_data.py writes
    it: a document is one sequence, an empty one has none. Ids are uint16 where the vocabulary has
    fewer than 65,500, else int32. So the .bin alone is what nanoGPT and others read.
    """

    def __init__(self, out: Path, n_ids: int) -> None:
        self._dtype: np.dtype[Any] = np.dtype(np.uint16 if n_ids < 65500 else np.int32)
        self._code = 8 if n_ids < 65500 else 4
        self._bin, self._idx = out.with_name(out.name + ".bin"), out.with_name(out.name + ".idx")
        self._bin_part = out.with_name(out.name + ".bin.part")
        self._idx_part = out.with_name(out.name + ".idx.part")
        self._lengths_part = out.with_name(out.name + ".lengths.part")  # int32
        self._files = contextlib.ExitStack()

    def holds(self, path: Path) -> bool:
        return path in (self._bin.resolve(), self._idx.resolve())

    def open(self, state: State) -> None:
        self._ids, self._documents = state.get("ids", 0), state.get("documents", 0)
        if state and not self._bin_part.exists() and self._bin.exists():
            self._bin.rename(self._bin_part)  # interrupted in finish()
        enter = self._files.enter_context
        self._bin_file = enter(_continued(self._bin_part, self._ids * self._dtype.itemsize))
        self._lengths_file = enter(_continued(self._lengths_part, self._documents * 4))

    def add(self, ids: Ids, lengths: Lengths) -> None:
        if lengths.max(initial=0) > LENGTH_MAX:
            raise BulkError(
                f"a document of {lengths.max()} ids: the index holds at most {LENGTH_MAX}: "
                "give --separator"
            )
        self._bin_file.write(ids.astype(self._dtype).data)
        self._lengths_file.write(lengths.astype(np.int32).data)
        self._ids += len(ids)
        self._documents += len(lengths)

    def save(self, due: bool) -> State | None:
        if not due:
            return None
        durable(self._bin_file)
        durable(self._lengths_file)
        return {"ids": self._ids, "documents": self._documents}

    def finish(self) -> None:
        with open(self._idx_part, "wb") as file:
            self._write_index(file)
            durable(file)
        rename(self._idx_part, self._idx)
        rename(self._bin_part, self._bin)

    def clean(self) -> None:
        self._lengths_part.unlink()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a full disk has been told
            self._files.close()

    def _write_index(self, file: IO[bytes]) -> None:
        """The layout is that of megatron/core/datasets/indexed_dataset.py."""

        def pieces() -> Any:
            with open(self._lengths_part, "rb") as lengths:
                while len(piece := np.fromfile(lengths, np.int32, _PIECE)):
                    yield piece

        sequences = sum(int(np.count_nonzero(p)) for p in pieces())
        file.write(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, self._code, sequences, self._documents + 1)
        )
        for piece in pieces():
            file.write(piece[piece > 0].data)
        at = 0
        for piece in pieces():  # bytes in the .bin before each sequence
            ends = at + np.cumsum(piece[piece > 0], dtype=np.int64) * self._dtype.itemsize
            file.write(np.concatenate(([at], ends), dtype=np.int64)[:-1].data)
            at = int(ends[-1]) if len(ends) else at
        file.write(bytes(8))
        at = 0
        for piece in pieces():  # sequences up to the end of each document
            file.write((at + np.cumsum(piece > 0, dtype=np.int64)).data)
            at += int(np.count_nonzero(piece))


class PartSink:
    """OUT/part-00000.parquet or .arrow (Arrow's stream format) and so on.

    One column, `input_ids`, a list of int32, a row for each document; a part has about 2**26 ids.
    """

    def __init__(self, out: Path, to: Literal["parquet", "arrow"]) -> None:
        self._pa = pyarrow("parquet", f"--to {to}")
        self._schema = self._pa.schema([("input_ids", self._pa.list_(self._pa.int32()))])
        self._out, self._to = out, to
        self._open_ids: list[Ids] = []
        self._writer: Any = None
        self._file: Any = None

    def _path(self, part: int) -> Path:
        return self._out / f"part-{part:05}.{self._to}"

    def holds(self, path: Path) -> bool:
        return path.parent == self._out.resolve()

    def open(self, state: State) -> None:
        self._out.mkdir(exist_ok=True)
        self._parts, self._ids = state.get("parts", 0), 0
        for part in count(self._parts):
            if not self._path(part).exists():
                break
            self._path(part).unlink()  # of a run that was killed before it noted this part

    def add(self, ids: Ids, lengths: Lengths) -> None:
        self._open_ids.append(ids)
        if len(lengths) == 0:
            return
        ids, self._open_ids = np.concatenate(self._open_ids), []
        pa = self._pa
        if self._writer is None:
            self._file = self._path(self._parts).with_suffix(".part").open("wb")
            make = pa.parquet.ParquetWriter if self._to == "parquet" else pa.ipc.new_stream
            self._writer = make(self._file, self._schema)
        rows = Batch(ids, np.concatenate(([0], np.cumsum(lengths)))).to_arrow()
        self._writer.write_batch(pa.record_batch([rows], self._schema))
        self._ids += len(ids)

    def save(self, due: bool) -> State | None:
        return self._close() if self._ids >= PART_IDS else None

    def _close(self) -> State:
        if self._writer is not None:
            self._writer.close()
            durable(self._file)
            self._file.close()
            path = self._path(self._parts)
            rename(path.with_suffix(".part"), path)
            self._writer, self._ids = None, 0
            self._parts += 1
        return {"parts": self._parts}

    def finish(self) -> None:
        self._close()

    def clean(self) -> None:
        pass

    def close(self) -> None:
        pass
