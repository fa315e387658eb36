# SPDX-License-Identifier: BSD-3-Clause
"""Exact tokenization in this process: libtok, as dpdk-tokd runs it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast, overload

import numpy as np

from .._native import libtok
from .batch import ID_MAX, LENGTH_MAX, Batch, Ids, Padded, Side, check_number, check_side
from .hub import vocabulary_of

if TYPE_CHECKING:  # which take longer to import than the rest
    from pathlib import Path

    import numpy.typing as npt

    from ..hf import HFTokenizer
    from ..tiktoken import Encoding

IdsLike: TypeAlias = "Sequence[int] | npt.NDArray[np.integer]"
Text: TypeAlias = str | bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class VocabInfo:
    """Properties of a vocabulary, and its origin.

    `checksum` is equal for equal tokenizers, whatever their file format. The wire protocol and the
    token ring identify a vocabulary by it. `source` is what a "tokv" was compiled from, else None.
    Ids are below `n_ids`; `n_added` counts added tokens that are not special. `table_bytes` is the
    memory of the tables, `storage` where it is. `isa` is the instruction set that encoding uses;
    the environment variable TOK_ISA selects another.
    """

    name: str
    path: str
    format: str
    source: str | None
    pretokenizer: str
    normalizer: str
    algo: str
    checksum: int
    n_ids: int
    n_merges: int
    n_special: int
    n_added: int
    max_token_bytes: int
    table_bytes: int
    storage: str
    isa: str


def _ids_for(ids: IdsLike) -> Ids:
    """`ids` as libtok reads them. ValueError for what is not a flat list of ids."""
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, dtype=np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"ids: expected a flat sequence of integers, got shape {array.shape}, {array.dtype}"
        )
    if array.dtype != np.uint32:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high > np.iinfo(np.uint32).max:
            raise ValueError(f"ids: {low if low < 0 else high} is not an unsigned 32-bit number")
    return np.ascontiguousarray(array, dtype=np.uint32)


class DecodeStream:
    """Ids on their way to bytes, never with part of a character. Made by
    `Tokenizer.decode_stream()`; one thread at a time."""

    def __init__(self, stream: libtok.DecodeStream) -> None:
        self._stream = stream

    def feed(self, ids: IdsLike) -> bytes:
        """Bytes of `ids` up to the last whole character. ValueError for an unknown id."""
        return self._stream.feed(_ids_for(ids), False)

    def finish(self) -> bytes:
        """End the ids. Returns what is left, as it is: perhaps part of a character."""
        return self._stream.feed(np.empty(0, dtype=np.uint32), True)


class Template(NamedTuple):
    """Ids that the vocabulary puts before and behind a text: BERT's [CLS] and [SEP]."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Truncation:
    """Truncation of a `tokenizer.json`: to `max_length` ids, template included, dropping ids at
    `side`. `stride` is not used by this package."""

    max_length: int
    side: Side
    stride: int


@dataclass(frozen=True, slots=True)
class Padding:
    """Padding of a `tokenizer.json`: with `pad_id` at `side`, to `length` ids (None: those of the
    longest text), rounded up to `multiple_of` (None: not rounded)."""

    length: int | None
    side: Side
    multiple_of: int | None
    pad_id: int


def _side(left: bool) -> Side:
    return "left" if left else "right"


