# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings that tokd-gpu on this host makes, read in place. Uses _native/ and ring/."""

from .embedding import Embedding
from .layout import EmbeddingStatus
from .reader import EmbeddingReader

__all__ = ["Embedding", "EmbeddingReader", "EmbeddingStatus"]
