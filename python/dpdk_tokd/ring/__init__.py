# SPDX-License-Identifier: BSD-3-Clause
"""Ids that an appliance on this host publishes, read in place. Uses _native/."""

from .errors import RingDropped, RingError, RingRefused
from .memory import Lost
from .range import TokenRange
from .reader import RingInfo, RingReader
from .streams import CutStream, Restart

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
