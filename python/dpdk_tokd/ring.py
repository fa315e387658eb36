# SPDX-License-Identifier: BSD-3-Clause
"""The token ring, reader's side: token ids where dpdk-tokd wrote them, without a copy.

include/tokd/ring.h states layout and ordering. Python has no acquire load and no release store, so
the words that order everything (head, tail, cursor) go through the C extension, which has: on
x86-64 they are plain moves and a barrier for the compiler, on ARM they are LDAR and STLR. What
those words order (headers, ids) is then read by ordinary means.
"""

from __future__ import annotations

import array
import enum
import fcntl
import mmap
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from . import _libtok
from .tokenizer import Ids
from .wire import Reason

MAGIC = 0x31474E52444B4F54
VERSION = 1
HDR_BYTES = 4096
ALIGN = 64
HEAD_OFFSET = 64
TAIL_OFFSET = 128

RINGS_MAX = 63
CURSOR_STRIDE = 64
CURSOR_BYTES = 4096
ATTACH_MAGIC = 0x54544144
MODE_REGISTERED = 1

HDR = struct.Struct("<QIIQQQQII")  # up to pad0; head and tail are loaded by themselves
REC = struct.Struct("<IHHQQQQIIIIII")
ATTACH_REQ = struct.Struct("<IIII")
ATTACH_REP = struct.Struct(f"<IIIIQ{RINGS_MAX}Q128s")

ATTACH_TIMEOUT_S = 5.0
SPIN_POLLS = 200  # before going to sleep
SLEEP_FIRST_S = 50e-6
SLEEP_LAST_S = 1e-3
LIVENESS_POLLS = 1024  # between looks at the socket while there is always something to read


class Kind(enum.IntEnum):
    """enum tokd_rec_kind."""

    TOKENS = 1
    PAD = 2


REC_FIRST = 1 << 0
REC_LAST = 1 << 1
REC_ABORT = 1 << 2


class RingError(RuntimeError):
    """What the socket or a ring says is not what ring.h allows, or attaching was refused."""


class RingDropped(RingError):
    """dpdk-tokd no longer waits for this reader, which stalled a ring for too long.

    `lost_bytes`: records, in bytes of ring, that were published and not released.
    `overwritten`: views that had not been released may have shown other bytes than theirs.
    """

    def __init__(self, message: str, *, lost_bytes: int, overwritten: bool) -> None:
        super().__init__(message)
        self.lost_bytes = lost_bytes
        self.overwritten = overwritten


class Hdr(NamedTuple):
    """struct tokd_ring_hdr up to head."""

    magic: int
    version: int
    worker: int
    data_off: int
    data_bytes: int
    instance: int
    tsc_hz: int
    vocab: int
    lcore: int


class Rec(NamedTuple):
    """struct tokd_rec."""

    bytes: int
    kind: int
    flags: int
    stream_id: int
    serial: int
    t_rx: int
    t_publish: int
    first: int
    n_ids: int  # `count` in ring.h
    vocab: int
    epoch: int
    reason: int
    text_end: int


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
        "_pos",
        "_rec",
        "_released",
        "_ring",
        "_tokens",
    )

    def __init__(self, ring: _Ring, pos: int, rec: Rec, tokens: Ids) -> None:
        self._ring = ring
        self._pos = pos
        self._rec = rec
        self._tokens: Ids | None = tokens
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

    def release(self) -> None:
        """Let go of `tokens`. A second call does nothing.

        When it returns, what was read was intact, unless the reader was closed before: then it
        does nothing. RingDropped: the reader had been dropped before,
        and the ids may have been overwritten while they were used.
        """
        if self._released:
            return
        self._released = True
        self._tokens = None
        if self._ring.closed:
            return  # the reader was closed: there is nobody to let go of anything
        self._ring.check_stands(self._pos)  # before the cursor moves, which lets go of them
        self._ring.advance()

    def __len__(self) -> int:
        return self._rec.n_ids

    def __repr__(self) -> str:
        end = f", aborted: {self.reason.name}" if self.aborted else ", last" if self.last else ""
        return (
            f"TokenRange(stream_id={self.stream_id}, ids [{self.first}, "
            f"{self.first + len(self)}){end}, worker {self.worker})"
        )


def _map_whole(fd: int, prot: int, what: str, at_least: int) -> mmap.mmap:
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


def _reason(reply: bytes) -> str:
    """What an attach reply says in words."""
    if len(reply) != ATTACH_REP.size:
        return f"a message of {len(reply)} bytes"
    return ATTACH_REP.unpack(reply)[-1].split(b"\0")[0].decode("utf-8", "replace")


