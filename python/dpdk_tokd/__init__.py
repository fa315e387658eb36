# SPDX-License-Identifier: BSD-3-Clause
"""dpdk_tokd: exact tokenization, and the token ring and UDP protocol of the dpdk-tokd appliance.

`Tokenizer` turns text into ids in this process. `Client` and `AsyncClient` get them from an
appliance. `RingReader` reads, without a copy, the ids that an appliance on this host publishes,
`EmbeddingReader` the embeddings that tokd-gpu makes of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    __version__: str
    from . import bulk as bulk
    from . import hf as hf
    from .client import AsyncGeneration, Client, Generation, Made, TokdError
    from .client.aio import AsyncClient
    from .embeddings import Embedding, EmbeddingReader, EmbeddingStatus
    from .hf import as_hf, patch_transformers, unpatch_transformers
    from .pipeline import Pipeline
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
    from .tiktoken import as_tiktoken, patch_tiktoken, unpatch_tiktoken
    from .wire import Reason

# Imported when they are first used: together they take several times as long as the tokenizer.
_LATER = {
    "AsyncClient": ".client.aio",
    "AsyncGeneration": ".client",
    "Client": ".client",
    "CutStream": ".ring",
    "Embedding": ".embeddings",
    "EmbeddingReader": ".embeddings",
    "EmbeddingStatus": ".embeddings",
    "Generation": ".client",
    "Lost": ".ring",
    "Made": ".client",
    "Pipeline": ".pipeline",
    "Reason": ".wire",
    "Restart": ".ring",
    "RingDropped": ".ring",
    "RingError": ".ring",
    "RingReader": ".ring",
    "RingRefused": ".ring",
    "TokdError": ".client",
    "TokenRange": ".ring",
    "as_hf": ".hf",
    "as_tiktoken": ".tiktoken",
    "bulk": ".bulk",
    "hf": ".hf",
    "patch_tiktoken": ".tiktoken",
    "patch_transformers": ".hf",
    "unpatch_tiktoken": ".tiktoken",
    "unpatch_transformers": ".hf",
}

__all__ = [
    "AsyncClient",
    "AsyncGeneration",
    "Batch",
    "Client",
    "CutStream",
    "DecodeStream",
    "Embedding",
    "EmbeddingReader",
    "EmbeddingStatus",
    "Generation",
    "Lost",
    "Made",
    "Padded",
    "Padding",
    "Pipeline",
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
    "as_hf",
    "as_tiktoken",
    "patch_tiktoken",
    "patch_transformers",
    "unpatch_tiktoken",
    "unpatch_transformers",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LATER, "__version__"})


if not TYPE_CHECKING:  # which would take any name for one of the module

    def __getattr__(name: str) -> object:
        if name == "__version__":  # importlib.metadata takes as long to import as all the rest
            return import_module("importlib.metadata").version("dpdk-tokd")
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(_LATER[name], __name__)
        value = globals()[name] = module if _LATER[name] == f".{name}" else getattr(module, name)
        return value
