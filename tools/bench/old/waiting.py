# SPDX-License-Identifier: BSD-3-Clause
"""How many bytes wait for their ids after each byte of a text that is fed byte by byte.

A table in Markdown: a text a row, a vocabulary a column, in a cell the median, the 99th percentile
and the most; "(ends)" where more of the text would wait than a stream can hold. V is a name (found
as dpdk-tokd finds it, or packed in ../shared/vocab beside the repository) or a path, of any
format, a file or a folder; with :greedy, longest match.
"""

import argparse
import base64
import lzma
import os
import random
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import dpdk_tokd
import numpy as np
from bench.programs import ROOT
from bench.texts.packages import data_home

FAMILIES = (
    *("gpt2", "cl100k_base", "llama3", "qwen3", "o200k_base", "tekken", "deepseek"),
    *("bert-base-uncased", "gpt2:greedy"),
)
ENDINGS = (
    *(".json", "/tokenizer.json", ".tiktoken", ".txt", "/vocab.txt", "/tekken.json"),
    *(".model", "/tokenizer.model", ".tokv"),
)
SHARED = ROOT.parent / "shared" / "vocab"
REAL = 200_000  # bytes of real text
PIECE = 50_000  # bytes of each text that is made; a tenth where a unit is repeated
SEED = 7


# ---- texts ----


def until_full(rng: random.Random, make: Callable[[random.Random], bytes]) -> bytes:
    """Pieces of make(), one after the other, PIECE bytes of them."""
    out = bytearray()
    while len(out) < PIECE:
        out += make(rng)
    return bytes(out[:PIECE])


def real() -> Iterator[tuple[str, bytes]]:
    corpus = data_home() / "corpus"
    for name in ("english", "code", "multi"):
        yield name, (corpus / f"{name}.txt").read_bytes()[1_000_000 : 1_000_000 + REAL]
    english = (corpus / "english.txt").read_bytes()[:REAL]
    yield "English without blanks", bytes(c for c in english if chr(c).isalpha())


