# SPDX-License-Identifier: BSD-3-Clause
"""Texts for comparing a tokenizer with its reference, and the comparison, which shrinks a
failure."""

import itertools
import os
import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

packages = pytest.importorskip("dpdk_tokd.fetch.packages", reason="pip install ./python")

DATA, FETCHED = packages.data_home() / "corpus", packages.data_home() / "vocab"
CORPORA = ("english", "code", "multi")

# What pretokenizers tell apart: case, caseless letters, marks, digits of several scripts, symbols,
# white space of all sorts, line ends, contractions, controls, ideographs, unassigned code points.
PIECES = [
    *"aZsStTrRvVeElLmMdD'’ſ",
    *["'s", "'T", "'re", "'VE", "'m", "'ll", "'D", "'l", "'v", "don't", "I'LL", "''s"],
    *["é", "É", "ß", "ǅ", "Ж", "ж", "あ", "ー", "中", "文", "龥", "한", "ا", "ש", "ก", "ª", "ʰ"],
    *["\u0301", "\u0308", "\u0345", "\u093e", "\u20dd", "e\u0301", "中\u0301", "!\u0301"],
    *"0123456789٣५Ⅷ½²",
    *["12", "123", "1234", "12345"],
    *'!.,/\\-_=+#$%&()[]{}<>|~^`"@:;?*',
    *["...", "--", "//", "/*", "!!", "。", "、", "€", "→", "😀", "👩\u200d🚀"],
    *[" ", "  ", "   ", "\t", "\u00a0", "\u3000", "\u2028", "\x0b", "\x85"],
    *["\n", "\r", "\r\n", "\n\n", " \n", "\n ", "\n  \n", "/\n", "\n/"],
    *["\x00", "\x01", "\x7f", "\u200b", "\ufeff", "\u00ad", "\ue000", "\u0378", "\U000e0001"],
    *[
        "the",
        " The",
        "HTTPServer",
        "日本語ABC",
        "camelCase",
        " x",
        "XML",
        "ÀB",
        "aあA",
        "あAB",
        "AあB",
    ],
]


def share() -> float:
    """Of the texts that are compared when all are: $TOK_GOLDEN_TEXTS of 100,000, by default 100."""
    return min(1.0, int(os.environ.get("TOK_GOLDEN_TEXTS", "100")) / 100_000)


def _code_points() -> list[int]:
    """Every one with $TOK_GOLDEN_TEXTS=100000. Else of the planes of ideographs, of private use and
    of nothing: one in 61, what decomposes, the ends of planes, and of ranges of ideographs."""
    alike = {*range(2, 14), 15, 16}
    chosen = {
        *range(0, 0x110000, 61),
        *range(0, 0x110000, 1 << 16),
        *range(0xFFFF, 0x110000, 1 << 16),
    }
    kinds = [unicodedata.category(chr(c)) for c in range(0x20000, 0x40001)]
    for i, (kind, following) in enumerate(itertools.pairwise(kinds), 0x20000):
        if kind != following:
            chosen |= {i, i + 1}
        if unicodedata.decomposition(chr(i)):
            chosen.add(i)
    return [
        c
        for c in range(0x110000)
        if not 0xD800 <= c < 0xE000 and (share() == 1 or c >> 16 not in alike or c in chosen)
    ]


CODE_POINTS = _code_points()


def some(n: int) -> int:
    """That share of n, at least 1."""
    return max(1, round(n * share()))


def from_pieces(rng: random.Random, most: int = 12, added: Sequence[str] = ()) -> str:
    """Pieces, and where there are texts of added tokens one in three is of these."""
    out = rng.choices(PIECES, k=rng.randint(1, most))
    if added:
        out = [rng.choice(added) if rng.random() < 1 / 3 else piece for piece in out]
    return "".join(out)


