# SPDX-License-Identifier: BSD-3-Clause
"""The engine of a tokd-gpu --engine external: takes prompts, and writes ids for them."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .._closing import Closing
from .._native import libtok
from ..ring.errors import RingError
from .embedding import Embedding
from .engine_cuda import MADE_BYTES, CudaLanes
from .layout import ABORT, GENERATE, LAST, EmbeddingStatus, LaneEnd
from .reader import EmbeddingReader

if TYPE_CHECKING:
    from .layout import Entry

POLL_MAX = 1024  # entries that a poll takes: others than prompts come all the time
PARTS_MAX = 1 << 24  # ids of texts that are not complete yet, all together

Lanes: TypeAlias = npt.ArrayLike  # of uint64: Prompt.lane
Key: TypeAlias = tuple[int, int, int]  # of a text: instance, worker, request


class Prompt(NamedTuple):
    """A text for which ids are wanted."""

    lane: int
    """What `Engine` calls it by. Never used again for another prompt of this engine."""
    ids: npt.NDArray[np.uint32]
    """Read-only. In the agent's memory if `in_place`: until the next call of `poll`."""
    in_place: bool
    instance: int
    worker: int
    request: int
    """These three identify the text, as in `Embedding`."""


class Looks(NamedTuple):
    """What an engine may do with lanes now, an element for each."""

    made: npt.NDArray[np.uint32]
    """Ids put so far."""
    granted: npt.NDArray[np.uint32]
    """Ids that may be put in all. A lane with `made` equal to it is paused."""
    end: npt.NDArray[np.uint32]
    """LaneEnd. Not OPEN: forget the lane, it takes nothing any more. After `Engine.end` it is OPEN
    until the consumer has taken that."""

    @property
    def ready(self) -> npt.NDArray[np.bool_]:
        """Whether an id may be put."""
        ready: npt.NDArray[np.bool_] = (self.end == LaneEnd.OPEN) & (self.made < self.granted)
        return ready


class _Reader(EmbeddingReader):
    """A subscriber whose connection is an engine's."""

    _as_engine = True


