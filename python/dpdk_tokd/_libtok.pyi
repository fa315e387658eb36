# SPDX-License-Identifier: BSD-3-Clause
"""Types of the C extension. Its users are the modules of this package; see _libtok.c."""

import mmap
from typing import Self, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap | npt.NDArray[np.generic]

class VocabInfoDict(TypedDict):
    name: str
    path: str
    format: str
    pretokenizer: str
    algo: str
    checksum: int
    n_ids: int
    n_merges: int
    n_special: int
    max_token_bytes: int
    table_bytes: int

class Vocab:
    def __new__(
        cls, name_or_path: str, pretokenizer: str | None, search_path: str | None,
        algo: str | None, /
    ) -> Self: ...
    def info(self) -> VocabInfoDict: ...
    def token(self, id: int, /) -> bytes | None: ...
    def encode(self, text: str | Buffer, strict_utf8: bool, /) -> bytearray: ...
    def decode(self, ids: Buffer, /) -> bytes: ...
    def stream(self, strict_utf8: bool, /) -> Stream: ...
    def decode_stream(self) -> DecodeStream: ...

class Stream:
    def feed(self, text: str | Buffer, last: bool, /) -> bytearray: ...
    def waiting(self) -> int: ...

class DecodeStream:
    def feed(self, ids: Buffer, last: bool, /) -> bytes: ...

def load_acquire_u64(buffer: Buffer, offset: int, /) -> int: ...
def load_fenced_u64(buffer: Buffer, offset: int, /) -> int: ...
def store_release_u64(buffer: Buffer, offset: int, value: int, /) -> None: ...
