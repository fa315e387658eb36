# SPDX-License-Identifier: BSD-3-Clause
"""One request to tokd-gpu and its answer, with file descriptors of shared memory."""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import mmap
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..ring.errors import RingError


@contextmanager
def request(
    path: str, message: bytes, reply_bytes: int, fds_max: int, timeout: float
) -> Iterator[tuple[socket.socket, bytes, array.array[int]]]:
    """The connection, the answer (b"": closed without one) and its descriptors. The end of the
    `with` closes the descriptors, makes the connection non-blocking, and closes it after an error.

    OSError: no such socket, no permission, or no answer within `timeout` seconds; RingError.
    """
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.settimeout(timeout)
        _connect(s, path, timeout)
        # If it is closed already, the answer has the reason.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.send(message)
        reply, control, flags = _receive(s, path, reply_bytes, fds_max)
        fds = array.array("i")
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        try:
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise RingError(f"{path}: subscribe reply is longer than embeddings.h says")
            yield s, reply, fds
        finally:
            for fd in fds:
                os.close(fd)  # mappings stay
        s.setblocking(False)
    except BaseException:
        s.close()
        raise


def _connect(s: socket.socket, path: str, timeout: float) -> None:
    """Retries: a unix socket with a full backlog fails at once, whatever the time limit."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return s.connect(path)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{path}: too many connect at once") from None
            time.sleep(0.001)
        except OSError as e:
            raise _with_remedy(e, path) from None


def _with_remedy(error: OSError, path: str) -> OSError:
    """The same error with the path and a remedy."""
    remedy = {
        errno.ENOENT: "is tokd-gpu running, and its --subscribers-socket this one?",
        errno.ECONNREFUSED: "the tokd-gpu that made it is gone: start it again",
        errno.EACCES: "give this user the socket, by --subscribers-mode",
        errno.EPROTOTYPE: "that is the producers' socket: take --subscribers-socket",
    }.get(error.errno or 0, "is it the --subscribers-socket of a tokd-gpu?")
    if error.errno is None:
        return OSError(f"{path}: {error}: {remedy}")
    return OSError(error.errno, f"{path}: {os.strerror(error.errno)}: {remedy}")


def _receive(
    s: socket.socket, path: str, reply_bytes: int, fds_max: int
) -> tuple[bytes, list[tuple[int, int, bytes]], int]:
    room = socket.CMSG_SPACE(fds_max * array.array("i").itemsize)
    for _ in range(2):
        try:
            return s.recvmsg(reply_bytes, room, socket.MSG_CMSG_CLOEXEC)[:3]
        except ConnectionResetError:
            pass  # closed with the request unread: Linux reports that once, before the answer
        except TimeoutError:
            raise TimeoutError(
                f"{path}: no answer to the subscribe request within {s.gettimeout()} s: "
                "is it the --subscribers-socket of a tokd-gpu, and does that run?"
            ) from None
    return b"", [], 0


def map_whole(fd: int, prot: int, what: str, at_least: int) -> mmap.mmap:
    """Map a memfd that is sealed against shrinking, which would cause SIGBUS."""
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError as e:
        raise RingError(f"{what}: not a memfd ({e.strerror})") from e
    if not seals & fcntl.F_SEAL_SHRINK:
        raise RingError(f"{what}: not sealed against shrinking")
    size = os.fstat(fd).st_size  # only now does it stay
    if size < at_least:
        raise RingError(f"{what}: {size} bytes, at least {at_least} are needed")
    return mmap.mmap(fd, size, mmap.MAP_SHARED, prot)
