# SPDX-License-Identifier: BSD-3-Clause
"""Text to ids and back in this process, by libtok. Uses _native/ alone."""

from .._native.libtok import Stream
from .batch import Batch, Padded
from .tokenizer import DecodeStream, Padding, Template, Tokenizer, Truncation, VocabInfo

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
