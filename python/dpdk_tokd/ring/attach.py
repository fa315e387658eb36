# SPDX-License-Identifier: BSD-3-Clause
"""Attaching to the control socket: one request, one answer with descriptors, and the farewell."""

from __future__ import annotations

import array
import mmap
import socket

from .._asking import Program, ask
from .errors import RingError, RingRefused
from .layout import (
    ATTACH_MAGIC,
    ATTACH_REP,
    ATTACH_REQ,
    CURSOR_BYTES,
    MODE_READER,
    MODE_TAP,
    RINGS_MAX,
    VERSION,
)
from .memory import Ring, map_whole

APPLIANCE = Program(
    "dpdk-tokd",
    "--socket",
    "give this user's group the socket, by --socket-group and --socket-mode",
    "attach",
    "ring.h",
)


def attach(path: str, *, tap: bool, timeout: float) -> tuple[socket.socket, list[Ring]]:
    """Attach within `timeout` seconds. The socket, non-blocking, and the rings.

    OSError: no such socket, no permission, or no answer in time; RingRefused; RingError.
    """
    request = ATTACH_REQ.pack(ATTACH_MAGIC, VERSION, MODE_TAP if tap else MODE_READER, 0)
    with ask(path, APPLIANCE, request, ATTACH_REP.size, 1 + RINGS_MAX, timeout) as (s, reply, fds):
        return s, _take_rings(reply, fds, path, tap)


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
