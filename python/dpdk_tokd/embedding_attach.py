# SPDX-License-Identifier: BSD-3-Clause
"""Attaching to tokd-gpu as a holder: one request, one answer with descriptors, the farewell."""

from __future__ import annotations

import array
import errno
import mmap
import os
import socket
from dataclasses import dataclass

from .embedding_layout import (
    CURSOR_BYTES,
    DATA_OFFSET,
    ENTRY,
    HDR,
    HOLD_MAGIC,
    MAGIC,
    REP,
    REQ,
    VERSION,
    Dtype,
    Outputs,
    Reply,
)
from .ring_errors import RingError, RingRefused
from .ring_memory import map_whole


@dataclass(slots=True)
class Attached:
    """What a holder has of its agent."""

    socket: socket.socket  # non-blocking
    reply: Reply
    cursor: mmap.mmap
    ring: mmap.mmap
    entries: int
    outputs: mmap.mmap | None  # None: of a GPU, see reply.ipc


def attach(path: str, timeout: float) -> Attached:
    """Attach within `timeout` seconds.

    OSError: no such socket, no permission, or no answer in time; RingRefused; RingError.
    """
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.settimeout(timeout)
        _connect(s, path)
        try:
            s.send(REQ.pack(HOLD_MAGIC, VERSION, 0, 0))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has closed already, and its answer says why
        reply, control, flags = _receive(s, path)
        fds = array.array("i")
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        try:
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise RingError(f"{path}: hold reply is longer than embeddings.h says")
            attached = _take(s, reply, fds, path)
        finally:
            for fd in fds:
                os.close(fd)  # mappings stay
        s.setblocking(False)
        return attached
    except BaseException:
        s.close()
        raise


def _connect(s: socket.socket, path: str) -> None:
    try:
        s.connect(path)
    except OSError as e:
        remedy = {
            errno.ENOENT: "is tokd-gpu running, and its --holders-socket this one?",
            errno.ECONNREFUSED: "the tokd-gpu that made it is gone: start it again",
            errno.EACCES: "give this user the socket, by --holders-mode",
            errno.EPROTOTYPE: "that is the producers' socket: take --holders-socket",
        }.get(e.errno or 0, "is it the --holders-socket of a tokd-gpu?")
        raise OSError(e.errno, f"{path}: {e.strerror or e}: {remedy}") from None


def _receive(s: socket.socket, path: str) -> tuple[bytes, list[tuple[int, int, bytes]], int]:
    room = socket.CMSG_SPACE(3 * array.array("i").itemsize)
    for _ in range(2):
        try:
            return s.recvmsg(REP.size, room, socket.MSG_CMSG_CLOEXEC)[:3]
        except ConnectionResetError:
            pass  # it closed with the request unread: Linux says so once, before its answer
        except TimeoutError:
            raise TimeoutError(
                f"{path}: no answer to the hold request within {s.gettimeout()} s"
            ) from None
    return b"", [], 0


def _take(s: socket.socket, data: bytes, fds: array.array[int], path: str) -> Attached:
    if not data:
        raise RingRefused(f"{path}: closed without an answer: see what tokd-gpu printed")
    if len(data) != REP.size:
        raise RingError(f"{path}: hold reply of {len(data)} bytes, expected {REP.size}")
    reply = Reply._make(REP.unpack(data))
    if reply.magic != HOLD_MAGIC or reply.version != VERSION:
        raise RingError(
            f"{path}: magic {reply.magic:#x}, version {reply.version}: expected "
            f"{HOLD_MAGIC:#x}, {VERSION}"
        )
    if reply.outputs == 0:
        raise RingRefused(f"{path}: holding was refused: {reply.reason}")
    with_memory = reply.outputs == Outputs.MEMFD
    if reply.outputs not in Outputs._value2member_map_ or len(fds) != 2 + with_memory:
        raise RingError(f"{path}: {len(fds)} descriptors for outputs of kind {reply.outputs}")
    if reply.dtype not in Dtype._value2member_map_ or reply.dim == 0:
        raise RingError(f"{path}: rows of type {reply.dtype}, dimension {reply.dim}")
    if reply.row_bytes != reply.dim * (4 if reply.dtype == Dtype.F32 else 2):
        raise RingError(f"{path}: rows of {reply.row_bytes} bytes, dimension {reply.dim}")
    cursor = map_whole(fds[0], mmap.PROT_READ | mmap.PROT_WRITE, "cursor memfd", CURSOR_BYTES)
    ring = map_whole(fds[1], mmap.PROT_READ, "ring of embeddings", DATA_OFFSET)
    outputs = None
    if with_memory:
        outputs = map_whole(fds[2], mmap.PROT_READ, "outputs", reply.out_bytes)
    return Attached(s, reply, cursor, ring, _entries(ring, reply, path), outputs)


def _entries(ring: mmap.mmap, reply: Reply, path: str) -> int:
    magic, version, entries, instance = HDR.unpack_from(ring)
    if magic != MAGIC or version != VERSION or instance != reply.instance:
        raise RingError(f"{path}: ring of magic {magic:#x}, version {version}: of another agent?")
    if entries == 0 or entries & (entries - 1) or DATA_OFFSET + entries * ENTRY.size > len(ring):
        raise RingError(f"{path}: ring of {entries} entries in {len(ring)} bytes")
    return int(entries)
