# SPDX-License-Identifier: BSD-3-Clause
"""Types of the C extension. Its users are the modules of ring/; see ring.c."""

from os import PathLike
from typing import Generic, Self, TypeVar, final

SYSTEM: int
TIMEOUT: int
REFUSED: int
DROPPED: int

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
    def headers(self) -> list[tuple[int, int, int, int, int]]: ...
    def lost(self) -> list[tuple[int, int, int, int]]: ...
