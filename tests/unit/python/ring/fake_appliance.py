# SPDX-License-Identifier: BSD-3-Clause
"""The control socket and token rings of a dpdk-tokd that does, and gets wrong, what a test
wants."""

import contextlib
import fcntl
import mmap
import os
import socket
import threading
from collections.abc import Iterable

import numpy as np
import ring_layout as layout

TSC_HZ = 2_000_000_000
INSTANCE = 0x1122334455667788
VOCAB = 0xABCD1234


class FakeRing:
    """One ring in a memfd, written as dpdk-tokd writes it."""

    def __init__(self, worker: int = 0, data_bytes: int = 4096) -> None:
        self.worker = worker
        self.data_bytes = data_bytes
        self.head = 0
        self.tail = 0
        self.fd = os.memfd_create(f"ring-{worker}", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, layout.HDR_BYTES + data_bytes)
        self.memory = mmap.mmap(self.fd, layout.HDR_BYTES + data_bytes)
        self.set_header()
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)

    def set_header(self, **other: int) -> None:
        fields = {
            "magic": layout.MAGIC,
            "version": layout.VERSION,
            "worker": self.worker,
            "data_off": layout.HDR_BYTES,
            "data_bytes": self.data_bytes,
            "instance": INSTANCE,
            "tsc_hz": TSC_HZ,
            "vocab": VOCAB,
            "lcore": self.worker + 1,
            "block_size": 0,
            "key_scheme": 0,
            "key_bytes": 0,
        }
        self.memory[: layout.HDR.size] = layout.HDR.pack(*(fields | other).values())

    def set_head(self, head: int) -> None:
        self.memory[layout.HEAD_OFFSET : layout.HEAD_OFFSET + 8] = head.to_bytes(8, "little")

    def set_tail(self, tail: int) -> None:
        self.memory[layout.TAIL_OFFSET : layout.TAIL_OFFSET + 8] = tail.to_bytes(8, "little")

    def publish(self, ids: Iterable[int] = (), keys: bytes = b"", **other: int) -> int:
        """Publish a record; returns its position. A keyword replaces a field of struct tokd_rec."""
        data = np.fromiter(ids, np.uint32).tobytes()
        n_ids = len(data) // 4
        if keys:
            data = data.ljust(-(-len(data) // layout.ALIGN) * layout.ALIGN, b"\0") + keys
        size = -(-(layout.REC.size + len(data)) // layout.ALIGN) * layout.ALIGN
        to_end = self.data_bytes - self.head % self.data_bytes
        if size > to_end:
            self._write({"bytes": to_end, "kind": layout.Kind.PAD}, b"")
        pos = self.head
        fields = {"bytes": size, "kind": layout.Kind.TOKENS, "n_ids": n_ids, "stream_id": 7}
        self._write(fields | other, data, size)
        return pos

    def _write(self, fields: dict[str, int], data: bytes, size: int | None = None) -> None:
        rec = layout.Rec(*(fields.get(name, 0) for name in layout.Rec._fields))
        at = layout.HDR_BYTES + self.head % self.data_bytes
        record = layout.REC.pack(*rec) + data
        self.memory[at : at + len(record)] = record
        self.head += rec.bytes if size is None else size
        self.set_head(self.head)


class FakeAppliance:
    """Takes readers at `path`. A test changes `reply` and `fds` before one attaches."""

    def __init__(self, path: str, rings: list[FakeRing], instance: int = INSTANCE) -> None:
        self.rings = rings
        for r in rings:
            r.set_header(instance=instance)
        self.cursor_fd = os.memfd_create("cursor", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.cursor_fd, layout.CURSOR_BYTES)
        fcntl.fcntl(self.cursor_fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        self.cursors = mmap.mmap(self.cursor_fd, layout.CURSOR_BYTES)
        self.fds = [self.cursor_fd, *(r.fd for r in rings)]
        self.reply = {
            "magic": layout.ATTACH_MAGIC,
            "version": layout.VERSION,
            "n_rings": len(rings),
            "instance": instance,
            "message": b"",
        }
        self.request = b""
        self.readers: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def cursor(self, index: int) -> int:
        return int.from_bytes(self.cursors[64 * index : 64 * index + 8], "little")

    def packed_reply(self) -> bytes:
        r = self.reply
        start = [self.rings[i].head if i < len(self.rings) else 0 for i in range(layout.RINGS_MAX)]
        head = (r["magic"], r["version"], r["n_rings"], 0, r["instance"])
        return layout.ATTACH_REP.pack(*head, *start, r["message"])

    def _serve(self) -> None:
        while True:
            try:
                s, _ = self._listener.accept()
                self.readers.append(s)
                self.request = s.recv(4096)
                if self.request:
                    for i, r in enumerate(self.rings):
                        self.cursors[64 * i : 64 * i + 8] = r.head.to_bytes(8, "little")
                    tap = self.request[8] == layout.MODE_TAP
                    socket.send_fds(s, [self.packed_reply()], self.fds[1:] if tap else self.fds)
            except OSError:
                return

    def drop_readers(self) -> None:
        """As dpdk-tokd parts from readers that stall it: the reason, then the end."""
        starts = [0] * layout.RINGS_MAX
        head = (layout.ATTACH_MAGIC, layout.VERSION, 0, 0, INSTANCE, *starts)
        why = b"it kept the token ring of worker 0 full"
        for s in self.readers:
            with contextlib.suppress(BrokenPipeError):  # it has left already
                s.send(layout.ATTACH_REP.pack(*head, why))
        self.hang_up()

    def hang_up(self) -> None:
        for s in self.readers:
            s.close()
        self.readers.clear()

    def end(self) -> None:
        """As dpdk-tokd ends: the socket, then the readers."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self.hang_up()
