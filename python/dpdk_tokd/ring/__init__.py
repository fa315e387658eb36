# SPDX-License-Identifier: BSD-3-Clause
"""Readers of token rings: ids of an appliance on this host, in place. Uses _native/,
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
