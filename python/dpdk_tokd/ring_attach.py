# SPDX-License-Identifier: BSD-3-Clause
"""Attaching to the control socket: one request, one answer with descriptors, and the farewell."""

from __future__ import annotations

import array
import errno
import mmap
import os
import socket
import time

from .ring_errors import RingError, RingRefused
from .ring_layout import (
    ATTACH_MAGIC,
    ATTACH_REP,
    ATTACH_REQ,
    CURSOR_BYTES,
    MODE_READER,
    MODE_TAP,
    RINGS_MAX,
    VERSION,
)
from .ring_memory import Ring, map_whole


def attach(path: str, *, tap: bool, timeout: float) -> tuple[socket.socket, list[Ring]]:
    """Attach within `timeout` seconds. The socket, non-blocking, and the rings.

    OSError: no such socket, no permission, or no answer in time; RingRefused; RingError.
    """
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.settimeout(timeout)
        _connect(s, path, timeout)
        _ask(s, ATTACH_REQ.pack(ATTACH_MAGIC, VERSION, MODE_TAP if tap else MODE_READER, 0))
        rings = _take_answer(s, path, tap)
        s.setblocking(False)
        return s, rings
    except BaseException:
        s.close()
        raise


def _connect(s: socket.socket, path: str, timeout: float) -> None:
    """A unix socket whose queue is full says so at once, whatever the time limit."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return s.connect(path)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{path}: too many connect at once") from None
            time.sleep(0.001)
        except OSError as e:
            raise _explained(e, path) from None


def _explained(error: OSError, path: str) -> OSError:
    """The same error with the path and a remedy."""
    remedy = {
        errno.ENOENT: "is dpdk-tokd running, and its --socket this one?",
        errno.ECONNREFUSED: "the dpdk-tokd that made it is gone: start it again",
        errno.EACCES: "give this user's group the socket, by --socket-group and --socket-mode",
    }.get(error.errno or 0, "is it the --socket of a dpdk-tokd?")
    if error.errno is None:
        return OSError(f"{path}: {error}: {remedy}")
    return OSError(error.errno, f"{path}: {os.strerror(error.errno)}: {remedy}")


def _ask(s: socket.socket, request: bytes) -> None:
    try:
        s.send(request)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it has closed already, and its answer says why


def _receive(s: socket.socket, path: str) -> tuple[bytes, list[tuple[int, int, bytes]], int]:
    room = socket.CMSG_SPACE((1 + RINGS_MAX) * array.array("i").itemsize)
    for _ in range(2):
        try:
            return s.recvmsg(ATTACH_REP.size, room, socket.MSG_CMSG_CLOEXEC)[:3]
        except ConnectionResetError:
            pass  # it closed with the request unread: Linux says so once, before its answer
        except TimeoutError:
            raise TimeoutError(
                f"{path}: no answer to the attach request within {s.gettimeout()} s: "
                "is it the --socket of a dpdk-tokd, and does that run?"
            ) from None
    return b"", [], 0


def _take_answer(s: socket.socket, path: str, tap: bool) -> list[Ring]:
    reply, control, flags = _receive(s, path)
    fds = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    try:
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise RingError(f"{path}: attach reply is longer than ring.h says")
        return _take_rings(reply, fds, path, tap)
    finally:
        for fd in fds:
            os.close(fd)  # mappings stay


def _take_rings(reply: bytes, fds: array.array[int], path: str, tap: bool) -> list[Ring]:
    if not reply:
        raise RingRefused(
            f"{path}: closed without an answer: try again, or see what dpdk-tokd printed"
        )
    if len(reply) != ATTACH_REP.size:
        raise RingError(f"{path}: attach reply of {len(reply)} bytes, expected {ATTACH_REP.size}")
    magic, version, n_rings, _, instance, *start, _ = ATTACH_REP.unpack(reply)
    if magic != ATTACH_MAGIC or version != VERSION:
        raise RingError(
            f"{path}: magic {magic:#x}, version {version}: expected {ATTACH_MAGIC:#x}, {VERSION}"
        )
    if n_rings == 0:
        raise RingRefused(f"{path}: attaching was refused: {reason_of(reply)}")
    if n_rings > RINGS_MAX or len(fds) != n_rings + (not tap):
        raise RingError(f"{path}: {len(fds)} descriptors for {n_rings} rings")
    cursors = None
    if not tap:
        cursors = map_whole(fds[0], mmap.PROT_READ | mmap.PROT_WRITE, "cursor memfd", CURSOR_BYTES)
    ring_fds = fds[0 if tap else 1 :]
    return [Ring(fd, i, start[i], instance, cursors) for i, fd in enumerate(ring_fds)]


def reason_of(reply: bytes) -> str:
    """What a refusal or a farewell says in words."""
    if len(reply) != ATTACH_REP.size:
        return f"a message of {len(reply)} bytes"
    message: bytes = ATTACH_REP.unpack(reply)[-1]
    return message.split(b"\0")[0].decode("utf-8", "replace")
