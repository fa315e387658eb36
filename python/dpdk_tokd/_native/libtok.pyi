# SPDX-License-Identifier: BSD-3-Clause
"""Types of the C extension. Its users are the modules of this package; see libtok.c."""

from collections.abc import Iterable
from typing import Final, Literal, Self, TypeAlias, TypedDict, TypeVar, final, overload

import numpy as np
import numpy.typing as npt

from ..tokenizer.batch import DTypeLike, Ids, Side, TokensInText, Uint32Ids
from ..tokenizer.stream import Buffer, Text

# Of engine.c: outputs, where the shown lanes are in it, what the engine writes, its own counts,
# lanes, room.
EngineMemory: TypeAlias = tuple[Buffer, int, Buffer, Buffer, int, int]

Offsets: TypeAlias = npt.NDArray[np.uint64]

StreamKind = TypeVar("StreamKind", bound=Stream)

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
    before: Ids
    after: Ids
    truncation: TruncationDict | None
    padding: PaddingDict | None

class AddedDict(TypedDict):
    id: int
    single_word: bool
    lstrip: bool
    rstrip: bool
    normalized: bool
    special: bool

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
        strict_utf8: bool,
        text: Buffer = ...,
        /,
    ) -> Self: ...
    @overload
    def encode(
        self,
        text: Text,
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        return_offsets: Literal[False] = False,
    ) -> Uint32Ids: ...
    @overload
    def encode(
        self,
        text: Text,
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        return_offsets: Literal[True],
    ) -> tuple[Uint32Ids, Offsets]: ...
    @overload
    def encode(
        self,
        text: Text,
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        return_offsets: Literal[False] = False,
    ) -> Ids: ...
    @overload
    def encode(
        self,
        text: Text,
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        return_offsets: Literal[True],
    ) -> tuple[Ids, Offsets]: ...
    @overload
    def encode(
        self,
        text: Text,
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        return_offsets: bool = False,
    ) -> Ids | tuple[Ids, Offsets]: ...
    def _stream(
        self,
        kind: type[StreamKind],
        /,
        *,
        add_special_tokens: bool,
        tokens_in_text: TokensInText,
        dtype: DTypeLike,
    ) -> StreamKind: ...
    def id_to_token(self, id: int, /) -> bytes | None: ...
    def _describe(self) -> VocabInfoDict: ...
    def _shape(self) -> ShapeDict: ...
    def _specials(self) -> Ids: ...
    def _regexes(self) -> list[str]: ...
    def _merges(self) -> Ids: ...
    def _added(self) -> list[AddedDict]: ...
    def _encode_texts(
        self,
        texts: Iterable[Text],
        threads: int,
        /,
        *,
        add_special_tokens: bool,
        tokens_in_text: TokensInText,
        dtype: DTypeLike,
        truncation: bool | int | None,
        truncation_side: Side | None,
    ) -> tuple[Ids, npt.NDArray[np.int64]]: ...
    def _spans(self, text: str, ids: Ids, special: bool, /) -> tuple[Offsets, Ids]: ...
    def _decode(self, ids: Buffer, /) -> bytes: ...
    def _decode_stream(self) -> DecodeStream: ...

class Stream:
    def feed(self, text: Text, /) -> Ids: ...
    def finish(self) -> Ids: ...
    def close(self) -> None: ...
    @property
    def waiting(self) -> int: ...

@final
class DecodeStream:
    def feed(self, ids: Buffer, last: bool, /) -> bytes: ...

def limit_threads(n: int, /) -> None: ...
def list_of(ids: npt.ArrayLike, /) -> list[int]: ...
def lists(ids: npt.ArrayLike, splits: npt.ArrayLike, /) -> list[list[int]]: ...
def json_ids(ids: npt.NDArray[np.uint32], /) -> bytes: ...
def varints(ids: npt.ArrayLike, /) -> bytes: ...
def json_lines(lines: Buffer, field: str, /) -> list[bytes | None]: ...
def load_acquire_u64(buffer: Buffer, offset: int, /) -> int: ...
def load_fenced_u64(buffer: Buffer, offset: int, /) -> int: ...
def store_release_u64(buffer: Buffer, offset: int, value: int, /) -> None: ...
def engine_look(memory: EngineMemory, lanes: Buffer, looks: Buffer, /) -> None: ...
def engine_put(memory: EngineMemory, lanes: Buffer, ids: Buffer, /) -> bytes: ...
def engine_end(memory: EngineMemory, lane: int, how: int, /) -> bool: ...
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
