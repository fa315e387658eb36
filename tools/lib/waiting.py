# SPDX-License-Identifier: BSD-3-Clause
"""How many bytes wait for their ids after each byte of a text: GPT-2, texts fed byte by byte."""

import argparse
import base64
import random
from collections.abc import Iterator

import dpdk_tokd
import numpy as np
from packages import data_home

PIECE = 200_000  # bytes of each text
SEED = 7


def texts() -> Iterator[tuple[str, bytes]]:
    """Real text, then texts made to make ids wait."""
    rng = random.Random(SEED)
    corpus = data_home() / "corpus"
    for name in ("english", "code", "multi"):
        yield name, (corpus / f"{name}.txt").read_bytes()[1_000_000 : 1_000_000 + PIECE]
    chinese = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(PIECE // 3))
    yield "random Chinese, one pretoken", chinese.encode()
    english = (corpus / "english.txt").read_bytes()[:PIECE]
    yield "English without blanks", bytes(c for c in english if chr(c).isalpha())
    yield "base64", base64.b64encode(rng.randbytes(PIECE * 3 // 4))
    yield "random letters", bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz") for _ in range(PIECE))
    yield "random bytes", rng.randbytes(PIECE)
    for unit in (b"a", b"ab", b" ", b"\n", b"-", b"=", b"_", b"*", b"."):
        yield f"`{unit.decode()!r}` repeated".replace("'", ""), unit * (PIECE // len(unit) // 10)


def waiting(tokenizer: dpdk_tokd.Tokenizer, text: bytes) -> np.ndarray:
    """Bytes that wait after each byte of `text`."""
    stream = tokenizer.stream()
    counts = np.empty(len(text), dtype=np.uint32)
    for i in range(len(text)):
        stream.feed(text[i : i + 1])
        counts[i] = stream.waiting
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools/waiting", description=__doc__)
    parser.parse_args()
    tokenizer = dpdk_tokd.Tokenizer.load("gpt2")
    print("| text | bytes | median | p99 | most |\n|---|---|---|---|---|")
    for name, text in texts():
        counts = waiting(tokenizer, text)
        p50, p99 = np.percentile(counts, [50, 99])
        print(f"| {name} | {len(text):,} | {p50:.0f} | {p99:.0f} | {counts.max()} |")


main()
