# SPDX-License-Identifier: BSD-3-Clause
"""Texts that tests feed: real text of the repository, and what breaks tokenizers elsewhere."""

import random
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

TEXTS = {
    "empty": b"",
    "word": b"hello",
    "contractions": b"I'm sure they'll say we'd've, don't you'RE 's't",
    "blanks": b"a  b   c\t\td\n\n\ne \n f\r\n  ",
    "trailing blanks": b"the end    ",
    "unicode blanks": "a\u00a0\u00a0b\u2003\u3000c\u200bd".encode(),
    "digits": b"3.14159 1000000 0x7fffffff 2024-12-31",
    "accents": "Fianc\u00e9e na\u00efve \u00c5ngstr\u00f6m e\u0301tude".encode(),
    "chinese": "在很久以前的一个小村庄里，住着一位老人。".encode(),
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️".encode(),
    "mixed scripts": "Привет мир שלום עולם مرحبا नमस्ते ๑๒๓".encode(),
    "special tokens as text": b"<|endoftext|> and <|endoftext|>",
    "control characters": bytes(range(32)) + b"\x7f",
    "invalid start": b"ab\xffcd\xfe",
    "stray continuation": b"a\x80b\xbf\xbfc",
    "overlong": b"\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf",
    "surrogates": b"\xed\xa0\x80 \xed\xbf\xbf",
    "beyond unicode": b"\xf4\x90\x80\x80 \xf5\x80",
    "cut character": "euro €".encode()[:-1],
    "cut, then text": b"\xe2\x82 and \xf0\x9f\x91 so on",
    "run of one letter": b"a" * 300,
    "run of dashes": b"-" * 300,
    "base64": b"aGVsbG8gd29ybGQgdGhpcyBpcyBhIHRlc3Qgb2YgYmFzZTY0IGVuY29kaW5n" * 4,
}


def random_unicode(rng: random.Random, n: int) -> str:
    """`n` characters of all planes, the common ones more often; no surrogates."""
    ranges = [(0x20, 0x7E), (0x09, 0x0D), (0xA0, 0x24F), (0x370, 0x5FF), (0x900, 0xDFF)]
    ranges += [(0x2000, 0x206F), (0x3000, 0x9FFF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(n))


def random_bytes(rng: random.Random, n: int) -> bytes:
    """Bytes that are often nearly UTF-8: pieces of characters, and noise."""
    out = b""
    while len(out) < n:
        piece = random_unicode(rng, 3).encode()
        out += piece[: rng.randint(1, len(piece))] if rng.random() < 0.5 else rng.randbytes(2)
    return out[:n]


def documents() -> bytes:
    """Real text and source code, about 100 kB: documents and headers of the repository."""
    files = [*REPOSITORY.glob("doc/**/*.md"), *REPOSITORY.glob("lib/tokenizer/**/*.[ch]")]
    files += [*REPOSITORY.glob("app/**/*.c"), REPOSITORY / "include/tokd/wire.h"]
    return b"".join(f.read_bytes() for f in sorted(files))[:100_000]


def different_texts(n: int) -> Iterator[bytes]:
    """Each another one; most of them fit a packet, some need a dozen."""
    rng, real = random.Random(11), documents()
    for i in range(n):
        size = 12_000 if rng.random() < 0.02 else rng.randrange(1200)
        at = rng.randrange(len(real) - size)
        yield b"%d %s" % (i, real[at : at + size])