def letters(rng: random.Random, most: int, of: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    return "".join(rng.choices(of, k=rng.randint(1, most)))


def random_texts(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    chinese = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(PIECE // 3))
    yield "random Chinese, one pretoken", chinese.encode()
    yield "base64", base64.b64encode(rng.randbytes(PIECE * 3 // 4))
    yield "random letters", until_full(rng, lambda r: letters(r, 64).encode())
    yield "random bytes", rng.randbytes(PIECE)


def repeated() -> Iterator[tuple[str, bytes]]:
    for unit in ("a", "ab", " ", "\n", "-", "=", "_", "*", "."):
        yield f"`{unit!r}` repeated".replace("'", ""), unit.encode() * (PIECE // len(unit) // 10)


def made(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Each to make one thing wait that some family holds back."""
    marks = [chr(c) for c in range(0x300, 0x370) if unicodedata.combining(chr(c))]
    symbols = "!?.,-=*_#/<>|~"
    pieces = {
        "words between 1 to 300 blanks": lambda r: "word" + " " * r.randint(1, 300),
        "ends of lines between 1 to 300 blanks": lambda r: "\n" + " " * r.randint(1, 300),
        "contractions, whole and begun": lambda r: letters(r, 4)
        + r.choice(["'s", "'LL", "'r", "'v", "'l", "'re", "'Ve", "''", "'"]),
        "digits": lambda r: letters(r, 64, "0123456789"),
        "capitals behind an ideograph": lambda r: "中" + letters(r, 100, "ABCDEFGHIJKLMNOP"),
        "letters with 1 to 200 marks": lambda r: r.choice("aeoAEO")
        + "".join(r.choices(marks, k=r.randint(1, 200))),
        "words of 1 to 120 letters": lambda r: letters(r, 120) + " ",
        "1 to 100 of a symbol": lambda r: r.choice(symbols) * r.randint(1, 100),
    }
    for name, make in pieces.items():
        yield name, until_full(rng, lambda r, make=make: make(r).encode())


BEGUN = ("long tokens, begun", "the last 100 ids, begun")


def begun(tokenizer: dpdk_tokd.Tokenizer) -> Iterator[tuple[str, bytes]]:
    """Beginnings of long tokens of this vocabulary, and of its last ones, among which added tokens
    are: ids wait for the rest of one."""
    count = tokenizer.info.n_ids
    tokens = [tokenizer.decode([i]) for i in range(count) if known(tokenizer, i)]
    longest = sorted((t for t in tokens if t.strip()), key=len)[-2000:]
    for name, some in zip(BEGUN, (longest, tokens[-100:]), strict=True):
        rng = random.Random(SEED)
        cut = lambda r, of=some: (t := r.choice(of))[: r.randint(1, len(t))] + b"\n"  # noqa: E731
        yield name, until_full(rng, cut)


def known(tokenizer: dpdk_tokd.Tokenizer, token: int) -> bool:
    try:
        tokenizer.decode([token])
    except ValueError:
        return False
    return True


# ---- vocabularies ----


def folders() -> list[Path]:
    path = os.environ.get("TOK_VOCAB_PATH") or str(data_home() / "vocab")
    return [Path(folder) for folder in path.split(":") if folder]


def find(name: str, to: Path) -> Path | None:
    """The file of a vocabulary; what is packed is unpacked below `to`."""
    if Path(name).is_file() or ("/" in name and Path(name).is_dir()):
        return Path(name)
    for folder in folders():
        for ending in ENDINGS:
            if (file := folder / f"{name}{ending}").is_file():
                return file
    for ending in (".json", ".tiktoken"):
        if (packed := SHARED / f"{name}{ending}.xz").is_file():
            file = to / f"{name}{ending}"
            file.write_bytes(lzma.decompress(packed.read_bytes()))
            return file
    return None


def load(name: str, to: Path) -> dpdk_tokd.Tokenizer | str:
    """The vocabulary, or why there is none."""
    plain, _, algo = name.partition(":")
    file = find(plain, to)
    if file is None:
        return f"no file of it in {':'.join(map(str, folders()))} or {SHARED}"
    try:
        return dpdk_tokd.Tokenizer.load(str(file), algo=algo or None)
    except ValueError as wrong:
        return str(wrong)


# ---- the measure ----


def waiting(tokenizer: dpdk_tokd.Tokenizer, text: bytes) -> np.ndarray:
    """Bytes that wait after each byte of `text`, up to where the stream ends for it is too many."""
    stream = tokenizer.stream()
    counts = np.empty(len(text), dtype=np.uint32)
    for i in range(len(text)):
        try:
            stream.feed(text[i : i + 1])
        except ValueError:
            return counts[:i]
        counts[i] = stream.waiting
    return counts


def cell(counts: np.ndarray, text: bytes) -> str:
    p50, p99 = np.percentile(counts, [50, 99])
    ends = " (ends)" if len(counts) < len(text) else ""
    return f"{p50:.0f} / {p99:.0f} / {counts.max()}{ends}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tools/waiting",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "vocabularies",
        nargs="*",
        metavar="V",
        default=FAMILIES,
        help=f"default: {', '.join(FAMILIES)}",
    )
    parser.add_argument(
        "--bytes", type=int, default=REAL, metavar="N", help="of each text no more than N"
    )
    options = parser.parse_args()
    names = options.vocabularies
    if not (corpus := data_home() / "corpus").is_dir():
        parser.error(f"{corpus} is missing: run tools/fetch-corpus")
    texts = [*real(), *random_texts(random.Random(SEED)), *repeated(), *made(random.Random(SEED))]
    columns: list[dict[str, str]] = []
    missing = []
    with tempfile.TemporaryDirectory(prefix="tokd-waiting-") as folder:
        for name in names:
            columns.append({})
            tokenizer = load(name, Path(folder))
            if isinstance(tokenizer, str):
                missing.append(f"\n{name}: not measured: {tokenizer}")
                continue
            for row, text in [*texts, *begun(tokenizer)]:
                some = text[: options.bytes]
                columns[-1][row] = cell(waiting(tokenizer, some), some)
    print(f"| text | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for row in [*(row for row, _ in texts), *BEGUN]:
        print(f"| {row} | {' | '.join(column.get(row, '-') for column in columns)} |")
    print("\n".join(missing), end="\n" if missing else "")


main()
