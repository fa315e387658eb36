# SPDX-License-Identifier: BSD-3-Clause
"""Types of the C extension. Its users are the modules of this package; see libtok.c."""

import mmap
from collections.abc import Iterable
from typing import Final, Self, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap | npt.NDArray[np.generic]

STRICT_UTF8: Final[int]
TEMPLATE: Final[int]
ADDED_AS_TEXT: Final[int]
SPECIAL: Final[int]
THREADS_MAX: Final[int]

class TruncationDict(TypedDict):
    max_length: int
    stride: int
    left: bool
    pairs_only: bool

class PaddingDict(TypedDict):
    length: int
    fixed: bool
    multiple_of: int
    left: bool
    id: int

class ShapeDict(TypedDict):
    before: bytearray
    after: bytearray
    truncation: TruncationDict | None
    padding: PaddingDict | None

class VocabInfoDict(TypedDict):
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

class Vocab:
    def __new__(
        cls,
        name_or_path: str,
        pretokenizer: str | None,
        search_path: str | None,
        algo: str | None,
        /,
    ) -> Self: ...
    def info(self) -> VocabInfoDict: ...
    def token(self, id: int, /) -> bytes | None: ...
    def shape(self) -> ShapeDict: ...
    def specials(self) -> bytearray: ...
    def encode(self, text: str | Buffer, flags: int, most: int, left: bool, /) -> bytearray: ...
    def encode_offsets(
        self, text: str | Buffer, flags: int, most: int, left: bool, /
    ) -> tuple[bytearray, bytearray]: ...
    def encode_batch(
        self, texts: Iterable[str | Buffer], flags: int, most: int, left: bool, threads: int, /
    ) -> tuple[bytearray, bytearray]: ...
    def decode(self, ids: Buffer, /) -> bytes: ...
    def stream(self, flags: int, /) -> Stream: ...
    def decode_stream(self) -> DecodeStream: ...

class Stream:
    def feed(self, text: str | Buffer, last: bool, /) -> bytearray: ...
    def waiting(self) -> int: ...

class DecodeStream:
    def feed(self, ids: Buffer, last: bool, /) -> bytes: ...

def load_acquire_u64(buffer: Buffer, offset: int, /) -> int: ...
def load_fenced_u64(buffer: Buffer, offset: int, /) -> int: ...
def store_release_u64(buffer: Buffer, offset: int, value: int, /) -> None: ...
def dlpack(
    owner: object,
    address: int,
    rows: int,
    columns: int,
    code: int,
    bits: int,
    device_type: int,
    device_id: int,
    versioned: bool,
    /,
) -> object: ...
