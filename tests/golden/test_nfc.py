# SPDX-License-Identifier: BSD-3-Clause
"""Form C in pieces equals the reference's, for every character, pair, and random sequences.

Python's unicodedata gives a second opinion on characters that the reference's tables have as well.
tests/unit/tokenizer/dump_nfc cuts each text in many ways, short ones in every way, and says if
that matters.
"""

import os
import random
import struct
import subprocess
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from texts import CODE_POINTS
from tokenizers.normalizers import NFC, NFD

BUILD = Path(os.environ.get("TOKD_BUILD", "build"))
HANGUL = range(0xAC00, 0xD7A4)
MARKS_MAX = 256
REFUSED = {0xFFFFFFFF: "too many marks", 0xFFFFFFFE: "not the same for all cuts"}

reference = NFC().normalize_str
decomposed = NFD().normalize_str


def ours(texts: list[str]) -> list[str]:
    encoded = [t.encode() for t in texts]
    texts_in = b"".join(struct.pack("=I", len(e)) + e for e in encoded)
    out = subprocess.run(
        [BUILD / "tests/unit/tokenizer/dump_nfc"], input=texts_in, check=True, capture_output=True
    ).stdout
    results, at = [], 0
    for _ in texts:
        (n,) = struct.unpack_from("=I", out, at)
        at += 4
        if n in REFUSED:
            results.append(REFUSED[n])
            continue
        results.append(out[at : at + n].decode())
        at += n
    assert at == len(out)
    return results


def given(result: str) -> str:
    return result if result in REFUSED.values() else spelled(result)


def spelled(text: str) -> str:
    return " ".join(f"{ord(c):04X}" for c in text)


def shrunk(text: str) -> str:
    """Without the characters that are not needed for it to come out wrong."""
    i = 0
    while i < len(text):
        less = text[:i] + text[i + 1 :]
        if ours([less]) != [reference(less)]:
            text = less
        else:
            i += 1
    return text


def hold_to_reference(texts: list[str]) -> None:
    want = [reference(t) for t in texts]
    got = ours(texts)
    wrong = [t for t, w, g in zip(texts, want, got, strict=True) if w != g]
    if wrong:
        text = shrunk(min(wrong, key=len))
        raise AssertionError(
            f"{len(wrong)} of {len(texts)} texts; {spelled(text)}: "
            f"{spelled(reference(text))} expected, {given(ours([text])[0])} given"
        )
    for t, g in zip(texts, got, strict=True):
        if YOUNGER.isdisjoint(t):
            assert unicodedata.normalize("NFC", t) == g, spelled(t)


def joined(parts: Iterable[str], characters: int = 2000) -> list[str]:
    """Parts, a line each, in texts of about so many characters: calls cost more than characters."""
    texts, lines, n = [], [], 0
    for part in parts:
        lines.append(part)
        n += len(part) + 1
        if n >= characters:
            texts.append("\n".join(lines))
            lines, n = [], 0
    return [*texts, "\n".join(lines)]


def decomposing() -> list[int]:
    """By the reference, which decomposes fewer characters than Unicode 16 does."""
    found = []
    for first in range(0, len(CODE_POINTS), 256):
        some = CODE_POINTS[first : first + 256]
        if decomposed(text := "".join(map(chr, some))) != text:
            found += [c for c in some if decomposed(chr(c)) != chr(c)]
    return [c for c in found if c not in HANGUL]


DECOMPOSING = decomposing()
PARTS = sorted({p for c in DECOMPOSING for p in decomposed(chr(c))})
FIRSTS = sorted({*PARTS, *map(chr, DECOMPOSING), *map(chr, range(0x1100, 0x1113))})
# Only the last part of a decomposition can be the second of a pair.
SECONDS = sorted({decomposed(chr(c))[-1] for c in DECOMPOSING if c < 0xF900 or c > 0x10000})


def is_mark(c: str) -> bool:
    """Of a class other than 0: it moves over the mark of the lowest class, or under the highest."""
    return decomposed(f"a\u0345{c}") != f"a\u0345{c}" or decomposed(f"a{c}\u0334") != f"a{c}\u0334"


def find_marks() -> list[str]:
    """Marks that do not decompose: all but marks leave U+0345 and U+0334 where they are."""
    found = []
    for first in range(0, len(CODE_POINTS), 256):
        some = list(map(chr, CODE_POINTS[first : first + 256]))
        text = "".join(f"a\u0345{c}a{c}\u0334" for c in some)
        if decomposed(text) != text:
            found += [c for c in some if ord(c) not in HANGUL and is_mark(c)]
    return [c for c in found if decomposed(c) == c]


