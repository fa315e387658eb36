# SPDX-License-Identifier: BSD-3-Clause
"""Texts of the task waiting: of the corpora, random, repeated, and made so that bytes wait."""

import base64
import random
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import dpdk_tokd

REAL = 200_000  # bytes of real text
PIECE = 50_000  # bytes of each made text; a tenth of it where a unit is repeated
SEED = 7
REPEATED = {
    "a": b"a", "ab": b"ab", "blank": b" ", "newline": b"\n", "dash": b"-", "equals": b"=",
    "underscore": b"_", "star": b"*", "dot": b".",
}  # fmt: skip
MARKS = [chr(c) for c in range(0x300, 0x370) if unicodedata.combining(chr(c))]
SYMBOLS = "!?.,-=*_#/<>|~"
CONTRACTIONS = ["'s", "'LL", "'r", "'v", "'l", "'re", "'Ve", "''", "'"]


def letters(rng: random.Random, most: int, of: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    return "".join(rng.choices(of, k=rng.randint(1, most)))


# Each has something that some family holds back.
MADE: dict[str, Callable[[random.Random], str]] = {
    "words-between-1-to-300-blanks": lambda r: "word" + " " * r.randint(1, 300),
    "newlines-between-1-to-300-blanks": lambda r: "\n" + " " * r.randint(1, 300),
    "contractions-whole-and-begun": lambda r: letters(r, 4) + r.choice(CONTRACTIONS),
    "digits": lambda r: letters(r, 64, "0123456789"),
    "capitals-behind-an-ideograph": lambda r: "中" + letters(r, 100, "ABCDEFGHIJKLMNOP"),
    "letters-with-1-to-200-marks": lambda r: (
        r.choice("aeoAEO") + "".join(r.choices(MARKS, k=r.randint(1, 200)))
    ),
    "words-of-1-to-120-letters": lambda r: letters(r, 120) + " ",
    "1-to-100-of-a-symbol": lambda r: r.choice(SYMBOLS) * r.randint(1, 100),
}
CORPORA = ("english", "code", "multi")
RANDOM = ("random-chinese", "base64", "random-letters", "random-bytes")
BEGUN = ("long-tokens-begun", "last-100-ids-begun")
NAMES = (
    *CORPORA, "english-without-blanks", *RANDOM, *(f"repeated-{name}" for name in REPEATED),
    *MADE, *BEGUN,
)  # fmt: skip


def _encoded(make: Callable[[random.Random], str]) -> Callable[[random.Random], bytes]:
    return lambda rng: make(rng).encode()


def until_full(rng: random.Random, make: Callable[[random.Random], bytes]) -> bytes:
    """PIECE bytes of concatenated make() results."""
    out = bytearray()
    while len(out) < PIECE:
        out += make(rng)
    return bytes(out[:PIECE])


def every(corpus: Path) -> Iterator[tuple[str, bytes]]:
    """All texts except BEGUN, which depend on the vocabulary."""
    for name in CORPORA:
        yield name, (corpus / f"{name}.txt").read_bytes()[1_000_000 : 1_000_000 + REAL]
    english = (corpus / "english.txt").read_bytes()[:REAL]
    yield "english-without-blanks", bytes(c for c in english if chr(c).isalpha())
    rng = random.Random(SEED)
    chinese = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(PIECE // 3))
    yield "random-chinese", chinese.encode()  # one pretoken
    yield "base64", base64.b64encode(rng.randbytes(PIECE * 3 // 4))
    yield "random-letters", until_full(rng, lambda r: letters(r, 64).encode())
    yield "random-bytes", rng.randbytes(PIECE)
    for name, unit in REPEATED.items():
        yield f"repeated-{name}", unit * (PIECE // len(unit) // 10)
    rng = random.Random(SEED)
    for name, make in MADE.items():
        yield name, until_full(rng, _encoded(make))


def begun(tokenizer: dpdk_tokd.Tokenizer) -> Iterator[tuple[str, bytes]]:
    """Beginnings of this vocabulary's longest tokens, and of its last ones, which include added
    tokens: ids wait for the rest of the token."""
    tokens = [
        token for i in range(tokenizer.info.n_ids) if (token := _token(tokenizer, i)) is not None
    ]
    longest = sorted((t for t in tokens if t.strip()), key=len)[-2000:]
    for name, some in zip(BEGUN, (longest, tokens[-100:]), strict=True):
        rng = random.Random(SEED)

        def cut(r: random.Random, of: list[bytes] = some) -> bytes:
            return (t := r.choice(of))[: r.randint(1, len(t))] + b"\n"

        yield name, until_full(rng, cut)


def _token(tokenizer: dpdk_tokd.Tokenizer, token: int) -> bytes | None:
    try:
        return tokenizer.decode_bytes([token])
    except ValueError:
        return None
