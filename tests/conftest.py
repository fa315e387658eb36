# SPDX-License-Identifier: BSD-3-Clause
"""What all suites in Python share: a vocabulary, and the reference that decides what its ids are.

GPT-2's vocabulary is looked for in $TOK_TEST_VOCAB_DIR, in the folders where dpdk-tokd looks
($TOK_VOCAB_PATH, else ~/.local/share/dpdk-tokd/vocab), and in ../shared/vocab beside the checkout.
"""

from __future__ import annotations

import base64
import itertools
import lzma
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
NAMES = ("gpt2.json", "gpt2/tokenizer.json", "gpt2.tiktoken")


def _folders() -> Iterator[Path]:
    if folder := os.environ.get("TOK_TEST_VOCAB_DIR"):
        yield Path(folder)
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    search = os.environ.get("TOK_VOCAB_PATH") or str(data / "dpdk-tokd/vocab")
    yield from map(Path, filter(None, search.split(":")))


@pytest.fixture(scope="session")
def gpt2_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that holds GPT-2's vocabulary, in a format libtok reads."""
    looked = list(_folders())
    for folder in looked:
        for name in NAMES:
            if (folder / name).is_file():
                return folder / name
    packed = REPOSITORY.parent / "shared/vocab/gpt2.json.xz"
    if packed.is_file():
        unpacked = tmp_path_factory.mktemp("vocab") / "gpt2.json"
        unpacked.write_bytes(lzma.decompress(packed.read_bytes()))
        return unpacked
    pytest.skip(
        f"no GPT-2 vocabulary ({', '.join(NAMES)} in {', '.join(map(str, looked))}, or {packed}): "
        "run tools/fetch-vocab, or set TOK_TEST_VOCAB_DIR"
    )


def _merges_of(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The merges a tiktoken file implies: each token's last step is the merge of the two parts
    that the merges of lower rank leave of it."""
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [token[i : i + 1] for i in range(len(token))]
        while len(parts) > 2:
            pairs = [ranks.get(a + b, rank) for a, b in itertools.pairwise(parts)]
            i = min(range(len(pairs)), key=pairs.__getitem__)
            assert pairs[i] < rank, f"token {token!r} has no merge"
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            merges.append((parts[0], parts[1]))
    return merges


def _reference_of_tiktoken(path: Path):
    """GPT-2's ranks as the reference's own model: its pretokenizer is ByteLevel's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    # tokenizers names bytes by printable characters: those of ByteLevel, in the order of GPT-2.
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    hidden = [b for b in range(256) if b not in shown]
    name = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}

    def spell(token: bytes) -> str:
        return "".join(name[b] for b in token)

    ranks = {}
    for line in path.read_text("ascii").split("\n"):
        if line:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    model = models.BPE(
        vocab={spell(token): rank for token, rank in ranks.items()},
        merges=[(spell(a), spell(b)) for a, b in _merges_of(ranks)],
    )
    reference = Tokenizer(model)
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    reference.decoder = decoders.ByteLevel()
    return reference


@pytest.fixture(scope="session")
def gpt2_reference(gpt2_file: Path):
    """Hugging Face's Tokenizer, loaded by its own code; special tokens are text to it."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    if gpt2_file.suffix == ".tiktoken":
        reference = _reference_of_tiktoken(gpt2_file)
    else:
        reference = tokenizers.Tokenizer.from_file(str(gpt2_file))
        reference.no_truncation()
        reference.no_padding()
    reference.encode_special_tokens = True
    return reference


@pytest.fixture(scope="session")
def gpt2(gpt2_file: Path):
    """The package's Tokenizer of the same file."""
    dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")
    return dpdk_tokd.Tokenizer.load(str(gpt2_file))
