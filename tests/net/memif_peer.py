# SPDX-License-Identifier: BSD-3-Clause
"""The client's side of memif's control channel: enough of it to come and to go."""

import array
import os
import socket
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

MESSAGE_BYTES = 128
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED = 1, 2, 3, 4, 5, 6, 7
VERSION = 2 << 8
TO_SERVER = 1  # flag of a ring; without it the server writes there
RING_LOG2 = 10
PACKETS = (1 << RING_LOG2) - 1  # that lie in the ring when the server comes to see it
RING_COOKIE = 0x3E31F20
RING_HEAD_BYTES, DESCRIPTOR_BYTES, PACKET_BYTES = 128, 16, 1500


class MemifPeer:
    """One connection to a net_memif server, with packets that mean nothing; a context manager."""

    def __init__(self, path: Path, *, ident: int = 0) -> None:
        """path: of the server's socket, not abstract. ident: the interface's `id`."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._memory = os.memfd_create("memif")
        try:
            self._socket.settimeout(10)
            self._socket.connect(str(path))
            self._come(ident)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()
        os.close(self._memory)

    def _come(self, ident: int) -> None:
        ring = RING_HEAD_BYTES + (DESCRIPTOR_BYTES << RING_LOG2)
        size = 2 * ring + PACKET_BYTES
        os.ftruncate(self._memory, size)
        for at, head in ((0, PACKETS), (ring, 0)):
            os.pwrite(self._memory, struct.pack("<IHH", RING_COOKIE, 0, head), at)
        packet = struct.pack("<HHIII", 0, 0, PACKET_BYTES, 2 * ring, 0)  # all in one place
        os.pwrite(self._memory, packet * (1 << RING_LOG2), RING_HEAD_BYTES)
        self._expect(HELLO)
        self._say(INIT, struct.pack("<HIB", VERSION, ident, 0))
        self._expect(ACK)
        self._say(ADD_REGION, struct.pack("<HQ", 0, size), fd=self._memory)
        self._expect(ACK)
        for flags, offset in ((TO_SERVER, 0), (0, ring)):
            wake = os.eventfd(0)
            body = struct.pack("<HHHIBH", flags, 0, 0, offset, RING_LOG2, 0)
            self._say(ADD_RING, body, fd=wake)
            os.close(wake)
            self._expect(ACK)
        self._say(CONNECT, b"peer")
        self._expect(CONNECTED)

    def _say(self, kind: int, body: bytes, fd: int | None = None) -> None:
        fds = [] if fd is None else [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))
        ]  # fmt: skip
        message = struct.pack("<H", kind) + body
        self._socket.sendmsg([message.ljust(MESSAGE_BYTES, b"\0")], fds)

    def _expect(self, kind: int) -> None:
        said = self._socket.recv(MESSAGE_BYTES)
        if len(said) != MESSAGE_BYTES or said[0] != kind:
            raise ConnectionError(f"message {kind} expected, {said[:100]!r} came")
