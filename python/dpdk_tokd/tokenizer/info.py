# SPDX-License-Identifier: BSD-3-Clause
"""What a vocabulary's file says: properties, template, truncation, padding."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from .batch import Side


@dataclass(frozen=True, slots=True)
class VocabInfo:
    """Properties of a vocabulary, and its origin.

    `checksum` is equal for equal tokenizers, whatever their file format. The wire protocol and the
    token ring identify a vocabulary by it. `source` is what a "tokv" was compiled from, else None.
    Ids are below `n_ids`; `n_added` counts added tokens that are not special. `table_bytes` is the
    memory of the tables, `storage` where it is. `isa` is the instruction set that encoding uses;
    the environment variable TOK_ISA selects another.
    """

    name: str
    path: str
    format: str
    source: str | None
    pretokenizer: str
    normalizer: str
    algo: str
    checksum: int
    n_ids: int
    n_merges: int
    n_special: int
    n_added: int
    max_token_bytes: int
    table_bytes: int
    storage: str
    isa: str


class Template(NamedTuple):
    """Ids that the vocabulary puts before and after a text: BERT's [CLS] and [SEP]."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Truncation:
    """Truncation of a `tokenizer.json`: to `max_length` ids, template included, dropping ids at
    `side`. `stride` is not used by this package."""

    max_length: int
    side: Side
    stride: int


@dataclass(frozen=True, slots=True)
class Padding:
    """Padding of a `tokenizer.json`: with `pad_id` at `side`, to `length` ids (None: those of the
    longest text), rounded up to `multiple_of` (None: not rounded)."""

    length: int | None
    side: Side
    multiple_of: int | None
    pad_id: int


def file_state(file: str | int) -> tuple[int, int, int]:
    """Another one if the file was replaced or written."""
    now = os.stat(file)
    return now.st_ino, now.st_size, now.st_mtime_ns