class Engine(Closing):
    """Makes ids for the prompts of a tokd-gpu on this host.

        with Engine("/run/tokd-gpu-subscribers.sock") as engine:
            lanes = np.zeros(0, np.uint64)
            while not engine.closed:
                for prompt in engine.poll():
                    lanes = np.append(lanes, np.uint64(prompt.lane))
                    start(prompt.lane, prompt.ids)
                look = engine.look(lanes)
                ready = lanes[look.ready]
                engine.put(ready, model(ready))
                lanes = lanes[look.end == LaneEnd.OPEN]

    There is one engine at a time. When it closes, or dies, all its texts end as CUT. It is a
    subscriber: it must poll often enough not to be dropped (`RingDropped`). One thread at a time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Attach to the subscribers' socket at `path`. Errors as those of EmbeddingReader.

        RingRefused: there is an engine, or none is wanted.
        """
        self._reader = _Reader(path)
        a = self._reader._a
        assert a is not None
        assert a.engine is not None
        self.n_ids = a.engine.n_ids
        """Ids are below it."""
        self.lanes_max = a.engine.lanes
        """Prompts at the same time."""
        self.cuda: CudaLanes | None = None
        """With lanes in GPU memory: in place of `look`, `put` and `end`."""
        self._memory: libtok.EngineMemory | None = None
        if a.outputs is not None and a.made is not None:
            e = a.engine
            own = bytearray(MADE_BYTES * e.lanes)
            self._memory = (a.outputs, e.shown_off, a.made, own, e.lanes, e.room)
        elif self._reader._cuda is not None:
            try:
                self.cuda = CudaLanes(self._reader._cuda, a.engine)
            except BaseException:
                self._reader.close()  # it would be the engine
                raise
        _engines.add(self)
        self._held: list[Embedding] = []  # of prompts in place
        self._parts: dict[Key, list[npt.NDArray[np.uint32]]] = {}
        self._n_parts = 0  # ids in them
        self._cut: list[int] = []  # lanes in GPU memory that were ended here

    @property
    def closed(self) -> bool:
        """No further prompt will come: `close()` was called, or the agent has ended."""
        return self._reader.closed

    def poll(self) -> list[Prompt]:
        """The prompts that have come. Does not wait. Raises RingDropped."""
        prompts: list[Prompt] = []
        for e in self._held:
            e.release()
        self._held.clear()
        if self.cuda is not None and self._cut and not self.closed:  # else nobody takes an end
            self._cut = [lane for lane in self._cut if self.cuda.open_one(lane)]
        for _ in range(POLL_MAX):
            given = self._reader.poll()
            if given is None:
                break
            prompt = self._take(given._entry)
            if prompt is not None:
                prompts.append(prompt)
                if prompt.in_place:
                    self._held.append(given.hold())
        return prompts

    def _ids(self, e: Entry) -> npt.NDArray[np.uint32]:
        """In place, or of GPU memory a copy."""
        a, cuda = self._reader._a, self._reader._cuda
        if cuda is not None:
            return np.frombuffer(cuda.read(e.ids, 4 * e.tokens), "<u4")
        assert a is not None
        assert a.outputs is not None
        return np.frombuffer(a.outputs, "<u4", count=e.tokens, offset=e.ids)

    def _take(self, e: Entry) -> Prompt | None:
        """The prompt that is complete with this entry."""
        if e.status == EmbeddingStatus.SHED:
            self._drop_shed(e)
            return None
        key = (e.instance, e.worker, e.request)
        parts = self._forget(key)
        if e.first == 0:  # once more, of an appliance that has connected again
            parts = []
        # Else its begin was before this engine, or has ids that are not of the table.
        follows = sum(map(len, parts)) == e.first and e.status == EmbeddingStatus.OK
        if not e.flags & (LAST | ABORT):
            if follows:
                self._keep(key, [*parts, self._ids(e).copy()])
            return None
        if not e.flags & GENERATE:
            return None
        lane = e.use << 32 | e.lane
        if not follows:
            if self.cuda is not None:
                self.cuda.end_one(lane, LaneEnd.CUT)
                self._cut.append(lane)
            else:
                self.end(lane, LaneEnd.CUT)
            return None
        ids = self._ids(e)
        if parts:
            ids = np.concatenate([*parts, ids])
            ids.flags.writeable = False
        in_place = not parts and self.cuda is None
        return Prompt(lane, ids, in_place, e.instance, e.worker, e.request)

    def _forget(self, key: Key) -> list[npt.NDArray[np.uint32]]:
        parts = self._parts.pop(key, [])
        self._n_parts -= sum(map(len, parts))
        return parts

    def _keep(self, key: Key, parts: list[npt.NDArray[np.uint32]]) -> None:
        self._parts[key] = parts
        self._n_parts += sum(map(len, parts))
        while self._n_parts > PARTS_MAX:  # the oldest, of texts that perhaps never end
            self._forget(next(iter(self._parts)))

    def _drop_shed(self, e: Entry) -> None:
        of_worker = (e.instance, e.worker)
        for key in [k for k in self._parts if k[:2] == of_worker and k[2] <= e.request]:
            self._forget(key)

    def look(self, lanes: Lanes) -> Looks:
        """What may be done with each of these lanes now: one call for all."""
        numbers = np.ascontiguousarray(lanes, np.uint64)
        looks = np.empty((len(numbers), 3), np.uint32)
        libtok.engine_look(self._open(), numbers, looks)
        return Looks(looks[:, 0], looks[:, 1], looks[:, 2])

    def put(self, lanes: Lanes, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Put an id into each of these lanes: one call for all. A lane may be there several times.

        Returns which were put. One that was not is paused, or has ended: `look` says which.
        """
        numbers = np.ascontiguousarray(lanes, np.uint64)
        values = np.ascontiguousarray(ids, np.uint32)
        return np.frombuffer(libtok.engine_put(self._open(), numbers, values), np.bool_)

    def end(self, lane: int, how: LaneEnd = LaneEnd.STOP) -> bool:
        """The text is complete. The id that the model ends texts with is not put.

        how: STOP, LENGTH or CUT. False: it has ended before. `look` at the lane until it has ended.
        """
        return libtok.engine_end(self._open(), int(lane), how)

    def _open(self) -> libtok.EngineMemory:
        if self._reader._a is None:
            raise RingError(f"{self._reader._path}: the engine is closed")
        if self._memory is None:
            raise RingError(f"{self._reader._path}: the lanes are in GPU memory: use Engine.cuda")
        return self._memory

    def close(self) -> None:
        """Detach: all its texts end."""
        self._held.clear()
        try:
            if self.cuda is not None:
                self.cuda.close()
        finally:
            self._reader.close()


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _forget_lanes() -> None:
    for engine in _engines:
        engine.cuda = None


# A child is not the engine (its reader has left): nothing of the parent's ends when it closes.
os.register_at_fork(after_in_child=_forget_lanes)