def random_unicode(rng: random.Random, most: int = 24) -> str:
    """Code points of a few blocks, near each other, as scripts are."""
    out = []
    for _ in range(rng.randint(1, 4)):
        at = rng.choice([rng.randrange(0x250), rng.randrange(0x3100), rng.randrange(0x110000)])
        out += [at + rng.randrange(64) for _ in range(rng.randint(1, most // 4))]
    return "".join(chr(c) for c in out if c < 0x110000 and not 0xD800 <= c < 0xE000)


def code_points(rng: random.Random) -> Iterator[str]:
    """Each code point alone, and where the pretokens around it depend on it, 16 to a text; of all
    texts that share, drawn before they are made."""
    frames = ("{}", "a{}b", " {} ", ".{}.", "\n{}\n", "A{}a", "1{}1", "'{}'s")
    for first in range(0, 0x110000, 16):
        if not 0xD800 <= first < 0xE000 and (share() == 1 or rng.random() < share()):
            points = map(chr, range(first, first + 16))
            yield "\n".join(f.format(c) for c in points for f in frames)


def lines(rng: random.Random, count: int) -> Iterator[str]:
    """Stretches of the corpora: English, code, and the ten languages of the third."""
    texts = []
    for name in CORPORA:
        path = DATA / f"{name}.txt"
        if not path.is_file():
            pytest.skip(f"{path} is missing: run tools/fetch-corpus")
        texts.append(path.read_text("utf-8", "replace"))
    for i in range(count):
        text = texts[i % len(texts)]
        at = rng.randrange(len(text) - 400)
        yield text[at : at + rng.randint(20, 400)]


def corpus_lines(name: str, lines: int) -> list[str]:
    """Lines from all over a corpus, always the same."""
    path = DATA / f"{name}.txt"
    if not path.is_file():
        return []
    found = path.read_text(encoding="utf-8", errors="replace").split("\n")
    found = [line for line in found if line.strip()]
    return random.Random(name).sample(found, min(lines, len(found)))


def shrink(text: str, fails: Callable[[str], bool]) -> str:
    """A shortest text that still fails, by leaving out ever smaller stretches."""
    size = len(text) // 2
    while size > 0:
        at = 0
        while at < len(text):
            shorter = text[:at] + text[at + size :]
            if shorter and fails(shorter):
                text = shorter
            else:
                at += size
        size //= 2
    return text


class Unanswered(Exception):
    """The reference gives no ids for a text: it panics."""


class Comparison:
    """A tokenizer beside its reference: reference(text) gives ids, or raises Unanswered.

    `asked` are more arguments of Tokenizer.encode and stream.
    """

    def __init__(
        self, tokenizer, reference: Callable[[str], list[int]], seed: int = 1, **asked: str
    ) -> None:
        self.tokenizer = tokenizer
        self.reference = reference
        self.asked = {"add_special_tokens": False, "tokens_in_text": "not-special", **asked}
        self.rng = random.Random(seed)
        self.texts = 0
        self.distinct: set[int] = set()  # hashes of them

    def whole_of(self, text: str | bytes) -> np.ndarray:
        return self.tokenizer.encode(text, **self.asked)

    def streamed(self, data: bytes, cuts: list[int]) -> np.ndarray:
        stream, parts, done = self.tokenizer.stream(**self.asked), [], 0
        for cut in [*cuts, len(data)]:
            parts.append(stream.feed(data[done:cut]))
            done = cut
        parts.append(stream.finish())
        return np.concatenate(parts)

    def random_cuts(self, n: int) -> list[int]:
        cuts, at = [], 0
        while (at := at + self.rng.choice([1, 1, 2, 3, 5, 17, 60])) < n:
            cuts.append(at)
        return cuts

    def _fail(self, how: str, fails: Callable[[str], bool], text: str) -> None:
        text = shrink(text, fails)
        pytest.fail(
            f"{how}, text {self.texts}: {text!r} gives "
            f"{self.whole_of(text).tolist()}, the reference {self.reference(text)}"
        )

    def whole(self, text: str) -> np.ndarray:
        self.texts += 1
        self.distinct.add(hash(text))
        ids = self.whole_of(text)
        if not np.array_equal(ids, self.reference(text)):
            self._fail("whole", self._differs, text)
        return ids

    def _differs(self, text: str) -> bool:
        try:
            return not np.array_equal(self.whole_of(text), self.reference(text))
        except Unanswered:
            return False

    def everywhere(self, text: str) -> None:
        """Whole, and cut in two at every byte, and byte by byte."""
        ids, n = self.whole(text), len(text.encode())
        for cuts in [[at] for at in range(1, n)] + [list(range(1, n))]:
            if not np.array_equal(self.streamed(text.encode(), cuts), ids):
                self._fail("cut in two", self._cut_in_two, text)

    def _cut_in_two(self, text: str) -> bool:
        data, ids = text.encode(), self.whole_of(text)
        ways = [[at] for at in range(1, len(data))] + [list(range(1, len(data)))]
        return any(not np.array_equal(self.streamed(data, cuts), ids) for cuts in ways)

    def randomly(self, text: str) -> None:
        """Whole, and cut at random."""
        ids, data = self.whole(text), text.encode()
        if not np.array_equal(self.streamed(data, self.random_cuts(len(data))), ids):
            self._fail("cut", self._cut_in_two, text)


def compare(
    tokenizer, reference: Callable[[str], list[int]], added: Sequence[str] = (), **asked: str
) -> None:
    """Every code point, random ones, made of pieces, real ones: 100,000 distinct texts, or a share.

    added: texts of added tokens, which are among the pieces and between lines.
    """
    c = Comparison(tokenizer, reference, **asked)
    for text in code_points(c.rng):
        c.randomly(text)
    for _ in range(some(4_000)):
        c.everywhere(from_pieces(c.rng, added=added))
    for _ in range(some(4_000)):
        c.randomly(random_unicode(c.rng))
    for text in lines(c.rng, some(6_000)):
        c.randomly(text + c.rng.choice(added) + text[:20] if added else text)
    while len(c.distinct) < some(100_000):
        c.randomly(from_pieces(c.rng, 24, added))
    print(f"{len(c.distinct)} distinct texts equal")
