# SPDX-License-Identifier: BSD-3-Clause
"""Reads tokd-gpu's embeddings as a subscriber."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arguments import check_path, check_seconds
from .._native import libtok
from .._polling import PollingReader
from ..ring.errors import RingDropped, RingError
from .attach import Attached, attach
from .cuda import CudaOutputs
from .embedding import NUMPY, Embedding
from .layout import (
    DATA_OFFSET,
    ENTRY,
    HEAD_OFFSET,
    REP,
    TAIL_OFFSET,
    Dtype,
    EmbeddingStatus,
    Entry,
    Outputs,
    Reply,
)

ATTACH_TIMEOUT_S = 5.0
LIVENESS_POLLS = 1024  # between checks of the socket while there is always something to read


class EmbeddingReader(PollingReader[Embedding]):
    """Reads the embeddings of a tokd-gpu on this host.

        with EmbeddingReader("/run/tokd-gpu-subscribers.sock") as reader:
            for e in reader:
                use(e.request, e.first, e.array)

    The agent does not overwrite what a subscriber holds, and drops a subscriber that keeps the
    outputs full for too long (`RingDropped`). Continuing releases the previous embedding;
    `Embedding.hold()` prevents that. It sees embeddings of all clients handed out after it
    attached, those of one worker in the order of posting. One thread at a time.
    """

    _as_engine = False

    def __init__(self, path: str | os.PathLike[str], timeout: float | None = None) -> None:
        """Attach to the subscribers' socket at `path`.

        timeout: seconds that iteration waits for the next embedding before TimeoutError; None: no
        limit. Attaching itself waits for at most 5 s. OSError: no such socket, or no permission;
        RingRefused: for example, too many subscribers are attached; RingError: the answer violates
        embeddings.h, or the rows are in GPU memory that this process cannot open.
        """
        self._path = check_path("path", path)
        if timeout is not None:
            check_seconds("timeout", timeout)
        self._timeout = timeout
        self._gone = False
        self._polls = 0
        self._current: Embedding | None = None
        self._pending: deque[Embedding] = deque()
        self._moving = threading.Lock()
        self._move_again = False
        self._a: Attached | None = attach(self._path, ATTACH_TIMEOUT_S, self._as_engine)
        _readers.add(self)
        reply = self._a.reply
        self.dim = reply.dim
        self.dtype = Dtype(reply.dtype)
        self.instance = reply.instance
        """Of the agent."""
        self._position = self._cursor = self._head = reply.start
        self._out_bytes = reply.out_bytes
        self._row_bytes = reply.row_bytes
        self._cuda: CudaOutputs | None = None
        self._streams: set[int] = set()  # of rows that are released: to be waited for
        self._memory_address = 0
        if reply.outputs == Outputs.CUDA_IPC:
            try:
                self._cuda = CudaOutputs(reply.ipc, reply.uuid)
            except BaseException:
                self.close()  # otherwise producers would wait for this subscriber
                raise
        elif self._a.outputs is not None:
            self._memory_address = np.frombuffer(self._a.outputs, np.uint8).ctypes.data

    @property
    def cuda_device(self) -> int | None:
        """The GPU whose memory has the rows; None: host memory."""
        return None if self._cuda is None else self._cuda.device

    @property
    def closed(self) -> bool:
        """No further embedding will come: `close()` was called, or the agent has ended."""
        return self._a is None or self._gone

    def poll(self) -> Embedding | None:
        """The next embedding, or None. Releases the previous one.

        Raises RingDropped if the agent dropped this subscriber.
        """
        if self._a is None:
            raise RingError(f"{self._path}: the reader is closed")
        current, self._current = self._current, None
        if current is not None and not current._held:
            current.release()
        self._polls += 1
        if self._polls % LIVENESS_POLLS == 0:
            self._check_alive(self._a)
        given = self._next()
        if given is None and self._check_alive(self._a):
            given = self._next()  # handed out before it ended
        return given

    def _next(self) -> Embedding | None:
        a = self._a
        if a is None:
            return None
        if self._position == self._head:
            head = libtok.load_acquire_u64(a.ring, HEAD_OFFSET)
            if not self._head <= head <= self._cursor + a.entries:
                self._check_alive(a)  # raises the agent's own message, if it dropped us
                raise RingError(f"{self._path}: head went from {self._head} to {head}")
            self._head = head
            if head == self._position:
                return None
        at = DATA_OFFSET + (self._position & (a.entries - 1)) * ENTRY.size
        entry = Entry._make(ENTRY.unpack_from(a.ring, at))
        if not self._is_valid(self._position):
            self._check_alive(a)
            raise self._dropped("it continued without this subscriber")
        self._check_entry(entry)
        given = Embedding(self, self._position, entry)
        self._pending.append(given)  # before it counts as read: see _move
        self._position += 1
        self._current = given
        return given

    def _check_entry(self, e: Entry) -> None:
        if e.status not in EmbeddingStatus._value2member_map_:
            raise RingError(f"{self._path}: unknown status {e.status}")
        if e.offset + e.tokens * self._row_bytes > self._out_bytes or e.offset % 64:
            raise RingError(
                f"{self._path}: {e.tokens} rows at {e.offset} are not in {self._out_bytes} bytes"
            )

    def _check_alive(self, a: Attached) -> bool:
        """True if the agent has just ended; raises RingDropped if it dropped this subscriber."""
        if self._gone:
            return False
        try:
            farewell = a.socket.recv(REP.size)
        except BlockingIOError:
            return False
        except ConnectionError:
            farewell = b""
        if len(farewell) == REP.size:
            raise self._dropped(Reply._make(REP.unpack(farewell)).reason)
        self._gone = True
        return True

    def _dropped(self, why: str) -> RingDropped:
        lost = sum(len(e) for e in self._pending) * self._row_bytes
        first = self._pending[0]._position if self._pending else self._position
        return RingDropped(
            f"{self._path}: dropped by the agent: {why}",
            lost_bytes=lost,
            overwritten=not self._is_valid(first),
        )

    def _is_valid(self, position: int) -> bool:
        """Whether rows from `position` on had not been overwritten before now. False if closed."""
        a = self._a
        return a is not None and libtok.load_fenced_u64(a.ring, TAIL_OFFSET) <= position

    def _base(self) -> int:
        """Address of the outputs in this process."""
        if self._a is None:
            raise RingError(f"{self._path}: the reader is closed")
        return self._memory_address if self._cuda is None else self._cuda.address

    def _memory(self) -> memoryview | None:
        """Keeps the outputs mapped as long as it is referenced. None: on a GPU."""
        return memoryview(self._a.outputs) if self._a and self._a.outputs else None

    def _view(self, e: Entry) -> npt.NDArray[Any]:
        if self._a is None:
            raise RingError(f"{self._path}: the reader is closed")
        if self._a.outputs is None:
            raise RingError("the rows are in GPU memory: take them by DLPack, or by cupy.asarray")
        rows = np.frombuffer(
            self._a.outputs, NUMPY[self.dtype], count=e.tokens * self.dim, offset=e.offset
        )
        return rows.reshape(e.tokens, self.dim)

    def _advance(self) -> None:
        """Move the cursor past all that is released, and that nobody else has.

        With rows in GPU memory each step waits for the streams that the rows were taken for: a
        kernel may still read rows that their owner has released. Any thread may call this, from any
        line of _move: another library may drop its last reference at any time. A call that finds
        another one at work leaves the rest to it.
        """
        self._move_again = True
        while self._move_again and self._moving.acquire(blocking=False):
            try:
                self._move_again = False
                if self._a is not None:
                    self._move(self._a)
            finally:
                self._moving.release()

    def _move(self, a: Attached) -> None:
        position = self._position  # before what is pending: one that comes now is there then
        pending = self._pending
        while pending and pending[0]._released and not pending[0]._leases:
            self._streams |= pending.popleft()._streams
        cursor = pending[0]._position if pending else position
        if cursor != self._cursor:
            if self._cuda is not None:
                self._cuda.wait(self._streams)
                self._streams = set()  # not if that raised: they are waited for the next time
            self._cursor = cursor
            libtok.store_release_u64(a.cursor, 0, cursor)

    def _leave(self) -> None:
        """In a child of this process, whose reader it is not: the cursor is the parent's."""
        self._moving = threading.Lock()  # a thread may have had it that is not here
        a, self._a = self._a, None
        if a is not None:
            a.socket.close()

    def _timeout_message(self) -> str:
        return f"{self._path}: no embedding within {self._timeout} s"

    def close(self) -> None:
        """Detach. Existing arrays stay readable, but the agent may overwrite them. Rows in GPU
        memory must not be in use by other libraries any more."""
        self._current = None
        with self._moving:
            a, self._a = self._a, None
        if a is None:
            return
        for given in self._pending:
            given._array = None
        self._pending.clear()
        if self._cuda is not None:
            self._cuda.close()
        for memory in (a.ring, a.cursor, a.outputs, a.made):
            try:
                if memory is not None:
                    memory.close()
            except BufferError:
                pass  # views are about: the last of them unmaps it
        a.socket.close()


_readers: weakref.WeakSet[EmbeddingReader] = weakref.WeakSet()


def _leave_all() -> None:
    for reader in _readers:
        reader._leave()


# Else a child would release what its parent holds, and the agent would not see that the parent
# dies while the child lives.
os.register_at_fork(after_in_child=_leave_all)
