# SPDX-License-Identifier: BSD-3-Clause
"""The interface of the package `tokenizers` over libtok, and `transformers` with it."""

from .encoding import Encoding
from .patch import fallbacks, patch_transformers, unpatch_transformers
from .stream import DecodeStream
from .tokenizer import HFTokenizer, as_hf

__all__ = [
    "DecodeStream",
    "Encoding",
    "HFTokenizer",
    "as_hf",
    "fallbacks",
    "patch_transformers",
    "unpatch_transformers",
]
