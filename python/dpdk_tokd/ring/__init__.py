# SPDX-License-Identifier: BSD-3-Clause
"""Ids that an appliance on this host publishes, read in place. Uses _native/,
and tokenizer/ for types."""

from .errors import RingDropped, RingError, RingRefused
from .range import TokenRange
from .reader import RingInfo, RingReader
from .streams import CutStream, Lost, Restart

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
