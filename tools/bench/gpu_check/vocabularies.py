# SPDX-License-Identifier: BSD-3-Clause
"""Published vocabularies where this machine has them: as tools/fetch-vocab stores them, or
xz-compressed in ../shared/vocab beside the repository."""

from __future__ import annotations

import lzma
import os
from collections.abc import Iterator
from pathlib import Path

from .build import ROOT

FILES: dict[str, tuple[str, ...]] = {
    "gpt2": ("gpt2.json", "gpt2.tiktoken"),
    "cl100k": ("cl100k_base.tiktoken", "cl100k.json"),
    "o200k": ("o200k_base.tiktoken",),
    "llama3": ("llama3.json",),
    "qwen3": ("qwen3.json",),
    "gemma3": ("gemma3.json",),
    "bert": ("bert-base-uncased.txt", "bert_vocab.txt"),
}
BPE = ("gpt2", "cl100k", "o200k", "llama3", "qwen3")  # exact byte-level BPE
# What a device encodes: the vocabulary, and options of gpu_check_texts and gpu_time_texts.
WAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{name: (name, ()) for name in BPE},
    "gpt2 greedy": ("gpt2", ("--greedy",)),
    "bert": ("bert", ()),
}
REFUSED = ("gemma3",)


def folders() -> Iterator[Path]:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    search = os.environ.get("TOK_VOCAB_PATH") or str(data / "dpdk-tokd/vocab")
    yield from map(Path, filter(None, search.split(":")))
    yield ROOT.parent / "shared/vocab"


def file_of(name: str, folder: Path) -> Path | None:
    """The vocabulary's file; an unpacked one is written to `folder`. None: it is not here."""
    for place in folders():
        for file in FILES[name]:
            if (place / file).is_file():
                return place / file
            packed = place / f"{file}.xz"
            if packed.is_file():
                unpacked = folder / file
                unpacked.write_bytes(lzma.decompress(packed.read_bytes()))
                return unpacked
    return None
