# SPDX-License-Identifier: BSD-3-Clause
"""The token ring, reader's side: token ids where dpdk-tokd wrote them, without a copy."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass

from .._waiting import Waiting
from .attach import attach, reason_of
from .errors import RingDropped, RingError, RingRefused
from .layout import ATTACH_REP
from .memory import Lost, Ring
from .range import TokenRange
from .streams import CutStream, OpenStreams, Restart

__all__ = [
    "CutStream",
    "Lost",
    "Restart",
    "RingDropped",
    "RingError",
    "RingInfo",
    "RingReader",
    "RingRefused",
    "TokenRange",
]

ATTACH_TIMEOUT_S = 5.0
RECONNECT_TIMEOUT_S = 1.0  # for one attempt
RECONNECT_PAUSE_S = 0.05  # between attempts
LIVENESS_POLLS = 1024  # between looks at the socket while there is always something to read


@dataclass(frozen=True, slots=True)
class RingInfo:
    """One ring of an appliance: its worker, and what its header says."""

    worker: int
    lcore: int
    vocab: int
    data_bytes: int
    tsc_hz: int
    instance: int


class RingReader(Waiting[TokenRange]):
    """A reader of all token rings of a dpdk-tokd on this host.

        with RingReader("/run/dpdk-tokd.sock") as reader:
            for r in reader:
                use(r.stream_id, r.first, r.tokens)

    The appliance waits for a registered reader, whose views therefore stand until released, and
    drops it when it stalls a full ring for too long (`RingDropped`). Going on to the next range
    releases the one before it; `TokenRange.hold()` prevents that. It sees ranges published after
    it attached, of all clients, those of several workers in turn. One thread at a time.

    A tap (`tap=True`) is not waited for, and holds nothing up. What it reads may be overwritten
    meanwhile: `TokenRange.intact`, asked after use, or `release()`, says so. What it missed it
    counts: `TokenRange.lost_bytes`, `lost`.

    With `reconnect=True` the end of the appliance is not the end: the reader attaches to the next
    one at the same path. `TokenRange.instance` tells whose a range is, and `restarts` gets an
    entry with the streams that were cut.
    """

    def __init__(
        self,
        socket_path: str | os.PathLike[str],
        timeout: float | None = None,
        *,
        tap: bool = False,
        reconnect: bool = False,
    ) -> None:
        """Attach to the control socket at `socket_path`.

        timeout: seconds that iteration waits for the next range, and with `reconnect` for the next
        appliance, before TimeoutError; None: for ever. Attaching itself waits for 5 s at most.
        OSError: no such socket, or no permission; RingRefused: for example, all places are taken;
        RingError: something is not as ring.h says.
        """
        self._path = os.fspath(socket_path)
        self._timeout = timeout
        self._tap = tap
        self._current: TokenRange | None = None
        self._turn = 0
        self._polls = 0
        self._gone = False
        self._streams = OpenStreams() if reconnect else None
        self._attempt_at = 0.0
        self._why_not: Exception | None = None  # the latest attempt failed
        self.restarts: list[Restart] = []
        self._socket: socket.socket | None = None
        self._rings: list[Ring] = []
        self._socket, self._rings = attach(self._path, tap=tap, timeout=ATTACH_TIMEOUT_S)

    @property
    def rings(self) -> list[RingInfo]:
        return [
            RingInfo(h.worker, h.lcore, h.vocab, h.data_bytes, h.tsc_hz, h.instance)
            for h in (ring.hdr for ring in self._rings)
        ]

    @property
    def instance(self) -> int:
        """Which start of dpdk-tokd the reader is, or was last, attached to."""
        if not self._rings:
            raise RingError(f"{self._path}: the reader is closed")
        return self._rings[0].hdr.instance

    @property
    def attached(self) -> bool:
        """False when the appliance has ended: until the next one, with `reconnect`."""
        return bool(self._rings) and not self._gone

    @property
    def lost(self) -> list[Lost]:
        """What a tap lost of this instance, by worker. Of a registered reader: nothing."""
        return [ring.lost for ring in self._rings]

    def poll(self) -> TokenRange | None:
        """The next range, or None if none is published. Releases the one before it.

        RingDropped: the appliance no longer waits for this reader. Whether it has ended, `closed`
        and `attached` say.
        """
        if not self._rings:
            raise RingError(f"{self._path}: the reader is closed")
        self._release_current()
        self._polls += 1
        if self._polls % LIVENESS_POLLS == 0:
            self._check_alive()
        given = self._next()
        if given is None and self._check_alive():
            given = self._next()  # published before it went
        if given is None and self._gone and self._streams is not None:
            self._try_again(self._streams)
        return given

    def _release_current(self) -> None:
        current, self._current = self._current, None
        if current is not None and not current._held:
            current.release()

    def _next(self) -> TokenRange | None:
        n = len(self._rings)
        for _ in range(n):
            ring = self._rings[self._turn]
            self._turn = (self._turn + 1) % n
            try:
                given = ring.next()
            except RingDropped:
                self._check_alive()  # raises it with the appliance's own words, if they have come
                raise
            if given is not None:
                self._current = given
                if self._streams is not None:
                    self._streams.note(given)
                return given
        return None

    def _check_alive(self) -> bool:
        """True if the appliance ended just now; RingDropped if it goes on without this reader."""
        if self._gone or self._socket is None:
            return False
        try:
            farewell = self._socket.recv(ATTACH_REP.size)
        except BlockingIOError:
            return False
        except ConnectionError:
            farewell = b""
        if farewell:
            raise RingDropped(
                f"{self._path}: dropped by the appliance: {reason_of(farewell)}",
                lost_bytes=sum(ring.unreleased_bytes() for ring in self._rings),
                overwritten=any(ring.overwritten() for ring in self._rings),
            )
        self._gone = True
        return True

    def _try_again(self, streams: OpenStreams) -> None:
        """Attach to the next appliance, if there is one by now."""
        now = time.monotonic()
        if now < self._attempt_at:
            return
        self._attempt_at = now + RECONNECT_PAUSE_S
        try:
            s, rings = attach(self._path, tap=self._tap, timeout=RECONNECT_TIMEOUT_S)
        except (OSError, RingRefused) as e:
            self._why_not = e  # not yet there, or not yet ready
            return
        if self._socket is not None:
            self._socket.close()
        old, lost = self.instance, tuple(self.lost)
        # What is held of the old rings keeps their memory.
        self._socket, self._rings, self._turn, self._gone = s, rings, 0, False
        self.restarts.append(Restart(old, self.instance, streams.cut(), lost))

    @property
    def closed(self) -> bool:
        """Nothing new will come: `close()` was called, or the appliance has ended and the reader
        was not to attach to the next."""
        return not self._rings or (self._gone and self._streams is None)

    def _nothing_came(self) -> str:
        if self._gone:
            why = f" ({self._why_not})" if self._why_not else ""
            return f"{self._path}: no appliance within {self._timeout} s{why}"
        return f"{self._path}: no token range within {self._timeout} s"

    def close(self) -> None:
        """Detach. Arrays still about stay readable, but the appliance may overwrite them."""
        self._current = None
        for ring in self._rings:
            ring.close()
        self._rings = []
        if self._socket is not None:
            self._socket.close()
