# SPDX-License-Identifier: BSD-3-Clause
"""Reads embeddings of tokd-gpu on this host in place. Uses _native/ and ring/."""

from .embedding import Embedding
from .layout import EmbeddingStatus
from .reader import EmbeddingReader

__all__ = ["Embedding", "EmbeddingReader", "EmbeddingStatus"]
