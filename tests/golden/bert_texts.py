# SPDX-License-Identifier: BSD-3-Clause
"""Texts on which BERT's tokenizer is compared with the reference, and how a difference is shown."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from texts import CODE_POINTS

CORPUS = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "dpdk-tokd/corpus"

# Marks that stay and move (U+1D165, U+1B44, U+302E, U+11442), go (U+0301, U+0345), or are starters
# that go (U+034F); letters that become two or three; white space and control characters of each
# kind.
ODD = [
    *"\U0001d165\u1b44\u302e\U00011442\u0301\u0345\u034f\u0bca\u0cca\U0001d15e\u0130\u212b\u1e9e"
]
ODD += [
    *"\u3000\u00a0\u2028\u0085\x0b\0\ufffd\u200b\u200d\ufeff\t\r\n한글가ㄱ中豈\uf900ßΣςﬁ'-.#[]¿§"
]


def corpus_lines(name: str, lines: int) -> list[str]:
    """Lines from all over a corpus, always the same."""
    path = CORPUS / f"{name}.txt"
    if not path.is_file():
        return []
    found = path.read_text(encoding="utf-8", errors="replace").split("\n")
    found = [line for line in found if line.strip()]
    return random.Random(name).sample(found, min(lines, len(found)))


def code_points() -> Iterator[str]:
    """Each of CODE_POINTS alone and between letters, many to a text: a blank keeps them apart."""
    for form in (" {} ", " a{}b ", " a{}"):
        for at in range(0, len(CODE_POINTS), 48):
            yield "x".join(form.format(chr(cp)) for cp in CODE_POINTS[at : at + 48])


def random_unicode(n: int) -> Iterator[str]:
    rng = random.Random(16)
    blocks = [(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700)]
    blocks += [(0x900, 0xE00), (0x1100, 0x1200), (0x1E00, 0x2070), (0x3000, 0x3100)]
    blocks += [(0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0x11000, 0x11A00), (0x1D100, 0x1D200)]
    blocks += [(0x10000, 0x110000), (0, 0xD800)]
    for _ in range(n):
        mine = rng.sample(blocks, rng.randint(1, 3))
        text = []
        for _ in range(rng.randint(1, 40)):
            odd = rng.random() < 0.25
            text.append(rng.choice(ODD) if odd else chr(rng.randrange(*rng.choice(mine))))
        yield "".join(text)


def long_words() -> Iterator[str]:
    """About as long as the longest word that is not unknown."""
    rng = random.Random(100)
    for n in (99, 100, 101, 102):
        for letters in ("a", "ab", "etaoin", "éa", "가b", "\U0001d165a", "İi", "\u0301a", "中a"):
            word = "".join(rng.choice(letters) for _ in range(n))
            yield from (word, f"so {word} on", f"{word}.{word}", f"{word}\u0301 {word}\u1b44x")


def pieces(data: bytes, rng: random.Random) -> list[bytes]:
    out, at = [], 0
    while at < len(data):
        size = rng.choice([1, 1, 2, 3, 5, 17, 80])
        out.append(data[at : at + size])
        at += size
    return out


def streamed(tok, parts: list[bytes]) -> list[int]:
    stream, ids = tok.stream(add_special_tokens=False, tokens_in_text="not-special"), []
    for part in parts:
        ids += stream.feed(part).tolist()
    return ids + stream.finish().tolist()


def named(text: str) -> str:
    """Readable: runs of equal characters, each by its number."""
    return " ".join(f"U+{ord(c):04X}*{len([*run])}" for c, run in groupby(text))
