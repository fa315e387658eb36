# SPDX-License-Identifier: BSD-3-Clause
"""Text to ids and back in this process, by libtok. Uses _native/ alone."""

from .batch import Batch, Padded
from .decode import DecodeStream
from .info import Padding, Template, Truncation, VocabInfo
from .stream import Stream
from .tokenizer import Tokenizer

__all__ = [
    "Batch",
    "DecodeStream",
    "Padded",
    "Padding",
    "Stream",
    "Template",
    "Tokenizer",
    "Truncation",
    "VocabInfo",
]
