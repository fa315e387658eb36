# SPDX-License-Identifier: BSD-3-Clause
"""The wire protocol: the structs of include/tokd/wire.h, which defines them. For programs that make
their own packets; the clients use libtokd-client."""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

MAGIC = 0x444B4F54
VERSION = 1
PORT = 9000
WINDOW = 64  # packets in flight at most, and before any reply
PAYLOAD = 1376  # bytes of text or ids in one packet

DATA, POLL, REPLY = 1, 2, 3

F_FIRST = 1 << 0
F_LAST = 1 << 1
F_IDS = 1 << 2
F_STREAM = 1 << 3
F_DONE = 1 << 4
F_FAIL = 1 << 5
F_DECODE = 1 << 7
F_SKIP_SPECIAL = 1 << 8
F_UNCOUNTED = 1 << 9
F_GENERATE = 1 << 10
F_CANCEL = 1 << 11


class Reason(enum.IntEnum):
    """Why a stream failed or was refused (enum tokd_reason)."""

    NONE = 0
    VERSION = 1
    VOCAB = 2
    LENGTH = 3
    OFFSET = 4
    TEXT_TOO_LONG = 5
    TEXT_CRC = 6
    ID_REUSED = 7
    BUSY = 8
    TIMEOUT = 9
    UTF8 = 10
    CARRY = 11
    EXPIRED = 12
    SHUTDOWN = 13
    UNKNOWN = 14
    SINK = 15
    VALIDATE = 16
    SHARE = 17
    RING = 18
    ID = 19
    LANES = 20


MADE = struct.Struct("<IHH")  # struct tokd_made: id, bytes of text after it, end
GENERATE_MOST = 1 << 20  # ids of an answer
MADE_END = 0xFFFFFFFF

REQ = struct.Struct("<IBBHIIQIIIIIIQI4x")


class Req(NamedTuple):
    """struct tokd_req, client to server."""

    magic: int
    version: int
    type: int
    flags: int
    epoch: int
    vocab: int
    stream_id: int
    packet: int
    length: int
    offset: int
    text_crc: int
    ids_ack: int
    ids_end: int  # in DATA reply_max: bytes of the longest reply that fits; 0: not known
    cookie: int = 0
    limit: int = 0  # in DATA with LAST, with GENERATE: the most ids to make

    def pack(self) -> bytes:
        return REQ.pack(*self)


REP = struct.Struct("<IBBHIIQIIQIIIIII")


class Rep(NamedTuple):
    """struct tokd_rep, server to client."""

    magic: int
    version: int
    type: int
    flags: int
    epoch: int
    vocab: int
    stream_id: int
    ack: int
    credit: int
    sack: int  # with VALIDATE: the cookie
    first: int
    n_ids: int  # `count` in wire.h
    total: int
    ids_crc: int
    reason: int
    text_end: int  # with BUSY retry_ms, with VERSION what the server speaks


def parse_rep(packet: bytes) -> Rep | None:
    """The header of a reply. None: a datagram of another protocol or version."""
    if len(packet) < REP.size:
        return None
    rep = Rep._make(REP.unpack_from(packet))
    if rep.magic != MAGIC or rep.type != REPLY:
        return None
    if rep.reason == Reason.VERSION and rep.flags & F_FAIL and len(packet) == REP.size:
        return rep  # the same in all versions
    if rep.version != VERSION:
        return None
    each = 1 if rep.flags & (F_DECODE | F_GENERATE) else 4
    if len(packet) != REP.size + each * rep.n_ids:
        return None
    return rep
