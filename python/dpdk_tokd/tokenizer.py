# SPDX-License-Identifier: BSD-3-Clause
"""Exact tokenization in this process: libtok, as dpdk-tokd runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from . import _libtok

Ids: TypeAlias = npt.NDArray[np.uint32]
IdsLike: TypeAlias = Sequence[int] | npt.NDArray[np.integer]
Text: TypeAlias = str | bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class VocabInfo:
    """What a vocabulary is and where it came from.

    `checksum` is equal for equal tokenizers, whatever file format they came from, and is what the
    wire protocol and the token ring name a vocabulary by. Ids are below `n_ids`. `table_bytes` is
    the memory of the tables.
    """

    name: str
    path: str
    format: str
    pretokenizer: str
    algo: str
    checksum: int
    n_ids: int
    n_merges: int
    n_special: int
    max_token_bytes: int
    table_bytes: int


def _ids_from(raw: bytearray) -> Ids:
    """The ids libtok wrote into `raw`, which the array keeps: no copy."""
    return np.frombuffer(raw, dtype=np.uint32)


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


class Stream:
    """A text on its way through: each id is given out as soon as no later byte can change it.

    All ids together are those of the whole text, however it was cut. Made by
    `Tokenizer.stream()`; one thread at a time, another gets a RuntimeError.
    """

    def __init__(self, stream: _libtok.Stream) -> None:
        self._stream = stream

    def feed(self, text: Text) -> Ids:
        """Take the next piece of the text, which may be cut anywhere.

        Returns the ids that became certain, uint32 of shape (n,), owned by the caller.
        ValueError: the text is not UTF-8 and the tokenizer is strict, or more bytes are uncertain
        than a stream may hold, or the stream is over.
        """
        return _ids_from(self._stream.feed(text, False))

    def finish(self) -> Ids:
        """End the text. Returns the ids that were still uncertain; errors as in `feed`."""
        return _ids_from(self._stream.feed(b"", True))

    @property
    def waiting(self) -> int:
        """Bytes taken whose ids have not been given out yet."""
        return self._stream.waiting()


class DecodeStream:
    """Ids on their way to bytes, never with part of a character. Made by
    `Tokenizer.decode_stream()`; one thread at a time."""

    def __init__(self, stream: _libtok.DecodeStream) -> None:
        self._stream = stream

    def feed(self, ids: IdsLike) -> bytes:
        """Bytes of `ids` up to the last whole character. ValueError for an unknown id."""
        return self._stream.feed(_ids_for(ids), False)

    def finish(self) -> bytes:
        """End the ids. Returns what is left, as it is: perhaps part of a character."""
        return self._stream.feed(np.empty(0, dtype=np.uint32), True)


class Tokenizer:
    """A vocabulary, and what turns text into its ids and back.

    Any thread may use it, and several at once: the GIL is released while text is encoded, and each
    call or stream borrows a cache of its own (1 MiB, kept for the next one).
    """

    def __init__(self, vocab: _libtok.Vocab, *, strict_utf8: bool = False) -> None:
        self._vocab = vocab
        self._strict = strict_utf8
        self._info = VocabInfo(**vocab.info())

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

        strict_utf8: text that is not UTF-8 is a ValueError; otherwise what is wrong means U+FFFD,
        as in `bytes.decode("utf-8", "replace")`.
        pretokenizer: for a `.tiktoken` file that is not known by its content; "bert-cased" for a
        `vocab.txt` that is not of uncased text.
        search_path: folders to look a name up in, colon-separated; by default `$TOK_VOCAB_PATH`,
        then the user's folder.
        algo: "exact" (the default), or "greedy": longest match within pretokens.
        ValueError names the file and what is wrong with it.
        """
        vocab = _libtok.Vocab(name_or_path, pretokenizer, search_path, algo)
        return cls(vocab, strict_utf8=strict_utf8)

    def encode(self, text: Text) -> Ids:
        """Ids of a whole text, special tokens taken as text: uint32, shape (n,), the caller's own.

        `text` is a str, or UTF-8 in bytes or any other contiguous buffer, which must not be
        changed meanwhile. UnicodeEncodeError (a ValueError): a str holds a surrogate. ValueError:
        not UTF-8, where the tokenizer is strict.
        """
        return _ids_from(self._vocab.encode(text, self._strict))

    def decode(self, ids: IdsLike) -> bytes:
        """Bytes of `ids`, which need not be whole characters. ValueError for an unknown id."""
        return self._vocab.decode(_ids_for(ids))

    def stream(self) -> Stream:
        """A new text that will come in pieces."""
        return Stream(self._vocab.stream(self._strict))

    def decode_stream(self) -> DecodeStream:
        """A new sequence of ids that will come in pieces."""
        return DecodeStream(self._vocab.decode_stream())

    def token(self, id: int) -> bytes:
        """Bytes of one id. KeyError if there is none."""
        token = self._vocab.token(id)
        if token is None:
            raise KeyError(id)
        return token

    @property
    def vocab_size(self) -> int:
        """Ids are below this."""
        return self._info.n_ids

    @property
    def checksum(self) -> int:
        """Names the vocabulary to an appliance; see `VocabInfo`."""
        return self._info.checksum

    @property
    def info(self) -> VocabInfo:
        return self._info

    def __repr__(self) -> str:
        i = self._info
        return f"Tokenizer({i.name!r}, {i.n_ids} ids, checksum {i.checksum:#010x})"
