# SPDX-License-Identifier: BSD-3-Clause
"""Sentence embeddings: texts to vectors, as sentence-transformers makes them, without PyTorch.

    model.py   Embedder: a model's folder, its tokenizer (libtok), pooling
    bert.py    the network of a BERT for ONNX Runtime, from its weights

`pip install 'dpdk-tokd[embeddings]'`
"""

from .model import Embedder, NoEmbedder

__all__ = ["Embedder", "NoEmbedder"]
