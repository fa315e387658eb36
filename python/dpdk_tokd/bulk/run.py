# SPDX-License-Identifier: BSD-3-Clause
"""Bulk encoding: blocks of documents go to threads, their ids in order to a sink.

Threads, because libtok encodes without the GIL; to hand blocks and ids to processes and back took
as much CPU time as to encode them. The manifest, OUT.manifest.json, says how far the output is
complete; it changes only once the output is on the disk.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args

import numpy as np

from .._arguments import check_number, check_path, check_several, check_type, check_word
from .._cpus import cpus
from ..tokenizer import Stream, Tokenizer
from ..tokenizer.batch import Ids, TokensInText
from ..tokenizer.info import file_state
from .errors import BulkError
from .sinks import Lengths, Sink, To, durable, locked, rename, sink_of
from .sources import Block, Kind, Position, Source, place, texts_of

VERSION = 2  # of manifest and blocks
JOBS_MAX = 1024
SAVE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Totals:
    """What was done. size: bytes of the input files; of `total` bytes. done: all of it."""

    documents: int = 0
    ids: int = 0
    size: int = 0
    total: int = 0
    done: bool = False


class _Job(NamedTuple):
    """What all threads need to know."""

    tokenizer: Tokenizer
    source: Source
    append: int | None
    options: dict[str, Any]  # of encode_batch and stream


class _Encoded(NamedTuple):
    ids: Ids
    lengths: Lengths


def encode_files(
    vocab: str,
    inputs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    to: To = "bin",
    kind: Kind | None = None,
    field: str | None = None,
    separator: str | None = None,
    append: str | int | None = None,
    tokens_in_text: TokensInText = "not-special",
    jobs: int | None = None,
    progress: Callable[[Totals], None] | None = None,
    **options: Any,
) -> Totals:
    """Encode the documents of files, in order, to `out`.

    vocab: as `Tokenizer.load` takes it. options: of `Tokenizer.stream`, such as add_special_tokens.
    to: "bin": OUT.bin and OUT.idx, as Megatron-LM reads them; "parquet", "arrow": parts in the
    folder OUT. kind: "text", "json" (JSON lines) or "parquet"; None: by the ending of each name.
    field: of JSON lines, or column of Parquet; None: "text". separator: ends a document of a text
    file; None: each file is one document. append: a token, or an id, put after each document that
    is not empty. tokens_in_text: special tokens stay text unless it is "all". jobs: threads; None:
    one per CPU, by affinity and the quota of the control group. progress: called after each block.

    If it is interrupted, the same call continues. The result is the same, byte for byte.
    BulkError names the file, line and remedy; ValueError: the vocabulary cannot be loaded, or an
    argument is wrong or would be ignored.
    """
    check_word("to", to, get_args(To))
    if kind is not None:
        check_word("kind", kind, get_args(Kind))
    check_path("vocab", vocab)
    check_several("inputs", inputs, "paths")
    check_word("tokens_in_text", tokens_in_text, get_args(TokensInText))
    for name, value in (("field", field), ("separator", separator)):
        check_type(name, value, (str, NoneType), "a str or None")
    if jobs is not None:
        check_number("jobs", jobs, JOBS_MAX, least=1)
    options["tokens_in_text"] = tokens_in_text
    tokenizer = Tokenizer.load(vocab)
    source = Source(kind, "text" if field is None else field, _separator(separator))
    job = _Job(tokenizer, source, _id_of(tokenizer, append), options)
    paths = [check_path(f"inputs[{i}]", path) for i, path in enumerate(inputs)]
    sizes = [_size(path) for path in paths]
    states = [[os.path.abspath(path), *file_state(path)[1:]] for path in paths]
    if separator is not None and "text" not in map(source.kind_of, paths):
        raise BulkError(f"separator {separator!r}: is for files of text, and there are none")
    if field is not None and {"text"} == set(map(source.kind_of, paths)):
        raise BulkError(f"field {field!r}: is for JSON lines and Parquet, and there are none")
    target = _target(out)
    begun = {
        "version": VERSION,
        "vocab": f"{tokenizer.checksum:08x}",
        "inputs": states,  # size and time of last change
        "to": to,
        "kind": kind,
        "field": source.field,
        "separator": separator,
        "append": job.append,
        "options": options,
    }
    manifest = _Manifest(target, begun, sum(sizes))
    if manifest.totals.done:  # for good: it needs no lock, and perhaps the folder is read-only
        return manifest.totals
    try:
        with locked(target.with_name(target.name + ".manifest.json.lock")):
            manifest = _Manifest(target, begun, sum(sizes))  # another may just have ended
            if manifest.totals.done:
                return manifest.totals
            sink = sink_of(to, target, tokenizer.vocab_size)
            for path in paths:
                if sink.holds(Path(path).resolve()):
                    raise BulkError(
                        f"{path}: output {target} would replace it: give another output"
                    )
            try:
                sink.open(manifest.state)
                run = _Run(job, sink, manifest, progress or (lambda _: None))
                blocks = source.blocks(paths, manifest.at)
                return run.all(blocks, jobs or cpus())
            finally:
                sink.close()
    except OSError as error:
        raise BulkError(
            f"{error.filename or out}: {error.strerror}: once that is mended, the same command "
            "continues"
        ) from None


def _separator(text: str | None) -> bytes | None:
    if text == "":
        raise BulkError("separator: empty: give text, or nothing for a document per file")
    try:
        return text if text is None else text.encode()
    except UnicodeEncodeError as error:
        raise BulkError(f"separator {text!r}: {error.reason}: give whole characters") from None


def _target(out: str | os.PathLike[str]) -> Path:
    path = Path(check_path("out", out))
    if path.name in ("", ".."):
        raise BulkError(f"output {os.fspath(out)!r}: no name: give FOLDER/NAME")
    if not path.parent.is_dir():
        raise BulkError(f"output {path}: {path.parent} is no folder: make it, or give another")
    return path


def _size(path: str) -> int:
    try:
        if os.path.isfile(path):
            return os.path.getsize(path)
        os.stat(path)
    except OSError as error:
        raise BulkError(f"{path}: {error.strerror}") from None
    raise BulkError(f"{path}: not a regular file: give files, as in FOLDER/*.jsonl")


def _id_of(tokenizer: Tokenizer, token: str | bytes | int | None) -> int | None:
    """The id that ends documents."""
    if token is None:
        return None
    if isinstance(token, int):
        return check_number("append", token, tokenizer.vocab_size - 1)
    check_type("append", token, (str, bytes), "a token as str or bytes, or an id")
    if (id := tokenizer.token_to_id(token)) is not None:
        return id
    known = ", ".join([*tokenizer.special_tokens][:8]) or "none"
    raise BulkError(
        f"{token!r} is no token of {tokenizer.info.name} (special tokens: {known}; ids are below "
        f"{tokenizer.vocab_size})"
    )


class _Manifest:
    """How the run was begun, and how far its output is complete."""

    def __init__(self, out: Path, begun: dict[str, Any], total: int) -> None:
        self.path = out.with_name(out.name + ".manifest.json")
        self._begun = begun
        self.at, self.state, self.totals = Position(0, 0), dict[str, int](), Totals(total=total)
        try:
            old = json.loads(self.path.read_text())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise BulkError(f"{self.path}: {error}: remove it to begin again") from None
        try:
            for key, value in begun.items():
                if old["begun"].get(key) != value:
                    raise BulkError(
                        f"{self.path}: was begun with other input or options ({key}): give the "
                        "same again, or another output, or remove this file to begin again"
                    )
            self.at, self.state = Position(**old["at"]), old["state"]
            self.totals = Totals(**old["totals"])
            numbers = (*old["at"].values(), *old["state"].values(), *old["totals"].values())
            if not all(isinstance(number, int) and number >= 0 for number in numbers):
                raise TypeError
        except (AttributeError, KeyError, TypeError):
            raise BulkError(
                f"{self.path}: is not a manifest of a run, or is damaged: give another output, or "
                "remove this file to begin again"
            ) from None

    def write(self, at: Position, state: dict[str, int], totals: Totals) -> None:
        now = {"begun": self._begun, "at": asdict(at), "state": state, "totals": asdict(totals)}
        part = self.path.with_name(self.path.name + ".part")
        with open(part, "w") as file:
            file.write(json.dumps(now, indent=1) + "\n")
            durable(file)
        rename(part, self.path)


class _Run:
    def __init__(
        self, job: _Job, sink: Sink, manifest: _Manifest, progress: Callable[[Totals], None]
    ) -> None:
        self.totals = manifest.totals
        self._job, self._sink, self._manifest, self._progress = job, sink, manifest, progress
        self._saved = time.monotonic()
        self._stream: Stream | None = None  # of an open document
        self._length = 0  # its ids

    def all(self, blocks: Iterable[Block], jobs: int) -> Totals:
        """Encode `blocks`, a few ahead of the one that is written."""
        end = self._manifest.at
        waiting: deque[tuple[Block, Future[_Encoded]]] = deque()
        pool = ThreadPoolExecutor(jobs)
        try:
            for block in blocks:
                end = block.after
                if block.piece:
                    self._take(waiting, 0)
                    self._piece(block)
                    continue
                waiting.append((block, pool.submit(_encode, self._job, block)))
                self._take(waiting, jobs + 1)
            self._take(waiting, 0)
        finally:
            pool.shutdown(cancel_futures=True)
        self._save(end, due=True)
        self._sink.finish()
        self.totals = replace(self.totals, done=True)
        self._manifest.write(end, {}, self.totals)
        self._sink.clean()
        self._progress(self.totals)
        return self.totals

    def _take(self, waiting: deque[tuple[Block, Future[_Encoded]]], most: int) -> None:
        """Write what is encoded, until at most `most` blocks are waited for."""
        while len(waiting) > most:
            block, encoded = waiting.popleft()
            self._write(block, *encoded.result())

    def _write(self, block: Block, ids: Ids, lengths: Lengths) -> None:
        self._sink.add(ids, lengths)
        self.totals = replace(
            self.totals,
            documents=self.totals.documents + len(lengths),
            ids=self.totals.ids + len(ids),
            size=self.totals.size + block.size,
        )
        if block.piece != "open":
            self._save(block.after, due=time.monotonic() >= self._saved + SAVE_SECONDS)
        self._progress(self.totals)

    def _save(self, after: Position, due: bool) -> None:
        state = self._sink.save(due)
        if state is not None:
            self._manifest.write(after, state, self.totals)
            self._saved = time.monotonic()

    def _piece(self, block: Block) -> None:
        """Of a document that is longer than a block: it is encoded here, as a stream."""
        job, ids = self._job, []
        try:
            if self._stream is None:
                self._stream, self._length = job.tokenizer.stream(**job.options), 0
            if block.piece == "open":
                ids.append(self._stream.feed(block.data))
            else:
                ids.append(self._stream.feed(block.data.removesuffix(job.source.separator or b"")))
                ids.append(self._stream.finish())
                self._stream = None
        except ValueError as error:
            raise BulkError(f"{place(block, 0)}: {error}") from None
        self._length += sum(map(len, ids))
        if self._stream is not None:
            self._write(block, np.concatenate(ids), np.empty(0, np.int64))
            return
        if job.append is not None and self._length > 0:
            ids.append(np.array([job.append], np.uint32))
            self._length += 1
        self._write(block, np.concatenate(ids), np.array([self._length]))


def _encode(job: _Job, block: Block) -> _Encoded:
    """In a thread of the pool."""
    texts: Sequence[str | bytes] = texts_of(block, job.source)
    try:
        batch = job.tokenizer.encode_batch(texts, threads=1, **job.options)
    except ValueError:
        for i, text in enumerate(texts):  # which one?
            try:
                job.tokenizer.encode(text, **job.options)
            except ValueError as error:
                raise BulkError(f"{place(block, i)}: {error}") from None
        raise
    ids, lengths = batch.ids, batch.lengths
    if job.append is not None:
        ids = np.insert(ids, batch.splits[1:][lengths > 0], job.append)
        lengths += lengths > 0
    return _Encoded(ids, lengths)
