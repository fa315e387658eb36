# SPDX-License-Identifier: BSD-3-Clause
"""Attaches to tokd-gpu as a subscriber: one request, one answer with descriptors."""

from __future__ import annotations

import array
import mmap
import socket
from dataclasses import dataclass

from ..ring.errors import RingError, RingRefused
from .layout import (
    CURSOR_BYTES,
    DATA_OFFSET,
    ENGINE_REP,
    ENTRY,
    HDR,
    HOLD_MAGIC,
    MAGIC,
    REP,
    REQ,
    SUBSCRIBE_ENGINE,
    VERSION,
    Dtype,
    EngineReply,
    Outputs,
    Reply,
)
from .request import map_whole, request


@dataclass(slots=True)
class Attached:
    """A subscriber's connection and mappings."""

    socket: socket.socket  # non-blocking
    reply: Reply
    cursor: mmap.mmap
    ring: mmap.mmap
    entries: int
    outputs: mmap.mmap | None  # None: of a GPU, see reply.ipc
    engine: EngineReply | None = None
    made: mmap.mmap | None = None  # what an engine writes


def attach(path: str, timeout: float, as_engine: bool = False) -> Attached:
    """Attach within `timeout` seconds.

    OSError: no such socket, no permission, or no answer in time; RingRefused; RingError.
    """
    message = REQ.pack(HOLD_MAGIC, VERSION, SUBSCRIBE_ENGINE if as_engine else 0, 0)
    size = REP.size + (ENGINE_REP.size if as_engine else 0)
    with request(path, message, size, 3 + as_engine, timeout) as (s, reply, fds):
        if not as_engine:
            return _parse_reply(s, reply, fds, path)
        a = _parse_reply(s, reply[: REP.size], fds[:3], path)  # a refusal has no more
        return _parse_engine(a, reply, fds, path)


def _parse_engine(a: Attached, data: bytes, fds: array.array[int], path: str) -> Attached:
    if len(data) != REP.size + ENGINE_REP.size or len(fds) != (2 if a.outputs is None else 4):
        raise RingError(f"{path}: engine reply of {len(data)} bytes, {len(fds)} descriptors")
    e = EngineReply._make(ENGINE_REP.unpack_from(data, REP.size))
    if a.reply.reserved != SUBSCRIBE_ENGINE or e.n_ids == 0 or e.ids_off < a.reply.out_bytes:
        raise RingError(f"{path}: invalid engine reply: {e}")
    a.engine = e
    if a.outputs is not None:  # else it is in GPU memory, too
        a.made = map_whole(fds[3], mmap.PROT_READ | mmap.PROT_WRITE, "engine's memory", 1)
    return a


def _parse_reply(s: socket.socket, data: bytes, fds: array.array[int], path: str) -> Attached:
    if not data:
        raise RingRefused(f"{path}: closed without an answer: see what tokd-gpu printed")
    if len(data) != REP.size:
        raise RingError(f"{path}: subscribe reply of {len(data)} bytes, expected {REP.size}")
    reply = Reply._make(REP.unpack(data))
    if reply.magic != HOLD_MAGIC or reply.version != VERSION:
        raise RingError(
            f"{path}: magic {reply.magic:#x}, version {reply.version}: expected "
            f"{HOLD_MAGIC:#x}, {VERSION}"
        )
    if reply.outputs == 0:
        raise RingRefused(f"{path}: subscribing was refused: {reply.reason}")
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
