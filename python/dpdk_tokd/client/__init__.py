# SPDX-License-Identifier: BSD-3-Clause
"""Clients of an appliance: text to ids over UDP. Uses _native/, and tokenizer/ for types.

AsyncClient is in client/aio.py, which imports asyncio: `dpdk_tokd` imports it on first use.
"""

from .client import Client
from .errors import TokdError

__all__ = ["Client", "TokdError"]
