# SPDX-License-Identifier: BSD-3-Clause
"""What a `tokenizer.json` does with tokens once there are some: truncation and post-processing, for
one text and for pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from .encoding import Direction, Encoding, Given, Part, Source

Json = dict[str, Any]
Strategy = Literal["longest_first", "only_first", "only_second"]


@dataclass
class Truncation:
    """To max_length tokens, those of the template included."""

    max_length: int
    stride: int = 0
    strategy: Strategy = "longest_first"
    direction: Direction = "right"

    def apply(self, encodings: list[Encoding], n_added: int) -> None:
        most = self.max_length - n_added
        if most < 0:
            raise ValueError(
                f"truncation: max_length {self.max_length} is below the {n_added} tokens that the "
                "template adds"
            )
        lengths = [len(e) for e in encodings]
        over = sum(lengths) - most
        if over <= 0 and most > 0:
            return
        for encoding, length in zip(encodings, self._shares(lengths, most, over), strict=True):
            encoding.truncate(length, self.stride, self.direction)

    def _shares(self, lengths: list[int], most: int, over: int) -> list[int]:
        if most == 0 or (self.strategy == "longest_first" and len(lengths) == 1):
            return [most] * len(lengths)
        if self.strategy == "longest_first":
            return _halves(lengths, most)
        at = 0 if self.strategy == "only_first" else 1
        if at >= len(lengths):
            raise ValueError('truncation "only_second": there is no second sequence')
        if lengths[at] <= over:
            raise ValueError(
                f"truncation {self.strategy!r}: {over} tokens are too many, and the sequence has "
                f"{lengths[at]}"
            )
        return [n - over * (i == at) for i, n in enumerate(lengths)]


def _halves(lengths: list[int], most: int) -> list[int]:
    """The longer one is cut to what the shorter one leaves; else both to half."""
    short, long = sorted(lengths)
    long = short if short > most else max(short, most - short)
    if short + long > most:
        short = most // 2
        long = most - short
    return [short, long] if lengths[0] <= lengths[1] else [long, short]


# ---- post-processors: encodings in, the encodings to join out ----

Step = Callable[[list[Encoding], bool], list[Encoding]]


@dataclass(frozen=True)
class Processor:
    """`added`: tokens that are added to one sequence, and to two. `trim`: as in `Part`."""

    steps: tuple[Step, ...]
    added: tuple[int, int]
    trim: bool | None = None

    def process(self, encodings: list[Encoding], special: bool) -> Encoding:
        for i, encoding in enumerate(encodings):
            encodings[i] = _typed(encoding, i)
            for e in (encodings[i], *encoding.overflowing):
                e.set_sequence_id(i)
        for step in self.steps:
            encodings = step(encodings, special)
        if len(encodings) == 1:
            return encodings[0]
        return Encoding.merge(encodings, growing_offsets=False)


def default_process(encodings: list[Encoding]) -> Encoding:
    """Without a post-processor."""
    if len(encodings) == 1:
        return encodings[0]
    for i, encoding in enumerate(encodings):
        encoding.set_sequence_id(i)
    return Encoding.merge(encodings, growing_offsets=False)


@dataclass(frozen=True)
class Frame:
    """What post-processing puts around one sequence, whatever its tokens are."""

    before: tuple[Part, ...]
    part: Part  # that of the sequence, without its tokens
    after: tuple[Part, ...]
    ranges: dict[int, int]  # where the sequence begins

    def around(self, source: Source) -> Encoding:
        p, n = self.part, len(source)
        part = Part(source, 0, n, p.type_id, p.special, p.attention, p.trim, p.shift)
        ranges = {i: range(begin, begin + n) for i, begin in self.ranges.items()}
        return Encoding([*self.before, part, *self.after], [], ranges)


def frame_of(process: Callable[[list[Encoding]], Encoding]) -> Frame | None:
    """By a trial with one token. None: it does not have the sequence once."""
    token = Given([0], [""])
    found = process([Encoding([Part(token, 0, 1)])])
    parts = found._parts
    at = [i for i, p in enumerate(parts) if p.source is token]
    if len(at) != 1:
        return None
    i = at[0]
    ranges = {sequence: r.start for sequence, r in found._ranges.items()}
    return Frame(tuple(parts[:i]), parts[i], tuple(parts[i + 1 :]), ranges)


def _typed(e: Encoding, type_id: int) -> Encoding:
    return Encoding([p.of_type(type_id) for p in e._parts], e.overflowing, dict(e._ranges))


def _trim(prefix: bool) -> Step:
    def one(e: Encoding) -> Encoding:
        parts = [replace(p, trim=prefix) for p in e._parts]
        return Encoding(parts, list(map(one, e.overflowing)), dict(e._ranges))

    return lambda encodings, _: list(map(one, encodings))


def _numbered(encodings: list[Encoding], _: bool) -> list[Encoding]:
    for i, encoding in enumerate(encodings):
        encoding.set_sequence_id(i)
    return encodings


def _zero_types(encodings: list[Encoding], _: bool) -> list[Encoding]:
    return [_typed(e, 0) for e in encodings]


def _special(ids: list[int], tokens: list[str], type_id: int) -> Encoding:
    return Encoding([Part(Given(ids, tokens), 0, len(ids), type_id, special=1)])


def _template(json: Json) -> tuple[Step, tuple[int, int]]:
    special = {name: (t["ids"], t["tokens"]) for name, t in json["special_tokens"].items()}

    def step(encodings: list[Encoding], add: bool) -> list[Encoding]:
        found = []
        pieces = json["pair" if len(encodings) == 2 else "single"]
        if pieces is None:
            raise ValueError("a pair: the vocabulary does not say what stands between two texts")
        for piece in pieces:
            if (place := piece.get("Sequence")) is not None:
                i = int(place["id"] != "A")
                encoding = _typed(encodings[i], place["type_id"])
                encoding.set_sequence_id(i)
                found.append(encoding)
            elif add:
                token = piece["SpecialToken"]
                found.append(_special(*special[token["id"]], token["type_id"]))
        return found

    def added(pieces: list[Json] | None) -> int:
        tokens = (p["SpecialToken"]["id"] for p in pieces or () if "SpecialToken" in p)
        return sum(len(special[token][0]) for token in tokens)

    return step, (added(json["single"]), added(json["pair"]))


Tokens = list[tuple[str, int]]


def _around(first: tuple[Tokens, Tokens], second: tuple[Tokens, Tokens], types: bool) -> Step:
    """BERT's: tokens before and after each sequence, and each overflowing part of it. `types`: the
    second sequence is of type 1."""

    def one(e: Encoding, i: int) -> Encoding:
        type_id = i if types else 0
        before, after = (
            [_special([id], [token], type_id) for token, id in tokens]
            for tokens in (first, second)[i]
        )
        if not types:
            e = Encoding(e._parts, [_typed(o, 0) for o in e.overflowing], e._ranges)
        return Encoding.merge([*before, e, *after], growing_offsets=False)

    def step(encodings: list[Encoding], add: bool) -> list[Encoding]:
        return [one(e, i) for i, e in enumerate(encodings)] if add else encodings

    return step


def processor(json: Json | None) -> Processor | None:
    """The one that a `tokenizer.json` asks for. ValueError: it is of an unknown kind."""
    if json is None:
        return None
    kind = json["type"]
    if kind == "TemplateProcessing":
        step, added = _template(json)
        return Processor((step,), added)
    if kind == "BertProcessing":
        cls, sep = json["cls"], json["sep"]
        return Processor((_around(([cls], [sep]), ([], [sep]), True),), (2, 3))
    if kind in ("RobertaProcessing", "ByteLevel"):
        trim = json["add_prefix_space"] if json["trim_offsets"] else None
        steps = () if trim is None else (_trim(trim),)
        if kind == "ByteLevel":
            return Processor((*steps, _numbered), (0, 0), trim)
        cls, sep = json["cls"], json["sep"]
        around = _around(([cls], [sep]), ([sep], [sep]), False)
        return Processor((*steps, _zero_types, around), (2, 4), trim)
    if kind == "Sequence":
        of = [p for p in map(processor, json["processors"]) if p is not None]
        added = (sum(p.added[0] for p in of), sum(p.added[1] for p in of))
        trims = [p.trim for p in of if p.trim is not None]
        trim = trims[-1] if trims else None
        return Processor(tuple(step for p in of for step in p.steps), added, trim)
    raise ValueError(f"post_processor: {kind!r} is not implemented")
