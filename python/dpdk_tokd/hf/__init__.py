# SPDX-License-Identifier: BSD-3-Clause
"""The interfaces of other libraries over libtok: `tokenizers`."""

from .encoding import Encoding
from .tokenizer import HFTokenizer

__all__ = ["Encoding", "HFTokenizer"]
