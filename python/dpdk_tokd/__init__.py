# SPDX-License-Identifier: BSD-3-Clause
"""dpdk_tokd: exact tokenization, and the token ring and UDP protocol of the dpdk-tokd appliance.

`Tokenizer` turns text into ids in this process. `Client` and `AsyncClient` get them from an
appliance. `RingReader` reads, without a copy, the ids that an appliance on this host publishes,
`EmbeddingReader` the embeddings that tokd-gpu makes of them.
"""

from .client import AsyncClient, Client, TokdError
from .embeddings import Embedding, EmbeddingReader, EmbeddingStatus
from .ring import (
    CutStream,
    Lost,
    Restart,
    RingDropped,
    RingError,
    RingReader,
    RingRefused,
    TokenRange,
)
from .tokenizer import (
    Batch,
    DecodeStream,
    Padded,
    Padding,
    Stream,
    Template,
    Tokenizer,
    Truncation,
    VocabInfo,
)
from .wire import Reason

__all__ = [
    "AsyncClient",
    "Batch",
    "Client",
    "CutStream",
    "DecodeStream",
    "Embedding",
    "EmbeddingReader",
    "EmbeddingStatus",
    "Lost",
    "Padded",
    "Padding",
    "Reason",
    "Restart",
    "RingDropped",
    "RingError",
    "RingReader",
    "RingRefused",
    "Stream",
    "Template",
    "TokdError",
    "TokenRange",
    "Tokenizer",
    "Truncation",
    "VocabInfo",
]
