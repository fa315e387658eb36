# SPDX-License-Identifier: BSD-3-Clause
"""Texts to time tokenizers with: cut from the corpora by bytes or tokens, no two equal, with their
right ids."""

import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
import tiktoken
from dpdk_tokd.fetch import vocabs
from dpdk_tokd.fetch.packages import data_home
from tokenizers import Tokenizer

from bench.texts import fetch_corpus, reference
from bench.texts.mix import CHARACTERS_A_TOKEN
from bench.texts.reference import LongestMatch, ReferenceMismatch
from bench.texts.slices import Cursor, EndOfCorpus, Slice

CORPORA = (*fetch_corpus.CORPORA, "mixed")
VOCABULARIES = (
    "gpt2", "cl100k_base", "o200k_base", "llama3", "qwen3", "bert-base-uncased", "gemma3", "t5",
    "xlmr",
)  # fmt: skip
# Whose licence goes with them, or which no package has, so that tools/fetch-vocab has none: what a
# person got, as NAME.json in its folder, or xz-compressed in a folder beside the repository.
NOT_FETCHED = ("llama3", "qwen3", "gemma3", "xlmr")
BESIDE = Path(__file__).resolve().parents[4] / "shared" / "vocab"
UNITS = ("bytes", "tokens")
# Warm-up: from the end of a corpus, which no other text uses; in texts of about the timed length,
# since a library's fastest call can depend on it, but no longer than WARM_UP_TEXT.
WARM_UP, WARM_UP_TEXT = 32_768, 1024  # bytes


@dataclass(frozen=True)
class Kind:
    """Texts of one kind."""

    vocabulary: str
    corpus: str
    unit: str
    length: int


@dataclass(frozen=True)
class Vocabulary:
    """`second`: a second reference, if there is one; `greedy`: ids by longest match, if defined."""

    name: str
    file: Path
    json: Path  # the same as tokenizer.json
    tokenizer: Tokenizer
    second: tiktoken.Encoding | None
    greedy: LongestMatch | None


class NoVocabulary(Exception):
    """It is not here; the message says how one comes by it."""


def own_json(name: str, folder: Path) -> Path:
    """A tokenizer.json that is not fetched, as a user would name it. Raises NoVocabulary."""
    there, packed = data_home() / "vocab" / f"{name}.json", BESIDE / f"{name}.json.xz"
    if there.is_file():
        return there
    if not packed.is_file():
        raise NoVocabulary(f"{there} is missing: tools/fetch-vocab has no package with it")
    path = folder / f"{name}.json"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


def _as_text(file: Path) -> Tokenizer:
    """Special tokens are taken as text; nothing is cut off or added."""
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def load(name: str, folder: Path) -> Vocabulary:
    """NoVocabulary: why."""
    if name in NOT_FETCHED:
        file = own_json(name, folder)
        return Vocabulary(name, file, file, _as_text(file), None, None)
    file, made = vocabs.fetch(name, data_home() / "vocab"), folder / f"{name}.json"
    if f"{name}-spiece" in vocabs.table():  # which sentencepiece reads
        vocabs.fetch(f"{name}-spiece", data_home() / "vocab")
    if file.suffix == ".json":
        return Vocabulary(name, file, file, _as_text(file), None, None)
    if name in reference.PATTERNS:
        tokenizer = reference.load_ranks(file, name)
        second = reference.load_tiktoken(file, name)
        greedy = LongestMatch(tokenizer) if name == "gpt2" else None
    else:
        tokenizer, second, greedy = reference.load_bert_uncased(file), None, None
    tokenizer.save(str(made))
    return Vocabulary(name, file, made, tokenizer, second, greedy)


def try_load(name: str, folder: Path) -> Vocabulary | str:
    """Or why it is not here."""
    try:
        return load(name, folder)
    except NoVocabulary as error:
        return str(error)


def _by_turns(texts: list[str]) -> Iterator[str]:
    """Their documents, interleaved."""
    rounds = zip_longest(*map(fetch_corpus.documents, texts), fillvalue="")
    return chain.from_iterable(rounds)


@cache
def corpus(name: str) -> str:
    paths = fetch_corpus.fetch(data_home() / "corpus")
    if name == "mixed":
        return "".join(_by_turns([path.read_text("utf-8") for path in paths.values()]))
    return paths[name].read_text("utf-8")


def _bytes(kind: Kind) -> int:
    """About the length of a text in bytes."""
    return kind.length * (1 if kind.unit == "bytes" else CHARACTERS_A_TOKEN)


def how_many(kind: Kind, calls: int, megabytes: float) -> int:
    """The number of texts: at most `calls` and `megabytes`, at least one."""
    return max(1, min(calls, int(megabytes * 1e6 / _bytes(kind))))


def _different(text: str, kind: Kind, tokenizer: Tokenizer, count: int) -> list[str]:
    """`count` texts from all over a corpus, fewer if it ends."""
    # Duplicates are skipped, so the spacing leaves room for more.
    tries = count + count // 4
    cursor = Cursor(text, skip=max(0, (len(text) - tries * _bytes(kind)) // tries))
    found: dict[str, None] = {}
    try:
        while len(found) < count:
            if kind.unit == "bytes":
                found[cursor.bytes(kind.length)] = None
            else:
                found[cursor.tokens(tokenizer, kind.length)] = None
    except EndOfCorpus:
        pass
    return list(found)


def _agreed(piece: Slice, second: tiktoken.Encoding | None) -> Slice:
    if second is not None and second.encode_ordinary(piece.text) != piece.ids.tolist():
        raise ReferenceMismatch(f"tokenizers and tiktoken disagree on {piece.text[:80]!r}...")
    return piece


def cut(
    kind: Kind, vocabulary: Vocabulary, count: int, own: Mapping[str, Path] | None = None
) -> tuple[list[Slice], list[Slice]]:
    """Texts for the warm-up, and texts to time. `own`: the user's corpora. Raises ReferenceMismatch
    if the references disagree."""
    own_one = (own or {}).get(kind.corpus)
    text = corpus(kind.corpus) if own_one is None else own_one.read_text("utf-8")
    tokenizer, size = vocabulary.tokenizer, str(kind.length)

    def right(texts: list[str]) -> list[Slice]:
        found = (np.array(reference.ids(tokenizer, one), np.uint32) for one in texts)
        return [
            _agreed(Slice(kind.corpus, size, one, ids), vocabulary.second)
            for one, ids in zip(texts, found, strict=True)
        ]

    warm_up = replace(kind, unit="bytes", length=min(_bytes(kind), WARM_UP_TEXT))
    few = WARM_UP // warm_up.length
    return (  # a character has at least one byte
        right(_different(text[-WARM_UP:], warm_up, tokenizer, few)),
        right(_different(text[:-WARM_UP], kind, tokenizer, count)),
    )


def greedy(pieces: list[Slice], definition: LongestMatch) -> list[Slice]:
    """The same texts with ids by longest match."""
    return [replace(p, ids=np.array(definition.ids(p.text), np.uint32)) for p in pieces]
