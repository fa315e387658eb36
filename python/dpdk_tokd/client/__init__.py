# SPDX-License-Identifier: BSD-3-Clause
"""Clients of an appliance over UDP: text to ids, and answers of a model. Uses _native/, and
tokenizer/ for types.

AsyncClient is in client/aio.py, which imports asyncio: `dpdk_tokd` imports it on first use.
"""

from .client import Client
from .errors import TokdError
from .generation import AsyncGeneration, Generation, Made

__all__ = ["AsyncGeneration", "Client", "Generation", "Made", "TokdError"]
