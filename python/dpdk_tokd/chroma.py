# SPDX-License-Identifier: BSD-3-Clause
"""ChromaDB's embedding function by `Embedder`. Needs chromadb and dpdk-tokd[embeddings]."""

from __future__ import annotations

from functools import cache
from typing import Any

from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
from chromadb.utils.embedding_functions import register_embedding_function

from .embedder import Embedder

# ChromaDB makes the function anew from its configuration whenever documents are added.
_embedder = cache(Embedder)


@register_embedding_function
class TokdEmbeddingFunction(EmbeddingFunction[Documents]):  # type: ignore[misc]
    """Texts to vectors in this process: tokens by libtok, the network by ONNX Runtime.

    client.create_collection("docs", embedding_function=TokdEmbeddingFunction(folder))
    """

    def __init__(self, folder: str) -> None:
        """folder and errors: as in `Embedder`."""
        self._embedder = _embedder(folder)

    def __call__(self, input: Documents) -> Embeddings:
        return [*self._embedder.embed(input)]

    @staticmethod
    def name() -> str:
        return "dpdk-tokd"

    def default_space(self) -> Space:
        return "cosine"

    def get_config(self) -> dict[str, Any]:
        return {"folder": self._embedder.folder}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> TokdEmbeddingFunction:
        return TokdEmbeddingFunction(config["folder"])
