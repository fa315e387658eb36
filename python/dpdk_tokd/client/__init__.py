# SPDX-License-Identifier: BSD-3-Clause
"""Clients of an appliance: text to ids over UDP. Uses _native/, and tokenizer/ for types."""

from .aio import AsyncClient
from .client import Client
from .errors import TokdError

__all__ = ["AsyncClient", "Client", "TokdError"]
