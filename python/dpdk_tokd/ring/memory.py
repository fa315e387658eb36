# SPDX-License-Identifier: BSD-3-Clause
"""Rings as they lie in memory, mapped and read.

include/tokd/ring.h states layout and ordering. Python has no acquire load and no release store, so
the words that order everything (head, tail, cursor) go through the C extension, which has: on
x86-64 they are plain moves and a barrier for the compiler, on ARM they are LDAR and STLR. What
those words order (headers, ids) is then read by ordinary means.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections import deque
from dataclasses import dataclass

import numpy as np

from .._native import libtok
from .errors import RingDropped, RingError
from .layout import (
    ALIGN,
    CURSOR_STRIDE,
    HDR,
    HDR_BYTES,
    HEAD_OFFSET,
    MAGIC,
    REC,
    TAIL_OFFSET,
    VERSION,
    Hdr,
    Kind,
    Rec,
)
from .range import TokenRange
from ..wire import Reason

OVERRUNS_MAX = 16  # of a tap, in one look


@dataclass(slots=True)
class Lost:
    """What a tap lost of one worker's ring since it attached to this instance.

    `bytes` of ring in all: skipped in `overruns` steps, or of `ranges` that it did get and that
    were overwritten before they were released.
    """

    worker: int
    overruns: int = 0
    bytes: int = 0
    ranges: int = 0


def map_whole(fd: int, prot: int, what: str, at_least: int) -> mmap.mmap:
    """Map a memfd that cannot shrink: one that could would end this process by SIGBUS."""
    size = os.fstat(fd).st_size
    if size < at_least:
        raise RingError(f"{what}: {size} bytes, at least {at_least} are needed")
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError as e:
        raise RingError(f"{what}: not a memfd ({e.strerror})") from e
    if not seals & fcntl.F_SEAL_SHRINK:
        raise RingError(f"{what}: not sealed against shrinking")
    return mmap.mmap(fd, size, mmap.MAP_SHARED, prot)


class Ring:
    """One worker's ring, as this reader sees it.

        cursor                     position                 head
       ---+---------------------------+-----------------------+---
          | given out, not released   | published, not yet    |
          | (pending, oldest first)   | looked at             |

    The cursor only ever passes ranges that are released. A tap has none (`cursors` is None): when
    it is overrun, it goes on at the tail, and counts.
    """

    def __init__(
        self, fd: int, index: int, start: int, instance: int, cursors: mmap.mmap | None
    ) -> None:
        what = f"token ring {index}"
        self._memory = map_whole(fd, mmap.PROT_READ, what, HDR_BYTES)
        self._cursors = cursors
        self._cursor_offset = CURSOR_STRIDE * index
        self.hdr = Hdr._make(HDR.unpack_from(self._memory))
        self._check_header(what, instance)
        self._mask = self.hdr.data_bytes - 1
        self._pending: deque[TokenRange] = deque()
        self._position = start
        self._cursor = start
        self._head = start
        self._skipped = 0  # lost, and not yet told by a range
        self.lost = Lost(self.hdr.worker)
        tail = self._load_tail()
        first = 0 if self.tap else tail  # a tap may have been passed by already
        if start % ALIGN or not first <= start <= self._load_head():
            raise RingError(
                f"{what}: start {start} is not a record in [{tail}, {self._load_head()}]"
            )

    def _check_header(self, what: str, instance: int) -> None:
        hdr, size = self.hdr, len(self._memory)
        if hdr.magic != MAGIC:
            raise RingError(f"{what}: magic {hdr.magic:#x}, expected {MAGIC:#x}")
        if hdr.version != VERSION:
            raise RingError(f"{what}: version {hdr.version}, this package reads {VERSION}")
        if hdr.instance != instance:
            raise RingError(f"{what}: of another start of dpdk-tokd than the one attached to")
        if hdr.data_bytes < ALIGN or hdr.data_bytes & (hdr.data_bytes - 1):
            raise RingError(f"{what}: data_bytes {hdr.data_bytes} is not a power of two")
        if hdr.data_off != HDR_BYTES or hdr.data_off + hdr.data_bytes > size:
            raise RingError(
                f"{what}: data [{hdr.data_off}, +{hdr.data_bytes}) is not in {size} bytes"
            )
        if hdr.tsc_hz == 0:
            raise RingError(f"{what}: tsc_hz is 0")

    def _load_head(self) -> int:
        return libtok.load_acquire_u64(self._memory, HEAD_OFFSET)

    def _load_tail(self) -> int:
        """After the use of records: those at or above the result had not been overwritten."""
        return libtok.load_fenced_u64(self._memory, TAIL_OFFSET)

    @property
    def tap(self) -> bool:
        return self._cursors is None

    def next(self) -> TokenRange | None:
        """The next range, or None when all that was published has been given out."""
        overruns = 0
        while self._position < self._head or self._look_for_more():
            pos = self._position
            rec = Rec._make(REC.unpack_from(self._memory, HDR_BYTES + (pos & self._mask)))
            if self._was_overrun():
                overruns += 1
                if overruns == OVERRUNS_MAX:
                    return None  # passed by again and again: later
                continue
            self._check_record(pos, rec)
            self._position = pos + rec.bytes
            if rec.kind == Kind.PAD:
                if not self._pending:
                    self.advance()
                continue
            tokens = np.frombuffer(
                self._memory, np.uint32, rec.n_ids, HDR_BYTES + (pos & self._mask) + REC.size
            )
            given = TokenRange(self, pos, rec, tokens, self._skipped)
            self._skipped = 0
            if not self.tap:
                self._pending.append(given)
            return given
        return None

    def _look_for_more(self) -> bool:
        head = self._load_head()
        if head == self._head:
            return False
        if self._was_overrun():
            head = self._load_head()  # not below that tail
        ahead = head - self._position
        if head % ALIGN or head < self._head or ahead > self.hdr.data_bytes:
            if self.tap and not self.stands(self._position):
                return False  # passed by between the loads: the next look finds the tail
            raise RingError(f"token ring {self.hdr.worker}: head went from {self._head} to {head}")
        self._head = head
        return ahead > 0

    def _was_overrun(self) -> bool:
        """Was what is at the position overwritten? Then a tap has gone on at the tail."""
        tail = self._load_tail()
        if tail <= self._position:
            return False
        if not self.tap:
            raise self._dropped(tail, self._position)
        if tail % ALIGN:
            raise RingError(f"token ring {self.hdr.worker}: tail {tail} is not that of a record")
        missed = tail - self._position
        self._skipped += missed
        self.lost.overruns += 1
        self.lost.bytes += missed
        self._position = tail
        self._head = max(self._head, tail)
        return True

    def _check_record(self, pos: int, rec: Rec) -> None:
        room = min(self.hdr.data_bytes - (pos & self._mask), self._head - pos)
        where = f"token ring {self.hdr.worker}: record at {pos}"
        if rec.bytes < REC.size or rec.bytes % ALIGN or rec.bytes > room:
            raise RingError(
                f"{where}: {rec.bytes} bytes, must be a multiple of {ALIGN} from {REC.size} to "
                f"{room}"
            )
        if rec.kind == Kind.TOKENS:
            if REC.size + 4 * rec.n_ids > rec.bytes:
                raise RingError(f"{where}: {rec.n_ids} ids do not fit its {rec.bytes} bytes")
            if rec.reason not in Reason._value2member_map_:
                raise RingError(f"{where}: unknown reason {rec.reason}")
        elif rec.kind != Kind.PAD:
            raise RingError(f"{where}: unknown kind {rec.kind}")

    def stands(self, pos: int) -> bool:
        """Whether bytes at `pos` and above had not been overwritten before now. When the reader is
        closed nobody can say, which is no."""
        return not self._memory.closed and self._load_tail() <= pos

    def _dropped(self, tail: int, pos: int) -> RingDropped:
        return RingDropped(
            f"reader was dropped: token ring {self.hdr.worker} went on to {tail}, past "
            f"unreleased ids at {pos}; release faster, or raise --reader-timeout or --ring-size",
            lost_bytes=self.unreleased_bytes(),
            overwritten=True,
        )

    def take_back(self, pos: int, rec: Rec) -> bool:
        """A range is released: as TokenRange.release says."""
        if self._memory.closed:
            return False
        tail = self._load_tail()  # before the cursor moves, which lets go of the range
        if not self.tap:
            if tail > pos:
                raise self._dropped(tail, pos)
            self.advance()
        elif tail > pos:
            self.lost.ranges += 1
            self.lost.bytes += rec.bytes
        return tail <= pos

    def advance(self) -> None:
        """Move the cursor past all ranges that are released, and padding among them."""
        pending = self._pending
        while pending and pending[0]._released:
            pending.popleft()
        cursor = pending[0]._pos if pending else self._position
        if cursor != self._cursor and self._cursors is not None:
            self._cursor = cursor
            libtok.store_release_u64(self._cursors, self._cursor_offset, cursor)

    def unreleased_bytes(self) -> int:
        return self._load_head() - self._cursor

    def overwritten(self) -> bool:
        return bool(self._pending) and self._load_tail() > self._pending[0]._pos

    def close(self) -> None:
        """Unmap, unless views are still about: then the last of them does."""
        for given in self._pending:
            given._tokens = None
        self._pending.clear()
        try:
            self._memory.close()
        except BufferError:
            pass
