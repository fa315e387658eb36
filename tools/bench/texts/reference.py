# SPDX-License-Identifier: BSD-3-Clause
"""The reference for right ids: Hugging Face `tokenizers`.

Its classes get GPT-2's vocabulary and the merges that follow from its ranks. Its ids are checked
against tiktoken, a second independent implementation, which reads the ranks themselves.
"""

import base64
import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import tiktoken
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from bench.task import WrongIds

END_OF_TEXT = "<|endoftext|>"
CHECKED_TWICE = 500  # texts checked with both, at most
T = TypeVar("T")

# GPT-2's pattern, as tiktoken writes it (tiktoken_ext/openai_public.py, r50k_pat_str).
GPT2_PATTERN = (
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
)
# The others of OpenAI's, as regular expressions that both references read.
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_PREFIX, _CONTRACTION = r"[^\r\n\p{L}\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPERS, _LOWERS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "gpt2": GPT2_PATTERN,
    "cl100k_base": (
        rf"{_CONTRACTION}|{_PREFIX}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
    ),
    "o200k_base": (
        f"{_PREFIX}{_UPPERS}*{_LOWERS}+{_CONTRACTION}?|{_PREFIX}{_UPPERS}+{_LOWERS}*{_CONTRACTION}?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + _SPACES
    ),
}


class ReferenceMismatch(WrongIds):
    """The two references disagree."""


def read_ranks(path: Path) -> dict[bytes, int]:
    """A .tiktoken file: lines with a token in base64 and its rank, which is its id."""
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def byte_alphabet() -> list[str]:
    """The character for each byte in GPT-2's vocab.json (encoder.py, bytes_to_unicode)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (b for b in range(256) if b not in printable)
    alphabet = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [alphabet[b] for b in range(256)]


def parents(ranks: dict[bytes, int], token: bytes) -> tuple[bytes, bytes]:
    """The two tokens merged into this one: its BPE by earlier merges only."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, len(ranks)) for a, b in itertools.pairwise(parts)]
        rank = min(pairs)
        if rank >= ranks[token]:
            raise ReferenceMismatch(f"token {token!r} is not a merge of two older ones")
        i = pairs.index(rank)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0], parts[1]


def from_ranks(ranks: dict[bytes, int], name: str = "gpt2") -> Tokenizer:
    """As Hugging Face's own classes make it of vocab.json and merges.txt, here derived."""
    alphabet = byte_alphabet()

    def spelled(token: bytes) -> str:
        return "".join(alphabet[b] for b in token)

    in_order = sorted(ranks, key=ranks.__getitem__)
    vocab = {spelled(token): ranks[token] for token in in_order}
    merges = [
        (spelled(left), spelled(right))
        for left, right in (parents(ranks, token) for token in in_order if len(token) > 1)
    ]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    if name == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        split = pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated")
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END_OF_TEXT])
    return tokenizer


def load_gpt2(ranks_file: Path) -> Tokenizer:
    return load_ranks(ranks_file, "gpt2")


def load_ranks(ranks_file: Path, name: str) -> Tokenizer:
    """The tokenizer of a .tiktoken file, special tokens taken as text."""
    tokenizer = from_ranks(read_ranks(ranks_file), name)
    tokenizer.encode_special_tokens = True
    return tokenizer


def load_bert_uncased(vocab_txt: Path) -> Tokenizer:
    """BERT's uncased tokenizer by Hugging Face's classes, special tokens taken as text."""
    tokenizer = Tokenizer(models.WordPiece.from_file(str(vocab_txt), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.encode_special_tokens = True
    return tokenizer


def load_tiktoken(ranks_file: Path, name: str = "gpt2") -> tiktoken.Encoding:
    ranks = read_ranks(ranks_file)
    return tiktoken.Encoding(
        name,
        pat_str=PATTERNS[name],
        mergeable_ranks=ranks,
        special_tokens={END_OF_TEXT: len(ranks)},
    )


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


class LongestMatch:
    """Greedy ids by definition: of each pretoken the longest token that begins it, then the longest
    that begins the rest."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocab = tokenizer.get_vocab(with_added_tokens=False)
        self._split = tokenizer.pre_tokenizer.pre_tokenize_str
        self._longest = max(map(len, self._vocab))

    def ids(self, text: str) -> list[int]:
        found = []
        for word, _ in self._split(text):
            at = 0
            while at < len(word):
                ends = range(min(len(word), at + self._longest), at, -1)
                end = next(end for end in ends if word[at:end] in self._vocab)
                found.append(self._vocab[word[at:end]])
                at = end
        return found


def some(texts: Sequence[T]) -> Sequence[T]:
    """Those to verify, from all over."""
    return texts[:: 1 + len(texts) // CHECKED_TWICE]


def verify(tokenizer: Tokenizer, ranks_file: Path, samples: Iterable[str]) -> int:
    """How many bytes of text tiktoken agrees on. ReferenceMismatch at the first it does not."""
    second = load_tiktoken(ranks_file)
    agreed = 0
    for text in samples:
        if ids(tokenizer, text) != second.encode_ordinary(text):
            raise ReferenceMismatch(f"tokenizers and tiktoken disagree on {text[:80]!r}...")
        agreed += len(text.encode())
    return agreed
