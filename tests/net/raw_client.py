# SPDX-License-Identifier: BSD-3-Clause
"""Packets made by hand: a stream whose every field a test may set, and whole Ethernet frames."""

import secrets
import socket
import struct
import time
from typing import Self

import google_crc32c
import numpy as np
from dpdk_tokd import wire
from dpdk_tokd.wire import Reason
from netlab import CLIENT_IP, SERVER_IP, NetLab

COOKIE_AT = 48  # in a request
QUIET_S = 0.3  # no reply for so long: none will come
SEND_S = 5.0  # the kernel may wait for a CPU that others poll on


class RawStream:
    """One stream over a socket of its own. Replies are kept as they come."""

    def __init__(self, lab: NetLab, *, flags: int = wire.F_IDS, host: str = SERVER_IP) -> None:
        def connected() -> socket.socket:  # inside, where fe80::1%eth0 has a meaning
            ((family, kind, _, _, address),) = socket.getaddrinfo(
                host, wire.PORT, type=socket.SOCK_DGRAM
            )
            s = socket.socket(family, kind)
            s.connect(address)
            return s

        self._socket = lab.call(connected)
        self.flags = flags
        self.epoch = secrets.randbits(32)
        self.stream_id = secrets.randbits(64)
        self.ids: dict[int, int] = {}
        self.cookie = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def header(self, **fields: int) -> wire.Req:
        ordinary = {
            "magic": wire.MAGIC,
            "version": wire.VERSION,
            "epoch": self.epoch,
            "stream_id": self.stream_id,
            "cookie": self.cookie,
        }
        values = ordinary | fields
        return wire.Req(*(values.get(name, 0) for name in wire.Req._fields))

    def packets(
        self, text: bytes, cuts: list[int] | None = None, reply_max: int = 0
    ) -> list[bytes]:
        """The packets of `text`, cut at `cuts` or as a client would."""
        if cuts is None:
            cuts = list(range(wire.PAYLOAD, len(text), wire.PAYLOAD))
        starts, ends = [0, *cuts], [*cuts, len(text)]
        return [
            self.data(
                text[a:b],
                packet=n,
                offset=a,
                ids_end=reply_max,
                flags=self.flags
                | (wire.F_FIRST if n == 0 else 0)
                | (wire.F_LAST if n == len(starts) - 1 else 0),
                text_crc=google_crc32c.value(text) if n == len(starts) - 1 else 0,
            )
            for n, (a, b) in enumerate(zip(starts, ends, strict=True))
        ]

    def data(self, payload: bytes, **fields: int) -> bytes:
        fields = {"type": wire.DATA, "length": len(payload)} | fields
        return self.header(**fields).pack() + payload

    def poll(self, **fields: int) -> bytes:
        return self.header(type=wire.POLL, **fields).pack()

    def send(self, *packets: bytes) -> None:
        self._socket.settimeout(SEND_S)
        for packet in packets:
            self._socket.send(packet)

    def reply(self, seconds: float = 2.0) -> wire.Rep | None:
        """The next reply, or None if none comes."""
        self._socket.settimeout(seconds)
        try:
            packet = self._socket.recv(4096)
        except TimeoutError:
            return None
        rep = wire.parse_rep(packet)
        assert rep is not None, packet
        ids = np.frombuffer(packet, np.uint32, rep.n_ids, wire.REP.size)
        self.ids.update(zip(range(rep.first, rep.first + rep.n_ids), ids.tolist(), strict=True))
        return rep

    def replies(self) -> list[wire.Rep]:
        """All replies until there is a while without any."""
        found = []
        while (rep := self.reply(QUIET_S)) is not None:
            found.append(rep)
        return found

    def finish(self, packets: list[bytes], seconds: float = 10.0) -> wire.Rep:
        """Send `packets` a few at a time, and again what is lost, until the stream is done and
        all its ids are here, if it wants them, or it failed. Returns the reply that said so."""
        deadline = time.monotonic() + seconds
        ack, sent = 0, 0
        final = None
        while time.monotonic() < deadline:
            while sent < min(len(packets), ack + wire.WINDOW // 2):
                self.send(packets[sent])
                sent += 1
            rep = self.reply(0.05)
            if rep is None:
                have = self.contiguous()
                self.send(*packets[ack : ack + 8], self.poll(ids_ack=have, ids_end=1 << 31))
                continue
            ack = max(ack, rep.ack)
            if rep.reason == Reason.VALIDATE:
                self.cookie = rep.sack
                cookie = rep.sack.to_bytes(8, "little")
                packets = [p[:COOKIE_AT] + cookie + p[COOKIE_AT + 8 :] for p in packets]
                continue
            if rep.flags & (wire.F_DONE | wire.F_FAIL):
                final = rep
            if final is None:
                continue
            total = final.total if self.flags & wire.F_IDS else 0
            if final.reason or self.contiguous() == total:
                return final
        raise AssertionError(f"not done after {seconds} s: ack {ack} of {len(packets)}, {final}")

    def contiguous(self) -> int:
        n = 0
        while n in self.ids:
            n += 1
        return n

    def id_list(self) -> list[int]:
        return [self.ids[i] for i in range(len(self.ids))]


def checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(lab: NetLab, payload: bytes, udp_checksum: int = 0) -> bytes:
    """An Ethernet frame with a UDP datagram for the appliance; `udp_checksum` is added to the right
    one. RFC 791, RFC 768."""
    src, dst = socket.inet_aton(CLIENT_IP), socket.inet_aton(SERVER_IP)
    udp = struct.pack(">HHH", 43210, wire.PORT, 8 + len(payload))
    pseudo = src + dst + struct.pack(">BBH", 0, socket.IPPROTO_UDP, 8 + len(payload))
    udp_sum = (checksum(pseudo + udp + b"\0\0" + payload) + udp_checksum) & 0xFFFF

    def ip_header(ip_sum: int) -> bytes:
        head = (0x45, 0, 28 + len(payload), 1, 0x4000, 64, socket.IPPROTO_UDP, ip_sum)
        return struct.pack(">BBHHHBBH4s4s", *head, src, dst)

    ethernet = lab.mac(lab.server_if) + lab.mac(lab.client_if) + b"\x08\0"
    ip = ip_header(checksum(ip_header(0)))
    return ethernet + ip + udp + struct.pack(">H", udp_sum) + payload


def send_frames(lab: NetLab, *frames: bytes) -> None:
    with lab.call(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)) as s:
        s.bind((lab.client_if, 0))
        for f in frames:
            s.send(f)
