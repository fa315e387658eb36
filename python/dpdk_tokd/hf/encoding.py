# SPDX-License-Identifier: BSD-3-Clause
"""The result of one call, with the attributes of `tokenizers.Encoding`.

Ids are there at once. Everything else is made when it is first asked for: most callers want ids
and masks alone, and offsets cost as much as encoding.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

from .._arguments import unsigned
from ..tokenizer.batch import ID_MAX

T = TypeVar("T")
Offset = tuple[int, int]
Direction = Literal["left", "right"]


class cached(Generic[T]):
    """`functools.cached_property` without its lock (before Python 3.12), which takes longer than
    the lists of a short text."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        made = self._make(instance)
        setattr(instance, self._name, made)
        return made


class Source(Protocol):
    """Tokens in a row: those of a text, or given ones. Lists of equal length."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def offsets(self) -> list[Offset]: ...
    @property
    def words(self) -> list[int | None]: ...
    def __len__(self) -> int: ...


class Given:
    """Tokens that come from no text: special ones of a template, or padding."""

    def __init__(self, ids: list[int], tokens: list[str]) -> None:
        self.ids, self.tokens = ids, tokens
        self.offsets: list[Offset] = [(0, 0)] * len(ids)
        self.words: list[int | None] = [None] * len(ids)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(slots=True)
class Part:
    """Tokens [begin, end) of a source; not changed once made.

    `trim`: blanks at the ends of tokens do not count in offsets; its value is whether a blank was
    put before the text.
    """

    source: Source
    begin: int
    end: int
    type_id: int = 0
    special: int = 0
    attention: int = 1
    trim: bool | None = None
    shift: int = 0  # of the offsets

    def __len__(self) -> int:
        return self.end - self.begin

    def slice(self, begin: int, end: int) -> Part:
        return replace(self, begin=self.begin + begin, end=self.begin + end)

    def of_type(self, type_id: int) -> Part:
        if type_id == self.type_id:
            return self
        return replace(self, type_id=type_id)

    @property
    def offsets(self) -> list[Offset]:
        found = self.source.offsets[self.begin : self.end]
        if self.trim is not None:
            tokens = self.source.tokens[self.begin : self.end]
            found = [
                trimmed(token, offset, i == 0, self.trim)
                for i, (token, offset) in enumerate(zip(tokens, found, strict=True))
            ]
        return [(a + self.shift, b + self.shift) for a, b in found] if self.shift else found


def trimmed(token: str, offset: Offset, first: bool, prefix: bool) -> Offset:
    """An offset without the blanks that the token begins and ends with."""
    begin, end = offset
    leading = blanks(token)
    trailing = blanks(reversed(token))
    if leading:
        if (first or begin == 0) and prefix and leading == 1:
            leading = 0  # it was put there
        begin = min(begin + leading, end)
    if trailing and end >= trailing:
        end = max(end - trailing, begin)
    return begin, end


def blanks(token: Iterable[str]) -> int:
    """Those that it begins with, as the file spells them or as they are."""
    n = 0
    for c in token:
        if c != "Ġ" and not c.isspace():
            break
        n += 1
    return n


@dataclass(eq=False)
class Encoding:
    """Tokens of one text or pair; those that were truncated are in `overflowing`.

    Lists with an entry a token, made when they are first asked for and the caller's own: `ids`,
    `type_ids`, `tokens`, `offsets`, `word_ids`, `sequence_ids`; `special_tokens_mask`, 1 for
    template and padding; `attention_mask`, 0 for padding.
    ValueError: the vocabulary is one without offsets, for what needs them.
    """

    _parts: list[Part] = field(default_factory=list)
    _overflowing: list[Encoding] = field(default_factory=list)
    _ranges: dict[int, range] = field(default_factory=dict)  # of the sequences

    # ---- attributes ----

    @cached
    def ids(self) -> list[int]:
        return self._join("ids")

    @cached
    def type_ids(self) -> list[int]:
        return self._each("type_id")

    @cached
    def tokens(self) -> list[str]:
        return self._join("tokens")

    @cached
    def offsets(self) -> list[Offset]:
        """Characters [begin, end) of the sequence that each token stands for."""
        return [offset for p in self._parts for offset in p.offsets]

    @cached
    def word_ids(self) -> list[int | None]:
        return self._join("words")

    @cached
    def special_tokens_mask(self) -> list[int]:
        return self._each("special")

    @cached
    def attention_mask(self) -> list[int]:
        return self._each("attention")

    @property
    def words(self) -> list[int | None]:
        """As `word_ids`."""
        return self.word_ids

    @property
    def overflowing(self) -> list[Encoding]:
        """What truncation cut off, in parts of the same form."""
        return self._overflowing

    @property
    def n_sequences(self) -> int:
        """2 of a pair, else 1."""
        return len(self._ranges) or 1

    @property
    def sequence_ids(self) -> list[int | None]:
        """0 or 1 for each token; None: it is of no sequence, but of the template or padding."""
        found: list[int | None] = [None] * len(self)
        for i in range(self.n_sequences):
            tokens = self._range(i)
            found[tokens.start : tokens.stop] = [i] * len(tokens)
        return found

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, "
            "attention_mask, special_tokens_mask, overflowing])"
        )

    def __getstate__(self) -> dict[str, Any]:
        whole = Fixed(self.ids, self.tokens, self.offsets, self.word_ids)
        parts, at = [], 0
        for p in self._parts:
            parts.append(replace(p, source=whole, begin=at, end=at + len(p), trim=None, shift=0))
            at += len(p)
        return {"_parts": parts, "_overflowing": self._overflowing, "_ranges": self._ranges}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # ---- questions ----
    # OverflowError, as in `tokenizers`: a number is negative.

    def token_to_sequence(self, token_index: int) -> int | None:
        """0 or 1; None: the token is of none, or there is no such token."""
        token_index = unsigned("token_index", token_index)
        if token_index > len(self):
            return None
        if not self._ranges:
            return 0
        return next((i for i, tokens in self._ranges.items() if token_index in tokens), None)

    def token_to_chars(self, token_index: int) -> Offset | None:
        """Characters [begin, end) of its sequence; None as in `token_to_sequence`."""
        if self.token_to_sequence(token_index) is None or token_index >= len(self):
            return None
        return self.offsets[token_index]

    def token_to_word(self, token_index: int) -> int | None:
        """The number of its word in its sequence; None as in `token_to_sequence`."""
        if self.token_to_sequence(token_index) is None or token_index >= len(self):
            return None
        return self.word_ids[token_index]

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None:
        """Tokens [begin, end) of a word; None: it has none."""
        tokens = self._range(sequence_index)
        word_index = unsigned("word_index", word_index, ID_MAX)
        if self._in_order(tokens)[1]:
            words = cast(list[int], self.word_ids)
            begin = bisect_left(words, word_index, tokens.start, tokens.stop)
            end = bisect_right(words, word_index, begin, tokens.stop)
            return (begin, end) if begin < end else None
        found = []
        for at in tokens:
            word = self.word_ids[at]
            if word is not None and word > word_index:  # of merged ones, the first alone
                break
            if word == word_index:
                found.append(at)
        return (found[0], found[-1] + 1) if found else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Offset | None:
        """Characters [begin, end) of a word; None: it has no tokens."""
        tokens = self.word_to_tokens(word_index, sequence_index)
        return tokens and (self.offsets[tokens[0]][0], self.offsets[tokens[1] - 1][1])

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token with this character; None: no token has it."""
        tokens, char_pos = self._range(sequence_index), unsigned("char_pos", char_pos)
        offsets = self.offsets
        if self._in_order(tokens)[0]:
            at = bisect_right(offsets, char_pos, tokens.start, tokens.stop, key=itemgetter(1))
            return at if at < tokens.stop and offsets[at][0] <= char_pos else None
        return next((i for i in tokens if offsets[i][0] <= char_pos < offsets[i][1]), None)

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The word of that token; None: there is none."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    # ---- changes ----

    def set_sequence_id(self, sequence_id: int) -> None:
        """Say that all tokens are of this sequence, 0 or 1."""
        self._ranges[sequence_id] = range(len(self))

    def truncate(self, max_length: int, stride: int = 0, direction: Direction = "right") -> None:
        """Keep max_length tokens; the rest goes to `overflowing`, in parts that have `stride`
        tokens in common with the part before. ValueError: stride is not below max_length."""
        _check_side(direction, "truncation")
        max_length, stride = unsigned("max_length", max_length), unsigned("stride", stride)
        n = len(self)
        if max_length >= n:
            return
        if max_length == 0:
            rest = Encoding(self._parts, self._overflowing, self._ranges)
            self._become([], [rest], {})
            return
        if stride >= max_length:
            raise ValueError(f"stride: {stride} is not below the {max_length} tokens that are kept")
        first, *rest_of = _windows(n, max_length, max_length - stride, direction)
        overflowing = [Encoding(self._slice(*window)) for window in rest_of]
        self._become(self._slice(*first), overflowing, {})

    def pad(
        self,
        length: int,
        direction: Direction = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Append (or put before) padding up to `length` tokens; the overflowing ones likewise."""
        _check_side(direction, "padding")
        for other in self._overflowing:
            other.pad(length, direction, pad_id, pad_type_id, pad_token)
        n = unsigned("length", length) - len(self)
        if n <= 0:
            return
        given = Given([pad_id] * n, [pad_token] * n)
        padding = Part(given, 0, n, type_id=pad_type_id, special=1, attention=0)
        if direction == "right":
            self._become([*self._parts, padding], self._overflowing, self._ranges)
        else:
            ranges = {i: range(r.start + n, r.stop + n) for i, r in self._ranges.items()}
            self._become([padding, *self._parts], self._overflowing, ranges)

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """One encoding after the other, as a new one. growing_offsets: offsets of each count on
        from the end of the one before."""
        if not growing_offsets and not any(e._overflowing for e in encodings):
            return _in_a_row(encodings)
        merged = Encoding()
        for encoding in encodings:
            merged = merged.joined(encoding, growing_offsets)
        return merged

    def joined(self, other: Encoding, growing_offsets: bool = False) -> Encoding:
        """This one, then the other. Overflowing parts are combined each with each."""
        begin = self.offsets[-1][1] if growing_offsets and len(self) > 0 else 0
        n = len(self)
        parts = [replace(p, shift=p.shift + begin) if begin else p for p in other._parts]
        ranges = {i: range(n + r.start, n + r.stop) for i, r in other._ranges.items()}
        overflowing = []
        for own in self._overflowing:
            overflowing += [own.joined(x, growing_offsets) for x in (other, *other._overflowing)]
        overflowing += [self.joined(x, growing_offsets) for x in other._overflowing]
        return Encoding([*self._parts, *parts], overflowing, self._ranges | ranges)

    # ---- helpers ----

    def _join(self, name: str) -> list[Any]:
        """Of the parts' sources."""
        found: list[Any] = []
        for p in self._parts:
            found += getattr(p.source, name)[p.begin : p.end]
        return found

    def _each(self, name: str) -> list[int]:
        """A number of the parts, for each token."""
        found: list[int] = []
        for p in self._parts:
            found += [getattr(p, name)] * (p.end - p.begin)
        return found

    @cached
    def _searched(self) -> dict[range, tuple[bool, bool]]:
        """What `_in_order` has found."""
        return {}

    def _in_order(self, tokens: range) -> tuple[bool, bool]:
        """Whether the offsets of these tokens never fall, and their words, so that a search may
        halve them."""
        if tokens not in self._searched:
            offsets = self.offsets[tokens.start : tokens.stop]
            words = cast(list[int], self.word_ids[tokens.start : tokens.stop])
            self._searched[tokens] = (
                all(a <= c and b <= d for (a, b), (c, d) in pairwise(offsets)),
                None not in words and words == sorted(words),
            )
        return self._searched[tokens]

    def _range(self, sequence: int) -> range:
        return self._ranges.get(unsigned("sequence_index", sequence), range(len(self)))

    def _slice(self, begin: int, end: int) -> list[Part]:
        parts, at = [], 0
        for p in self._parts:
            first, last = max(begin - at, 0), min(end - at, len(p))
            if first < last:
                parts.append(p.slice(first, last))
            at += len(p)
        return parts

    def _become(
        self, parts: list[Part], overflowing: list[Encoding], ranges: dict[int, range]
    ) -> None:
        self.__dict__.clear()  # what was made of the old parts
        self._parts, self._overflowing, self._ranges = parts, overflowing, ranges


def _check_side(direction: str, what: str) -> None:
    if direction not in ("left", "right"):
        raise ValueError(f"Invalid {what} direction value : {direction}")


def _in_a_row(encodings: Sequence[Encoding]) -> Encoding:
    parts: list[Part] = []
    ranges: dict[int, range] = {}
    n = 0
    for e in encodings:
        parts += e._parts
        for i, r in e._ranges.items():
            ranges[i] = range(n + r.start, n + r.stop)
        n += len(e)
    return Encoding(parts, [], ranges)


class Fixed(Given):
    """Tokens with offsets and words of their own: an encoding that was pickled."""

    def __init__(
        self,
        ids: list[int],
        tokens: list[str],
        offsets: list[Offset],
        words: list[int | None],
    ) -> None:
        super().__init__(ids, tokens)
        self.offsets, self.words = offsets, words


def _windows(n: int, size: int, step: int, direction: Direction) -> list[tuple[int, int]]:
    """[begin, end) of the parts of n tokens: the first is kept, the others overflow."""
    if direction == "right":
        begins = range(0, n, step)
        found = [(begin, min(begin + size, n)) for begin in begins]
        last = next(i for i, (_, end) in enumerate(found) if end == n)
    else:
        found = [(max(end - size, 0), end) for end in range(n, 0, -step)]
        last = next(i for i, (begin, _) in enumerate(found) if begin == 0)
    return found[: last + 1]
