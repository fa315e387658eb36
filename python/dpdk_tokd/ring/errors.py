# SPDX-License-Identifier: BSD-3-Clause
"""Errors of token rings."""

from __future__ import annotations

from .._native import libtokd as native


class RingError(RuntimeError):
    """The socket or a ring violates ring.h; or one of the subclasses below."""


class RingRefused(RingError):
    """Attaching was refused, or the appliance ended before it answered."""


class RingDropped(RingError):
    """dpdk-tokd dropped this reader, which kept a ring full for too long.

    `lost_bytes`: bytes of ring of records that were published and not released.
    `overwritten`: views that were not released may have shown overwritten bytes.
    """

    def __init__(self, message: str, *, lost_bytes: int, overwritten: bool) -> None:
        super().__init__(message)
        self.lost_bytes = lost_bytes
        self.overwritten = overwritten


def from_code(code: int, errno: int, why: str, lost_bytes: int, overwritten: bool) -> Exception:
    """The exception for an enum tokr_result; called by the extension."""
    if code == native.RING_SYSTEM:
        return OSError(errno, why)
    if code == native.RING_TIMEOUT:
        return TimeoutError(why)
    if code == native.RING_REFUSED:
        return RingRefused(why)
    if code == native.RING_DROPPED:
        return RingDropped(why, lost_bytes=lost_bytes, overwritten=overwritten)
    return RingError(why)
