# SPDX-License-Identifier: BSD-3-Clause
"""include/tokd/embeddings.h and engine.h in Python: the ring of embeddings, and the messages of a
subscriber and of an engine."""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

MAGIC = 0x3144424D454B4F54
HOLD_MAGIC = 0x4D454754
VERSION = 3
DATA_OFFSET = 4096
HEAD_OFFSET = 64
TAIL_OFFSET = 128
CURSOR_BYTES = 4096

HDR = struct.Struct("<QIIQ")  # up to pad0; head and tail are loaded by themselves
ENTRY = struct.Struct("<QQIIIIQHHB3xIIQQQQQQII16x")
REQ = struct.Struct("<IIII")
REP = struct.Struct("<IIIIQQQIIII64s16s128s")
ENGINE_REP = struct.Struct("<IIIIQQQ32x")  # after REP

SUBSCRIBE_ENGINE = 1

FIRST = 1 << 0
LAST = 1 << 1
ABORT = 1 << 3
GENERATE = 1 << 6


class Outputs(enum.IntEnum):
    """enum tokg_outputs_kind."""

    MEMFD = 1
    CUDA_IPC = 2


class Dtype(enum.IntEnum):
    """enum tokg_dtype."""

    F32 = 1
    F16 = 2
    BF16 = 3


class EmbeddingStatus(enum.IntEnum):
    """enum tokg_status of gpu_ring.h, the part that subscribers see."""

    OK = 1
    BADID = 5  # an id beyond the table: a row of zeros
    BADPOS = 6  # a position beyond the table
    SHED = 7  # a notice: texts up to `request` that are not complete never will be


class Entry(NamedTuple):
    """struct tokg_embedding."""

    instance: int
    request: int
    worker: int
    producer: int
    epoch: int
    slot: int
    ticket: int
    part: int
    flags: int
    status: int
    first: int
    tokens: int
    offset: int
    t_post: int
    visible: int
    embedded: int
    t_ready: int
    ids: int
    lane: int
    use: int


class EngineReply(NamedTuple):
    """What struct tokg_engine_rep has besides."""

    lanes: int
    room: int
    n_ids: int
    reserved: int
    ids_off: int
    shown_off: int
    made_off: int


class LaneEnd(enum.IntEnum):
    """enum tokd_lane_end. An engine gives STOP, LENGTH or CUT."""

    OPEN = 0
    STOP = 1  # the model ended the text
    LENGTH = 2  # all that was asked for, or that the model can
    CANCELLED = 3  # the client wants no more
    CUT = 4  # the engine cannot go on with it, or broke a rule; or the consumer was restarted
    STALE = 5  # the appliance is gone


class Reply(NamedTuple):
    """struct tokg_subscribe_rep."""

    magic: int
    version: int
    outputs: int
    reserved: int
    instance: int
    start: int
    out_bytes: int
    kind: int
    dtype: int
    dim: int
    row_bytes: int
    ipc: bytes
    uuid: bytes
    message: bytes

    @property
    def reason(self) -> str:
        """The text of a refusal or of the last message."""
        return self.message.split(b"\0")[0].decode("utf-8", "replace")
