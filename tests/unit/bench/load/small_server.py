# SPDX-License-Identifier: BSD-3-Clause
"""A server for one client at a time that speaks either protocol, badly where it is told to.

Its "ids" are the bytes of the text, so that a test knows what is right.
"""

import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

import google_crc32c
import numpy as np

REQ = struct.Struct("<IBBHIIQIIIIIIIIII")
REP = struct.Struct("<IBBHIIQIIQIIIIII")
MAGIC = 0x444B4F54
DATA, POLL, REPLY = 1, 2, 3
LAST, STREAM, DONE, FAIL = 1 << 1, 1 << 3, 1 << 4, 1 << 5
IDS_A_PACKET = 344
WINDOW = 64


def ids_of(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8).astype("<u4")


class Stream:
    def __init__(self) -> None:
        self.packets: dict[int, bytes] = {}
        self.last: int | None = None
        self.ids: np.ndarray | None = None  # once the text is complete

    @property
    def ack(self) -> int:
        return next(i for i in range(len(self.packets) + 1) if i not in self.packets)

    @property
    def done(self) -> bool:
        return self.last is not None and self.ack > self.last

    @property
    def text(self) -> bytes:
        return b"".join(self.packets[i] for i in range(self.ack))


class Server:
    """`lose(n)` says whether the n-th packet, in or out, is lost."""

    def __init__(self, lose: Callable[[int], bool], reason: int = 0) -> None:
        self.lose = lose
        self.reason = reason  # if not 0, everything is refused with it
        self.spoil = False  # one id of each answer is wrong, under a right checksum
        self.plain = False
        self.before: Callable[[bytes], None] = lambda _: None  # each packet is taken
        self.vocab = 1  # its own, or what was asked for last
        self.asked_to_stream: set[bool] = set()  # by packets of text
        self.count = 0
        self.streams: dict[int, Stream] = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.05)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        self.socket.close()

    def lost(self) -> bool:
        self.count += 1
        return self.lose(self.count)

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                packet, peer = self.socket.recvfrom(65536)
            except TimeoutError:
                continue
            if self.lost():
                continue
            self.before(packet)
            answers = [self.spoiled(ids_of(packet)).tobytes()] if self.plain else self.take(packet)
            for answer in answers:
                if not self.lost():
                    self.socket.sendto(answer, peer)

    def spoiled(self, ids: np.ndarray) -> np.ndarray:
        if self.spoil and len(ids):
            ids[-1] += 1
        return ids

    def take(self, packet: bytes) -> list[bytes]:
        magic, version, kind, flags, epoch, vocab, stream_id, number, length, *rest = (
            REQ.unpack_from(packet)
        )
        assert (magic, version) == (MAGIC, 1)
        self.vocab = vocab or self.vocab
        stream = self.streams.setdefault(stream_id, Stream())
        if self.reason:
            return [self.reply(stream, epoch, stream_id, 0, 0)]
        if kind == DATA:
            self.asked_to_stream.add(bool(flags & STREAM))
            stream.packets[number] = packet[REQ.size : REQ.size + length]
            if flags & LAST:
                stream.last = number
        first, end = 0, 0
        if stream.done and stream.ids is None:
            stream.ids = self.spoiled(ids_of(stream.text))
            end = len(stream.ids)
        elif stream.done and kind == POLL:
            first, end = rest[2], rest[3]
        starts = range(first, end, IDS_A_PACKET) or (first,)
        return [
            self.reply(stream, epoch, stream_id, at, min(end, at + IDS_A_PACKET)) for at in starts
        ]

    def reply(self, stream: Stream, epoch: int, stream_id: int, first: int, end: int) -> bytes:
        every = ids_of(b"") if stream.ids is None else stream.ids
        ids = every[first:end]
        flags = FAIL if self.reason else DONE if stream.done else 0
        crc = google_crc32c.value(every.tobytes())
        ack = stream.ack
        held = sum(1 << (n - ack - 1) for n in stream.packets if ack < n <= ack + 64)
        header = REP.pack(
            *(MAGIC, 1, REPLY, flags, epoch, self.vocab, stream_id, ack, WINDOW, held),
            *(first, len(ids), len(every), crc, self.reason, len(every)),  # an id is a byte
        )
        return header + ids.tobytes()


class TcpServer:
    """Of one connection: texts and ids, each after its length, in order."""

    plain = False

    def __init__(self) -> None:
        self.before: Callable[[bytes], None] = lambda _: None  # each text is answered
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.run)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)  # wakes accept(), if nobody came
        self.thread.join()
        self.socket.close()

    def run(self) -> None:
        try:
            peer, _ = self.socket.accept()
        except OSError:
            return
        with peer, peer.makefile("rb") as texts:
            while len(length := texts.read(4)) == 4:
                text = texts.read(int.from_bytes(length, "little"))
                ids = ids_of(text).tobytes()
                try:
                    self.before(text)
                    peer.sendall(struct.pack("<I", len(ids)) + ids)
                except ConnectionError:
                    return