class Tokenizer(libtok.Vocab):
    """A vocabulary; encodes text to ids and decodes ids.

    Several threads may use it at once: the GIL is released while encoding and decoding, and each
    call or stream borrows a cache of its own (6 MiB, kept for the next one).

    The vocabulary's `template` is added around a text unless `add_special_tokens` is False.
    `added_tokens` selects which added tokens are recognised in a text. "plain": those that are not
    special; special ones stay text, so that a text cannot insert control tokens. "text": none.
    "all": special ones too; for your own text only. An appliance does what
    `add_special_tokens=False, added_tokens="text"` does, unless configured otherwise.
    """

    def __init__(self, *_: object) -> None:
        self._info = VocabInfo(**self._describe())
        shape = self._shape()
        self._template = Template(tuple(shape["before"].tolist()), tuple(shape["after"].tolist()))
        self._truncation = shape["truncation"]
        self._padding = shape["padding"]

    @classmethod
    def load(
        cls,
        name_or_path: str,
        *,
        strict_utf8: bool = False,
        pretokenizer: str | None = None,
        search_path: str | None = None,
        algo: str | None = None,
    ) -> Tokenizer:
        """Load a vocabulary: a name (`gpt2`) or the path of a file in a format libtok reads.

        strict_utf8: text that is not UTF-8 is a ValueError; otherwise invalid bytes become U+FFFD,
        as in `bytes.decode("utf-8", "replace")`.
        pretokenizer: for a `.tiktoken` file with unknown content; "bert-cased" for a `vocab.txt` of
        cased text.
        search_path: folders to look a name up in, colon-separated; by default `$TOK_VOCAB_PATH`,
        then the user's folder.
        algo: "exact" (the default), or "greedy": longest match within pretokens.
        ValueError names the file and what is wrong with it.
        """
        return cls(name_or_path, pretokenizer, search_path, algo, strict_utf8)

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        strict_utf8: bool = False,
        pretokenizer: str | None = None,
        algo: str | None = None,
    ) -> Tokenizer:
        """Load the vocabulary of a repository of huggingface.co, or of a folder.

        Takes the first of `tokenizer.json`, `vocab.json` with `merges.txt`, `vocab.txt`,
        `tekken.json`, `tokenizer.model`, through the cache of the package huggingface_hub.
        revision: a branch, tag or commit. token: for a gated repository; None: that of the login.
        local_files_only: the cache only, no network.
        Other arguments are those of `load`, as are its errors. ImportError: huggingface_hub is not
        installed (`pip install dpdk-tokd[hub]`); FileNotFoundError: there is no such file;
        and the errors of huggingface_hub.
        """
        if os.path.isdir(name):
            path = os.path.join(name, "")
        else:
            path = vocabulary_of(
                name,
                revision=revision,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
            )
        return cls.load(path, strict_utf8=strict_utf8, pretokenizer=pretokenizer, algo=algo)

    @overload
    def encode_batch(  # type: ignore[overload-overlap]  # False is an int: the first match counts
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        added_tokens: libtok.AddedTokens = "plain",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: Literal[False] = False,
        threads: int | None = None,
    ) -> Batch: ...

    @overload
    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        added_tokens: libtok.AddedTokens = "plain",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: Literal[True, "longest"] | int,
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
        pad_id: int | None = None,
        threads: int | None = None,
    ) -> Padded: ...

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        added_tokens: libtok.AddedTokens = "plain",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest"] | int = False,
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
        pad_id: int | None = None,
        threads: int | None = None,
    ) -> Batch | Padded:
        """Ids of many texts, each encoded as by `encode`.

        padding: False: a `Batch`, one array of all ids. Otherwise a `Padded`, rows of equal length:
        "longest": that of the longest text; a number: that many ids; True: the file's, else
        "longest". padding_side, pad_to_multiple_of, pad_id: None: the file's, else right, not
        rounded, the id of [PAD] or <pad>. Lengths are at most 2**31 - 1; mind the memory for the
        rows.
        threads: the most to use; None: one per available processor. Small batches use fewer. The
        ids do not depend on it.
        A ValueError also names the text by its index.
        """
        if isinstance(texts, (str, bytes, bytearray, memoryview)):
            raise TypeError("texts: expected a list of texts, got one text")
        if threads is None:
            threads = min(len(os.sched_getaffinity(0)), libtok.THREADS_MAX)
        side = check_side("padding_side", padding_side)
        if pad_to_multiple_of is not None:
            check_number("pad_to_multiple_of", pad_to_multiple_of, LENGTH_MAX)
        if pad_id is not None:
            check_number("pad_id", pad_id, ID_MAX)
        length = self._length(padding)
        ids, splits = self._encode_texts(
            texts,
            threads,
            add_special_tokens=add_special_tokens,
            added_tokens=added_tokens,
            truncation=truncation,
            truncation_side=truncation_side,
        )
        batch = Batch(ids, splits)
        if padding is False:
            return batch
        file = self.padding
        return batch.padded(
            length,
            pad_id=self._pad_id() if pad_id is None else pad_id,
            side=side or (file.side if file else "right"),
            multiple_of=file.multiple_of
            if pad_to_multiple_of is None and file
            else pad_to_multiple_of,
        )

    def _length(self, padding: bool | Literal["longest"] | int) -> int | None:
        """Ids of a row, None for those of the longest text."""
        if padding is True:
            return self._padding["length"] if self._padding and self._padding["fixed"] else None
        if padding is False or padding == "longest":
            return None
        words = 'True, False, "longest" or '
        return check_number("padding", padding, LENGTH_MAX, words=words)

    def _pad_id(self) -> int:
        if self._padding is not None:
            return self._padding["id"]
        for token in ("[PAD]", "<pad>"):
            if token in self.special_tokens:
                return self.special_tokens[token]
        raise ValueError(
            f"{self._info.path} defines no padding id and no special token [PAD] or <pad>: "
            "pass pad_id"
        )

    def decode(self, ids: IdsLike, *, skip_special_tokens: bool = False) -> bytes:
        """Bytes of `ids`, perhaps with parts of characters. ValueError for an unknown id."""
        array = _ids_for(ids)
        if skip_special_tokens:
            array = array[~np.isin(array, self._specials())]
        return self._decode(array)

    def decode_stream(self) -> DecodeStream:
        """A new sequence of ids that will come in pieces."""
        return DecodeStream(self._decode_stream())

    def token(self, id: int) -> bytes:
        """Bytes of one id. KeyError if there is none."""
        token = self.id_to_token(id)
        if token is None:
            raise KeyError(id)
        return token

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id with just these bytes (not byte-level text: " the", not "Ġthe"), or None.

        Of several the special one, else the lowest.
        """
        return self._ids_by_token.get(token.encode() if isinstance(token, str) else token)

    @cached_property
    def _ids_by_token(self) -> dict[bytes, int]:
        order = [*range(self._info.n_ids - 1, -1, -1), *self._specials().tolist()]
        tokens = ((self.id_to_token(id), id) for id in order)
        return {token: id for token, id in tokens if token is not None}

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """Text and id of each special token."""
        ids: list[int] = self._specials().tolist()
        return {self.token(id).decode("utf-8", "replace"): id for id in ids}

    @property
    def template(self) -> Template:
        """The ids that `add_special_tokens` puts around a text."""
        return self._template

    @property
    def truncation(self) -> Truncation | None:
        """The file's truncation, applied with `truncation=True`."""
        t = self._truncation
        return None if t is None else Truncation(t["max_length"], _side(t["left"]), t["stride"])

    @property
    def padding(self) -> Padding | None:
        """The file's padding, applied with `padding=True`."""
        p = self._padding
        if p is None:
            return None
        length = p["length"] if p["fixed"] else None
        return Padding(length, _side(p["left"]), p["multiple_of"] or None, p["id"])

    @property
    def vocab_size(self) -> int:
        """Ids are below this."""
        return self._info.n_ids

    @property
    def checksum(self) -> int:
        """Identifies the vocabulary to an appliance; see `VocabInfo`."""
        return self._info.checksum

    @property
    def info(self) -> VocabInfo:
        return self._info

    def as_hf(self) -> HFTokenizer:
        """This tokenizer with the interface of `tokenizers`: `dpdk_tokd.as_hf`."""
        return cast("HFTokenizer", import_module("dpdk_tokd.hf").as_hf(self))

    def as_tiktoken(self) -> Encoding:
        """This tokenizer with the interface of `tiktoken`: `dpdk_tokd.as_tiktoken`."""
        return cast("Encoding", import_module("dpdk_tokd.tiktoken").as_tiktoken(self))

    def __repr__(self) -> str:
        i = self._info
        return f"Tokenizer({i.name!r}, {i.n_ids} ids, checksum {i.checksum:#010x})"