class _Ring:
    """One worker's ring, as this reader sees it.

        cursor                     position                 head
       ---+---------------------------+-----------------------+---
          | given out, not released   | published, not yet    |
          | (pending, oldest first)   | looked at             |

    The cursor only ever passes ranges that are released.
    """

    def __init__(self, fd: int, index: int, start: int, instance: int, cursors: mmap.mmap) -> None:
        what = f"token ring {index}"
        self._memory = _map_whole(fd, mmap.PROT_READ, what, HDR_BYTES)
        self._cursors = cursors
        self._cursor_offset = CURSOR_STRIDE * index
        self.hdr = Hdr._make(HDR.unpack_from(self._memory))
        self._check_header(what, instance)
        self._mask = self.hdr.data_bytes - 1
        self._pending: deque[TokenRange] = deque()
        self._position = start
        self._cursor = start
        self._head = start
        tail = self._load_tail()
        if start % ALIGN or not tail <= start <= self._load_head():
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
        return _libtok.load_acquire_u64(self._memory, HEAD_OFFSET)

    def _load_tail(self) -> int:
        """After the use of records: those at or above the result had not been overwritten."""
        return _libtok.load_fenced_u64(self._memory, TAIL_OFFSET)

    def next(self) -> TokenRange | None:
        """The next range, or None when all that was published has been given out."""
        while self._position < self._head or self._look_for_more():
            pos = self._position
            rec = Rec._make(REC.unpack_from(self._memory, HDR_BYTES + (pos & self._mask)))
            self.check_stands(pos)
            self._check_record(pos, rec)
            self._position = pos + rec.bytes
            if rec.kind == Kind.PAD:
                if not self._pending:
                    self.advance()
                continue
            tokens = np.frombuffer(
                self._memory, np.uint32, rec.n_ids, HDR_BYTES + (pos & self._mask) + REC.size
            )
            given = TokenRange(self, pos, rec, tokens)
            self._pending.append(given)
            return given
        return None

    def _look_for_more(self) -> bool:
        head = self._load_head()
        if head == self._head:
            return False
        if head - self._position > self.hdr.data_bytes:
            self.check_stands(self._position)
        if head % ALIGN or not 0 < head - self._head <= self.hdr.data_bytes:
            raise RingError(f"token ring {self.hdr.worker}: head went from {self._head} to {head}")
        self._head = head
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

    def check_stands(self, pos: int) -> None:
        """RingDropped if bytes at `pos` may have been overwritten before now."""
        tail = self._load_tail()
        if tail > pos:
            raise RingDropped(
                f"reader was dropped: token ring {self.hdr.worker} went on to {tail}, past "
                f"unreleased ids at {pos}; release faster, or raise --reader-timeout or "
                "--ring-size",
                lost_bytes=self.unreleased_bytes(),
                overwritten=True,
            )

    def advance(self) -> None:
        """Move the cursor past all ranges that are released, and padding among them."""
        pending = self._pending
        while pending and pending[0]._released:
            pending.popleft()
        cursor = pending[0]._pos if pending else self._position
        if cursor != self._cursor:
            self._cursor = cursor
            _libtok.store_release_u64(self._cursors, self._cursor_offset, cursor)

    @property
    def closed(self) -> bool:
        return self._memory.closed

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


@dataclass(frozen=True, slots=True)
class RingInfo:
    """One ring of an appliance: its worker, and what its header says."""

    worker: int
    lcore: int
    vocab: int
    data_bytes: int
    tsc_hz: int
    instance: int


