# SPDX-License-Identifier: BSD-3-Clause
"""Reads embeddings of tokd-gpu on this host in place, and makes ids. Uses _native/ and ring/."""

from .embedding import Embedding
from .engine import Engine, Looks, Prompt
from .engine_cuda import CudaLanes
from .layout import EmbeddingStatus, LaneEnd
from .reader import EmbeddingReader

__all__ = [
    "CudaLanes",
    "Embedding",
    "EmbeddingReader",
    "EmbeddingStatus",
    "Engine",
    "LaneEnd",
    "Looks",
    "Prompt",
]
