# SPDX-License-Identifier: BSD-3-Clause
"""What a reader of token rings gives out: ranges of one stream's ids, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ..tokenizer.batch import Ids
from .errors import RingError
from .layout import REC_ABORT, REC_FIRST, REC_LAST, Rec
from ..wire import Reason

if TYPE_CHECKING:
    from .memory import Ring


class TokenRange:
    """Ids [first, first + len(tokens)) of one stream.

    `tokens` is the ring's own memory, read-only, uint32 of shape (n,). It stands until the range
    is released: by the reader when it goes on to the next range, unless `hold()` was called, or by
    `release()`. Reading an array kept beyond that shows whatever came to lie there.

    Times are TSC ticks of the appliance; those in ns count from the same arbitrary moment, and
    only their differences mean something.
    """

    __slots__ = (
        "_held",
        "_lost_bytes",
        "_pos",
        "_rec",
        "_released",
        "_ring",
        "_tokens",
    )

    def __init__(self, ring: Ring, pos: int, rec: Rec, tokens: Ids, lost_bytes: int) -> None:
        self._ring = ring
        self._pos = pos
        self._rec = rec
        self._tokens: Ids | None = tokens
        self._lost_bytes = lost_bytes
        self._held = False
        self._released = False

    @property
    def tokens(self) -> Ids:
        """A view of the ring. RingError once the range is released."""
        if self._tokens is None:
            raise RingError("the range was released: its ids may be overwritten; hold() it")
        return self._tokens

    @property
    def stream_id(self) -> int:
        """As the client chose it: unique only together with client and `epoch`."""
        return self._rec.stream_id

    @property
    def serial(self) -> int:
        """Unique among the streams of one worker."""
        return self._rec.serial

    @property
    def epoch(self) -> int:
        return self._rec.epoch

    @property
    def first(self) -> int:
        """Index of the first id within its stream."""
        return self._rec.first

    @property
    def starts(self) -> bool:
        """The first range of its stream."""
        return bool(self._rec.flags & REC_FIRST)

    @property
    def last(self) -> bool:
        """The stream is complete with this range, or was aborted."""
        return bool(self._rec.flags & (REC_LAST | REC_ABORT))

    @property
    def aborted(self) -> bool:
        """The stream failed, see `reason`: its ids so far are not those of a whole text."""
        return bool(self._rec.flags & REC_ABORT)

    @property
    def reason(self) -> Reason:
        return Reason(self._rec.reason)

    @property
    def vocab(self) -> int:
        """Checksum of the vocabulary."""
        return self._rec.vocab

    @property
    def text_end(self) -> int:
        """Bytes of the text that had been fed."""
        return self._rec.text_end

    @property
    def worker(self) -> int:
        return self._ring.hdr.worker

    @property
    def instance(self) -> int:
        """Which start of dpdk-tokd published it: `serial` says nothing beyond it."""
        return self._ring.hdr.instance

    @property
    def lost_bytes(self) -> int:
        """Of a tap: so many bytes of this worker's ring, just before this range, it missed."""
        return self._lost_bytes

    @property
    def intact(self) -> bool:
        """Whether all that was read from `tokens` up to now is what was published.

        Of a registered reader it is, until the appliance drops it. A tap asks after each use.
        """
        return self._ring.stands(self._pos)

    @property
    def t_rx(self) -> int:
        """TSC ticks when the worker took the packet from its queue."""
        return self._rec.t_rx

    @property
    def t_publish(self) -> int:
        """TSC ticks when the range was published."""
        return self._rec.t_publish

    @property
    def t_rx_ns(self) -> int:
        return self._rec.t_rx * 1_000_000_000 // self._ring.hdr.tsc_hz

    @property
    def t_publish_ns(self) -> int:
        return self._rec.t_publish * 1_000_000_000 // self._ring.hdr.tsc_hz

    def hold(self) -> Self:
        """Keep the range until `release()`. What is held, and all after it, stays in the ring:
        hold for too long and the appliance drops the reader."""
        self._held = True
        return self

    def release(self) -> bool:
        """Let go of `tokens`. A second call does nothing.

        True: what was read was intact. A tap gets False if it was overwritten meanwhile. A
        registered reader is not overwritten, or gets RingDropped: it had been dropped before, and
        the ids may have been overwritten while they were used. False, too, when the reader was
        closed before: there was nobody left to let go of anything.
        """
        if self._released:
            return True
        self._released = True
        self._tokens = None
        return self._ring.take_back(self._pos, self._rec)

    def __len__(self) -> int:
        return self._rec.n_ids

    def __repr__(self) -> str:
        end = f", aborted: {self.reason.name}" if self.aborted else ", last" if self.last else ""
        return (
            f"TokenRange(stream_id={self.stream_id}, ids [{self.first}, "
            f"{self.first + len(self)}){end}, worker {self.worker})"
        )
