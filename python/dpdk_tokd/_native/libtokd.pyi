# SPDX-License-Identifier: BSD-3-Clause
"""Types of the C extension. Its users are client/ and ring/; see client.c and ring.c."""

from os import PathLike
from typing import Generic, Self, TypeVar, final

from ..tokenizer.batch import Uint32Ids
from ..tokenizer.stream import Text

OK: int
E_REFUSED: int
E_TIMEOUT: int
E_NET: int
E_CANCELLED: int
STREAM: int
DECODE: int
SKIP_SPECIAL: int
GENERATE: int
STOP: int
LENGTH: int
CANCELLED: int
RING_SYSTEM: int
RING_TIMEOUT: int
RING_REFUSED: int
RING_DROPPED: int

@final
class Request:
    status: int
    reason: int
    error: int
    stream_id: int
    error_text: str | None
    @property
    def finished(self) -> bool: ...
    def take(self) -> bytearray | None: ...
    def ids(self) -> bytearray: ...

@final
class Client:
    def __new__(
        cls, hosts: str, port: int, vocab: int, timeout_ms: int, requests: int, mtu: int, /
    ) -> Client: ...
    @property
    def pending(self) -> int: ...
    def stats(self) -> tuple[int, int, int, int, int, int]: ...
    def hooks(self) -> tuple[int, bool, float | None]: ...
    def submit(self, text: Text | Uint32Ids, flags: int, limit: int = 0, /) -> Request: ...
    def poll(self) -> list[Request]: ...
    def wait(self) -> list[Request]: ...
    def cancel(self, request: Request, /) -> None: ...
    def made(self, request: Request, /) -> tuple[int, bytes, int] | None: ...
    def close(self) -> None: ...

class Range:
    stream_id: int
    serial: int
    instance: int
    epoch: int
    first: int
    vocab: int
    text_end: int
    worker: int
    position: int
    lost_bytes: int
    t_rx: int
    t_publish: int
    t_rx_ns: int
    t_publish_ns: int
    block_size: int
    first_block: int
    _reason: int
    @property
    def starts(self) -> bool: ...
    @property
    def last(self) -> bool: ...
    @property
    def aborted(self) -> bool: ...
    @property
    def intact(self) -> bool: ...
    @property
    def _released(self) -> bool: ...
    @property
    def _keys(self) -> tuple[int, int, int, int]: ...
    def hold(self) -> Self: ...
    def release(self) -> bool: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

_R = TypeVar("_R", bound=Range)

@final
class Reader(Generic[_R]):
    gone: bool
    closed: bool
    def __new__(
        cls, path: str | PathLike[str], tap: bool, timeout_ms: int, range_type: type[_R], /
    ) -> Reader[_R]: ...
    @property
    def instance(self) -> int: ...
    def next(self) -> _R | None: ...
    def close(self) -> None: ...
    def rings(
        self,
    ) -> list[tuple[tuple[int, int, int, int, int, int, int], tuple[int, int, int, int]]]: ...
