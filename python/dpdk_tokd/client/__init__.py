# SPDX-License-Identifier: BSD-3-Clause
"""Text to ids by an appliance, over UDP. Uses _native/, and tokenizer/ for types.

AsyncClient is in client/aio.py, which imports asyncio: `dpdk_tokd` does when it is first used.
"""

from .client import Client
from .errors import TokdError

__all__ = ["Client", "TokdError"]