class RingReader(Iterator[TokenRange]):
    """A registered reader of all token rings of a dpdk-tokd on this host.

        with RingReader("/run/dpdk-tokd.sock") as reader:
            for r in reader:
                use(r.stream_id, r.first, r.tokens)

    The appliance waits for a registered reader, whose views therefore stand until released, and
    drops it when it stalls a full ring for too long (`RingDropped`). Going on to the next range
    releases the one before it; `TokenRange.hold()` prevents that. It sees ranges published after
    it attached, of all clients, those of several workers in turn. One thread at a time.
    """

    def __init__(self, socket_path: str | os.PathLike[str], timeout: float | None = None) -> None:
        """Attach to the control socket at `socket_path`.

        timeout: seconds that iteration waits for the next range before TimeoutError; None: for
        ever. Attaching itself waits for 5 s at most. OSError: no such socket, or no permission;
        RingError: refused, or something is not as ring.h says.
        """
        self._path = os.fspath(socket_path)
        self._timeout = timeout
        self._current: TokenRange | None = None
        self._turn = 0
        self._polls = 0
        self._gone = False
        self._rings: list[_Ring] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        self._socket.settimeout(ATTACH_TIMEOUT_S)
        self._socket.connect(self._path)
        self._socket.send(ATTACH_REQ.pack(ATTACH_MAGIC, VERSION, MODE_REGISTERED, 0))
        room = socket.CMSG_SPACE((1 + RINGS_MAX) * array.array("i").itemsize)
        reply, control, flags, _ = self._socket.recvmsg(
            ATTACH_REP.size, room, socket.MSG_CMSG_CLOEXEC
        )
        fds = array.array("i")
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        try:
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise RingError(f"{self._path}: attach reply is longer than ring.h says")
            self._take_reply(reply, fds)
        finally:
            for fd in fds:
                os.close(fd)  # mappings stay
        self._socket.setblocking(False)

    def _take_reply(self, reply: bytes, fds: array.array[int]) -> None:
        if len(reply) != ATTACH_REP.size:
            raise RingError(
                f"{self._path}: attach reply of {len(reply)} bytes, expected {ATTACH_REP.size}"
            )
        magic, version, n_rings, _, instance, *start, _ = ATTACH_REP.unpack(reply)
        if magic != ATTACH_MAGIC or version != VERSION:
            raise RingError(
                f"{self._path}: magic {magic:#x}, version {version}: expected "
                f"{ATTACH_MAGIC:#x}, {VERSION}"
            )
        if n_rings == 0:
            raise RingError(f"{self._path}: attaching was refused: {_reason(reply)}")
        if n_rings > RINGS_MAX or len(fds) != n_rings + 1:
            raise RingError(f"{self._path}: {len(fds)} descriptors for {n_rings} rings")
        cursors = _map_whole(fds[0], mmap.PROT_READ | mmap.PROT_WRITE, "cursor memfd", CURSOR_BYTES)
        for i in range(n_rings):
            self._rings.append(_Ring(fds[1 + i], i, start[i], instance, cursors))

    @property
    def rings(self) -> list[RingInfo]:
        return [
            RingInfo(h.worker, h.lcore, h.vocab, h.data_bytes, h.tsc_hz, h.instance)
            for h in (ring.hdr for ring in self._rings)
        ]

    def poll(self) -> TokenRange | None:
        """The next range, or None if none is published. Releases the one before it.

        RingDropped: the appliance no longer waits for this reader. Whether it has ended, `closed`
        says.
        """
        if not self._rings:
            raise RingError(f"{self._path}: the reader is closed")
        self._release_current()
        self._polls += 1
        if self._polls % LIVENESS_POLLS == 0:
            self._check_alive()
        given = self._next()
        if given is None and not self._gone and self._check_alive():
            given = self._next()  # published before it went
        self._current = given
        return given

    def _release_current(self) -> None:
        current, self._current = self._current, None
        if current is not None and not current._held:
            current.release()

    def _next(self) -> TokenRange | None:
        n = len(self._rings)
        for _ in range(n):
            ring = self._rings[self._turn]
            self._turn = (self._turn + 1) % n
            given = ring.next()
            if given is not None:
                return given
        return None

    def _check_alive(self) -> bool:
        """True if the appliance ended just now; RingDropped if it goes on without this reader."""
        if self._gone:
            return False
        try:
            farewell = self._socket.recv(ATTACH_REP.size)
        except BlockingIOError:
            return False
        except ConnectionError:
            farewell = b""
        if farewell:
            raise RingDropped(
                f"{self._path}: dropped by the appliance: {_reason(farewell)}",
                lost_bytes=sum(ring.unreleased_bytes() for ring in self._rings),
                overwritten=any(ring.overwritten() for ring in self._rings),
            )
        self._gone = True
        return True

    @property
    def closed(self) -> bool:
        """The appliance has ended, or `close()` was called: nothing new will come."""
        return self._gone or not self._rings

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> TokenRange:
        """Wait for the next range. Ends when the appliance has ended and all was read.

        TimeoutError after `timeout` seconds; RingDropped as in `poll`. Waits by polling: for a
        moment without pause, then with pauses from 50 us to 1 ms.
        """
        given = self.poll()
        if given is not None:
            return given
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        polls, pause = 0, SLEEP_FIRST_S
        while not self.closed:
            given = self._next() if polls < SPIN_POLLS else self.poll()
            if given is not None:
                self._current = given
                return given
            polls += 1
            if polls < SPIN_POLLS:
                continue
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{self._path}: no token range within {self._timeout} s")
            time.sleep(pause)
            pause = min(2 * pause, SLEEP_LAST_S)
        raise StopIteration

    def close(self) -> None:
        """Detach. Arrays still about stay readable, but the appliance may overwrite them."""
        self._current = None
        for ring in self._rings:
            ring.close()
        self._rings = []
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
