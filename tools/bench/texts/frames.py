# SPDX-License-Identifier: BSD-3-Clause
"""Texts as a capture file for net_pcap, to run an appliance without a network."""

from __future__ import annotations

import struct
from pathlib import Path

import google_crc32c
from dpdk_tokd import wire

OUR_IP = bytes((10, 0, 0, 1))
CLIENT_IP = bytes((10, 0, 0, 2))
PCAP_MAC = bytes.fromhex("027063617000")  # "\2pcap" and the number of the port: what net_pcap takes


def _frame(payload: bytes) -> bytes:
    udp = struct.pack(">4H", 40000, wire.PORT, 8 + len(payload), 0)  # 0: no checksum
    head = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0)
    head += CLIENT_IP + OUR_IP
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    ip = head[:10] + struct.pack(">H", checksum) + head[12:]
    return PCAP_MAC + bytes.fromhex("020000000002") + b"\x08\x00" + ip + udp + payload


def _data(stream_id: int, text: bytes, flags: int, **more: int) -> bytes:
    values = {
        "magic": wire.MAGIC,
        "version": wire.VERSION,
        "type": wire.DATA,
        "flags": flags,
        "epoch": 1,
        "stream_id": stream_id,
        "length": len(text),
        **more,
    }
    req = wire.Req(*(values.get(name, 0) for name in wire.Req._fields))
    return wire.REQ.pack(*req) + text


def text_frame(stream_id: int, text: bytes, *, ids: bool = True, last: bool = True) -> bytes:
    """The packet of a short text; `ids`: request ids in replies; not `last`: more is to come."""
    flags = wire.F_FIRST | (wire.F_LAST if last else 0) | (wire.F_IDS if ids else 0)
    return _frame(_data(stream_id, text, flags, text_crc=google_crc32c.value(text)))


def datagrams(stream_id: int, text: bytes) -> list[bytes]:
    """A text in packets of the protocol's size, which requests no ids in replies."""
    starts = range(0, len(text), wire.PAYLOAD)
    crc = google_crc32c.value(text)
    return [
        _data(
            stream_id,
            text[at : at + wire.PAYLOAD],
            (wire.F_FIRST if at == 0 else 0) | (wire.F_LAST if at == starts[-1] else 0),
            packet=n,
            offset=at,
            text_crc=crc if at == starts[-1] else 0,
        )
        for n, at in enumerate(starts)
    ]


def write_pcap(path: Path, frames: list[bytes]) -> None:
    """A capture of Ethernet frames (LINKTYPE 1), all at time 0."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        f.writelines(struct.pack("<4I", 0, 0, len(frame), len(frame)) + frame for frame in frames)
