# SPDX-License-Identifier: BSD-3-Clause
"""An appliance that a test scripts, over a real socket."""

import socket
import threading
from collections.abc import Callable

import google_crc32c
import numpy as np
from dpdk_tokd import Reason, wire


def ids_of(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8).astype("<u4")


def text_of(ids: np.ndarray) -> bytes:
    return "".join(map(chr, ids)).encode()


class Appliance:
    """Answers each packet of text: a byte is an id, and of ids: one is a character. A test replaces
    `reply`, or `ids`, `text` and `vocab`. It knows no stream of a POLL, unless a test replaces
    `polled`.

    A text is one packet here.
    """

    def __init__(self) -> None:
        self.ids: Callable[[bytes], np.ndarray] = ids_of
        self.text: Callable[[np.ndarray], bytes] = text_of
        self.vocab = 5
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.02)
        self.port = self.socket.getsockname()[1]
        self.data = 0  # packets of text that came
        self.answering = True
        self.prompt = 0  # bytes of the latest one
        self.reply: Callable[[wire.Req, bytes], list[bytes]] = self.answered
        self.polled: Callable[[wire.Req], list[bytes]] = lambda q: self.fail(q, Reason.UNKNOWN)
        self._stop = False
        self._thread = threading.Thread(target=self._serve)

    def answered(self, req: wire.Req, text: bytes) -> list[bytes]:
        return (self.decoded if req.flags & wire.F_DECODE else self.done)(req, text)

    def done(self, req: wire.Req, text: bytes, **other: int) -> list[bytes]:
        """The ids, the end, and the CRC32C of both; keywords replace fields of the header."""
        ids = self.ids(text)
        fields = {
            "magic": wire.MAGIC, "version": wire.VERSION, "type": wire.REPLY, "flags": wire.F_DONE,
            "epoch": req.epoch, "vocab": self.vocab, "stream_id": req.stream_id, "ack": 1,
            "credit": wire.WINDOW, "sack": 0, "first": 0, "n_ids": len(ids), "total": len(ids),
            "ids_crc": google_crc32c.value(ids.tobytes()), "reason": 0, "text_end": len(text),
        }  # fmt: skip
        rep = wire.Rep(**(fields | other))
        return [wire.REP.pack(*rep) + ids[rep.first : rep.first + rep.n_ids].tobytes()]

    def decoded(self, req: wire.Req, ids: bytes, **other: int) -> list[bytes]:
        """The same for ids."""
        text = self.text(np.frombuffer(ids, "<u4"))
        fields = {
            "flags": wire.F_DONE | wire.F_DECODE, "n_ids": len(text), "total": len(text),
            "ids_crc": google_crc32c.value(text), "text_end": len(ids),
        }  # fmt: skip
        (header,) = self.done(req, b"", **(fields | other))
        return [header + text]

    def made(self, req: wire.Req, first: int, answer: bytes, end: bool) -> list[bytes]:
        """Of the answer to a prompt of one packet the bytes from `first` on, as far as it is made;
        `end`: with it."""
        part = answer[first : first + wire.PAYLOAD]
        (header,) = self.done(
            req, b"", flags=wire.F_GENERATE | (wire.F_DONE if end else 0), first=first,
            n_ids=len(part), total=len(answer), ids_crc=google_crc32c.value(answer),
            text_end=req.length if req.type == wire.DATA else self.prompt,
        )  # fmt: skip
        self.prompt = req.length if req.type == wire.DATA else self.prompt
        return [header + part]

    def fail(self, req: wire.Req, reason: int) -> list[bytes]:
        return self.done(req, b"", flags=wire.F_FAIL, reason=reason)

    def answer(self) -> int:
        """Answer what has come; how many packets of text there were."""
        before = self.data
        while True:
            try:
                packet, peer = self.socket.recvfrom(2048)
            except (BlockingIOError, TimeoutError):
                return self.data - before
            if not self.answering:
                continue
            req = wire.Req._make(wire.REQ.unpack_from(packet))
            if req.vocab not in (0, self.vocab):
                replies = self.fail(req, Reason.VOCAB)
            elif req.type == wire.DATA:
                self.data += 1
                replies = self.reply(req, packet[wire.REQ.size :])
            else:  # of a stream that is over, or a probe
                replies = self.polled(req)
            for reply in replies:
                self.socket.sendto(reply, peer)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop = True
        if self._thread.is_alive():
            self._thread.join()
        self.socket.close()

    def _serve(self) -> None:
        while not self._stop:
            self.answer()