MARKS = find_marks()
MARKED = {*MARKS, *map(chr, DECOMPOSING)}
decomposed_of = {chr(c): decomposed(chr(c)) for c in [*DECOMPOSING, *HANGUL]}
# Characters that combine or decompose today, but not in the reference's older tables.
YOUNGER = {
    c
    for c in map(chr, CODE_POINTS)
    if unicodedata.normalize("NFD", c) != decomposed_of.get(c, c)
    or (unicodedata.combining(c) != 0 and c not in MARKED)
}


def test_younger_characters_are_few():
    assert 0 < len(YOUNGER) < 300


def test_every_code_point():
    chars = [chr(c) for c in CODE_POINTS]
    hold_to_reference(joined(chars))
    # Each behind a starter with a mark, and before marks of the lowest class and the highest.
    hold_to_reference(joined(f"e\u0301{c}\u0345\u0334" for c in chars))


def test_every_pair():
    assert len(DECOMPOSING) > 2000
    assert len(SECONDS) > 60
    hold_to_reference(joined(f"{a}{b}" for a in FIRSTS for b in SECONDS))
    hold_to_reference(joined(f"{chr(a)}{b}" for a in range(0x20, 0x250) for b in MARKS))


def test_every_two_marks():
    """All in both orders with one of each class, and so the order of all classes."""
    assert len(MARKS) > 700
    classes: list[str] = []
    for m in MARKS:
        # One of each: no mark of the same class is among them. Marks of one class keep their order.
        if all(decomposed(f"a{m}{k}") != f"a{m}{k}" or decomposed(f"a{k}{m}") != f"a{k}{m}"
               for k in classes):  # fmt: skip
            classes.append(m)
    assert len(classes) == 54
    both = (pair for m in MARKS for k in classes for pair in (m + k, k + m))
    hold_to_reference(joined(f"x{pair}" for pair in both))


def test_hangul():
    lead, vowel = range(0x10FE, 0x1116), range(0x115E, 0x1179)
    trail, some = range(0x11A5, 0x11C6), range(0xABFE, 0xD7A6)
    hold_to_reference(joined(chr(a) + chr(b) for a in lead for b in vowel))
    hold_to_reference(joined(chr(a) + chr(b) for a in some for b in trail))
    hold_to_reference(joined(chr(a) + chr(b) + chr(c) for a in lead for b in vowel for c in trail))


def random_text(rng: random.Random, latin: list[str]) -> str:
    kinds = [MARKS, SECONDS, FIRSTS, latin, ["e", "s", "o", "\u1100", "\u1161", "\u11a8", "\u0344"]]
    some = [rng.choice(rng.choice(kinds)) for _ in range(rng.randint(1, 6))]
    texts = []
    for _ in range(rng.choice([1, 2, 4, 8, 8, 30])):
        kind = rng.choice([*kinds, some, some, some])
        times = rng.choice([1, 1, 1, 1, 2, 40])
        texts += [rng.choice(kind) if rng.random() < 0.9 else chr(rng.choice(CODE_POINTS))] * times
    return "".join(texts)


def runs_of_marks(text: str) -> int:
    """The longest run of what is not a starter, with what a starter decomposes to."""
    longest = run = 0
    marks = set(MARKS)
    for c in decomposed(text):
        run = run + 1 if c in marks else 0
        longest = max(longest, run)
    return longest


def test_random_texts():
    rng = random.Random(9)
    latin = [chr(c) for c in range(0x20, 0x250)]
    texts = [random_text(rng, latin) for _ in range(120_000)]
    texts = [t for t in texts if len(t) < MARKS_MAX // 4 or runs_of_marks(t) < MARKS_MAX]
    assert len(texts) > 100_000
    hold_to_reference(texts)


def test_limit_of_marks():
    for head in ("", "b", "e", "\u00e9", "\n"):
        own = len(decomposed(head)) - 1 if head == "\u00e9" else 0
        most = head + "\u0301\u0323" * (MARKS_MAX // 2 - own)
        hold_to_reference([most, most + "x"])
        assert ours([most + "\u0323\u0301" * (own + 1)]) == ["too many marks"]
