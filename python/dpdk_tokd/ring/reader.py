# SPDX-License-Identifier: BSD-3-Clause
"""Reads the token rings: ids where dpdk-tokd wrote them, without a copy."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import get_args

from .._arguments import check_path, check_seconds
from .._native import libtokd as native
from .._polling import PollingReader
from ..tokenizer.block_keys import Scheme
from .errors import RingError, RingRefused
from .range import TokenRange
from .streams import Lost, OpenStreams, Restart

SCHEMES = get_args(Scheme)  # in the order of enum tokb_scheme
ATTACH_TIMEOUT_S = 5.0
RECONNECT_TIMEOUT_S = 1.0  # for one attempt
RECONNECT_PAUSE_S = 0.05  # between attempts


@dataclass(frozen=True, slots=True)
class RingInfo:
    """One ring of an appliance: its worker, and fields of its header."""

    worker: int
    lcore: int
    vocab: int
    data_bytes: int
    tsc_hz: int
    instance: int
    block_size: int  # ids of a block; 0: the appliance runs without --block-keys
    key_scheme: str | None  # its --block-keys


def _scheme(block_size: int, number: int) -> str | None:
    if block_size == 0:
        return None
    return SCHEMES[number] if number < len(SCHEMES) else f"scheme {number}"


class RingReader(PollingReader[TokenRange]):
    """Reads all token rings of a dpdk-tokd on this host.

        with RingReader("/run/dpdk-tokd.sock") as reader:
            for r in reader:
                use(r.stream_id, r.first, r.tokens)

    The appliance does not overwrite what a registered reader holds, and drops the reader if it
    keeps a ring full for too long (`RingDropped`). Continuing releases the previous range;
    `TokenRange.hold()` prevents that. It sees ranges of all clients published after it attached, of
    several workers in turn. One thread at a time.

    A tap (`tap=True`) reads without back-pressure. What it reads may be overwritten meanwhile:
    check `TokenRange.intact` or the result of `release()` after use. `TokenRange.lost_bytes` and
    `lost` count what it missed.

    With `reconnect=True` the reader attaches to the next appliance at the same path.
    `TokenRange.instance` names the appliance of a range, and `restarts` lists the streams that were
    cut.
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
        appliance, before TimeoutError; None: no limit. Attaching itself waits for at most 5 s.
        OSError: no such socket, or no permission; RingRefused: for example, all readers' slots are
        taken; RingError: the answer violates ring.h.
        """
        self._path = check_path("socket_path", socket_path)
        if timeout is not None:
            check_seconds("timeout", timeout)
        self._timeout = timeout
        self._tap = tap
        self._streams = OpenStreams() if reconnect else None
        self._attempt_at = 0.0
        self._attach_error: Exception | None = None  # the latest attempt failed
        self.restarts: list[Restart] = []
        self._reader = self._attach(ATTACH_TIMEOUT_S)

    def _attach(self, timeout: float) -> native.Reader[TokenRange]:
        return native.Reader(self._path, self._tap, round(timeout * 1e3), TokenRange)

    @property
    def rings(self) -> list[RingInfo]:
        """The workers' rings; none after the reader was closed."""
        if self._reader.closed:
            return []
        return [
            RingInfo(*ring[:5], self._reader.instance, ring[5], _scheme(*ring[5:]))
            for ring, _ in self._reader.rings()
        ]

    @property
    def instance(self) -> int:
        """The run of dpdk-tokd that the reader is, or was last, attached to."""
        if self._reader.closed:
            raise RingError(f"{self._path}: the reader is closed")
        return self._reader.instance

    @property
    def attached(self) -> bool:
        """False when the appliance has ended; with `reconnect` until the next one."""
        return not self._reader.closed and not self._reader.gone

    @property
    def lost(self) -> list[Lost]:
        """What a tap lost of this instance, by worker. A registered reader loses nothing."""
        return [] if self._reader.closed else [Lost(*lost) for _, lost in self._reader.rings()]

    def poll(self) -> TokenRange | None:
        """The next range, or None if none is published. Releases the previous one.

        Raises RingDropped if the appliance dropped this reader. `closed` and `attached` tell
        whether it has ended.
        """
        given = self._reader.next()
        if self._streams is not None:
            if given is not None:
                self._streams.note(given)
            elif self._reader.gone:
                self._reattach(self._streams)
        return given

    _next = poll

    def _reattach(self, streams: OpenStreams) -> None:
        """Attach to the next appliance, if there is one."""
        now = time.monotonic()
        if now < self._attempt_at:
            return
        self._attempt_at = now + RECONNECT_PAUSE_S
        try:
            reader = self._attach(RECONNECT_TIMEOUT_S)
        except (OSError, RingRefused) as e:
            self._attach_error = e  # not yet there, or not yet ready
            return
        old, lost = self.instance, tuple(self.lost)
        self._reader = reader  # what is held of the old rings keeps their memory
        self.restarts.append(Restart(old, self.instance, streams.cut(), lost))

    @property
    def closed(self) -> bool:
        """No further range will come: `close()` was called, or the appliance has ended without
        `reconnect`."""
        return self._reader.closed or (self._reader.gone and self._streams is None)

    def _timeout_message(self) -> str:
        if self._reader.gone:
            why = f" ({self._attach_error})" if self._attach_error else ""
            return f"{self._path}: no appliance within {self._timeout} s{why}"
        return f"{self._path}: no token range within {self._timeout} s"

    def close(self) -> None:
        """Detach. Existing arrays stay readable, but the appliance may overwrite them."""
        self._reader.close()
