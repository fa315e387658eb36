# SPDX-License-Identifier: BSD-3-Clause
"""dpdk_tokd: exact tokenization, and the token ring and UDP protocol of the dpdk-tokd appliance.

`Tokenizer` turns text into ids in this process, `Client` and `AsyncClient` ask an appliance
for them, `RingReader` reads, without a copy, the ids an appliance on this host publishes, and
`EmbeddingReader` the embeddings that tokd-gpu makes of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .client import Client, TokdError
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

if TYPE_CHECKING:
    from .client.aio import AsyncClient
    from .embeddings import Embedding, EmbeddingReader, EmbeddingStatus

# Imported when they are first used: asyncio and ctypes.util take longer than all the rest.
_LATER = {
    "AsyncClient": ".client.aio",
    "Embedding": ".embeddings",
    "EmbeddingReader": ".embeddings",
    "EmbeddingStatus": ".embeddings",
}

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


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
    return value
