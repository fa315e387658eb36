# SPDX-License-Identifier: BSD-3-Clause
"""include/tokd/ring.h in Python, for what tests write themselves: rings, records, attach
messages."""

import enum
import struct
from typing import NamedTuple

MAGIC = 0x31474E52444B4F54
VERSION = 1
HDR_BYTES = 4096
ALIGN = 64
HEAD_OFFSET = 64
TAIL_OFFSET = 128

RINGS_MAX = 63
CURSOR_BYTES = 4096
ATTACH_MAGIC = 0x54544144
MODE_TAP = 2

HDR = struct.Struct("<QIIQQQQIIIHH")  # up to head; head and tail are loaded by themselves
REC = struct.Struct("<IHHQQQQIIIIII")
ATTACH_REQ = struct.Struct("<IIII")
ATTACH_REP = struct.Struct(f"<IIIIQ{RINGS_MAX}Q128s")


class Kind(enum.IntEnum):
    """enum tokd_rec_kind."""

    TOKENS = 1
    PAD = 2


REC_FIRST = 1 << 0
REC_LAST = 1 << 1
REC_ABORT = 1 << 2
REC_KEYS = 1 << 3


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
