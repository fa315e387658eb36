# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong with a token ring."""

from __future__ import annotations

from .._native import libtokd as native


class RingError(RuntimeError):
    """What the socket or a ring says is not what ring.h allows; or one of the classes below."""


class RingRefused(RingError):
    """Attaching was refused, or the appliance went away before it answered."""


class RingDropped(RingError):
    """dpdk-tokd no longer waits for this reader, which stalled a ring for too long.

    `lost_bytes`: records, in bytes of ring, that were published and not released.
    `overwritten`: views that had not been released may have shown other bytes than theirs.
    """

    def __init__(self, message: str, *, lost_bytes: int, overwritten: bool) -> None:
        super().__init__(message)
        self.lost_bytes = lost_bytes
        self.overwritten = overwritten


def from_code(code: int, errno: int, why: str, lost_bytes: int, overwritten: bool) -> Exception:
    """An enum tokr_result as an exception; the extension calls it."""
    if code == native.RING_SYSTEM:
        return OSError(errno, why)
    if code == native.RING_TIMEOUT:
        return TimeoutError(why)
    if code == native.RING_REFUSED:
        return RingRefused(why)
    if code == native.RING_DROPPED:
        return RingDropped(why, lost_bytes=lost_bytes, overwritten=overwritten)
    return RingError(why)
