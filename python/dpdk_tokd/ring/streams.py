# SPDX-License-Identifier: BSD-3-Clause
"""Tracks streams that have not ended: a restart of the appliance cuts them."""

from __future__ import annotations

from dataclasses import dataclass

from .range import TokenRange


@dataclass(slots=True)
class Lost:
    """What a tap lost of one worker's ring since it attached to this instance.

    `bytes` of ring: skipped in `overruns` steps, or of `ranges` that were overwritten before they
    were released.
    """

    worker: int
    overruns: int = 0
    bytes: int = 0
    ranges: int = 0


@dataclass(frozen=True, slots=True)
class CutStream:
    """A stream that was open when its appliance ended. Its ids below `end` are right; no more will
    come. The client may send the text again as another stream."""

    worker: int
    serial: int
    stream_id: int
    epoch: int
    end: int


@dataclass(frozen=True, slots=True)
class Restart:
    """The reader continued from one instance of dpdk-tokd to the next.

    It has returned everything the old one published, and nothing that the new one published before
    it attached. `lost` is what a tap lost of the old one.
    """

    old_instance: int
    new_instance: int
    cut: tuple[CutStream, ...]
    lost: tuple[Lost, ...]


class OpenStreams:
    """Bounded by the appliance's open streams: each stream ends with a last record."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], CutStream] = {}

    def note(self, r: TokenRange) -> None:
        """Note that `r` is returned."""
        if r.lost_bytes:
            # The lost part may contain the ends of this worker's streams. Those that continue will
            # be noted again.
            self._open = {key: s for key, s in self._open.items() if key[0] != r.worker}
        key = (r.worker, r.serial)
        if r.last:
            self._open.pop(key, None)
        else:
            end = r.first + len(r)
            self._open[key] = CutStream(r.worker, r.serial, r.stream_id, r.epoch, end)

    def cut(self) -> tuple[CutStream, ...]:
        """The open streams, which are then forgotten."""
        cut = tuple(self._open.values())
        self._open = {}
        return cut
