# SPDX-License-Identifier: BSD-3-Clause
"""dpdk_tokd: exact tokenization, and the token ring and UDP protocol of the dpdk-tokd appliance.

`Tokenizer` turns text into ids in this process, `Client` and `AsyncClient` ask an appliance
for them, and `RingReader` reads, without a copy, the ids an appliance on this host publishes.
"""

from .aio import AsyncClient
from .client import Client
from .engine import TokdError
from .ring import RingDropped, RingError, RingReader, TokenRange
from .tokenizer import DecodeStream, Stream, Tokenizer, VocabInfo
from .wire import Reason

__all__ = [
    "AsyncClient",
    "Client",
    "DecodeStream",
    "Reason",
    "RingDropped",
    "RingError",
    "RingReader",
    "Stream",
    "TokdError",
    "TokenRange",
    "Tokenizer",
    "VocabInfo",
]
