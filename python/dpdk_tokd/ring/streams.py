# SPDX-License-Identifier: BSD-3-Clause
"""Which streams a reader has seen begin, or go on, and not end: those a restart cuts."""

from __future__ import annotations

from dataclasses import dataclass

from .range import TokenRange


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


@dataclass(frozen=True, slots=True)
class CutStream:
    """A stream that was open when its appliance ended. Its ids below `end` are right, and no more
    of them will come; the client may send the text again, as another stream."""

    worker: int
    serial: int
    stream_id: int
    epoch: int
    end: int


@dataclass(frozen=True, slots=True)
class Restart:
    """The reader went on from one instance of dpdk-tokd to the next.

    What the old one published before it ended was given out before. What the new one published
    before the reader attached to it was not seen. `lost` is what a tap lost of the old one.
    """

    old_instance: int
    new_instance: int
    cut: tuple[CutStream, ...]
    lost: tuple[Lost, ...]


class OpenStreams:
    """Bounded by what an appliance holds open: each stream ends with a record that says so."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], CutStream] = {}

    def note(self, r: TokenRange) -> None:
        """`r` is given out."""
        if r.lost_bytes:
            # The ends of this worker's streams may be among what was lost: those that go on show.
            self._open = {key: s for key, s in self._open.items() if key[0] != r.worker}
        key = (r.worker, r.serial)
        if r.last:
            self._open.pop(key, None)
        else:
            end = r.first + len(r)
            self._open[key] = CutStream(r.worker, r.serial, r.stream_id, r.epoch, end)

    def cut(self) -> tuple[CutStream, ...]:
        """Those open now, which are forgotten."""
        cut = tuple(self._open.values())
        self._open = {}
        return cut
