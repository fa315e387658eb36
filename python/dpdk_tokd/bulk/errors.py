# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with files of text, their vocabulary, or the output."""

from __future__ import annotations

import importlib
from types import ModuleType


class BulkError(Exception):
    """One line for the user: the file, the line or row, what is wrong, what to do."""


def pyarrow(part: str, what: str) -> ModuleType:
    """The module pyarrow, with its `part`, which `what` needs."""
    try:
        importlib.import_module(f"pyarrow.{part}")
    except ImportError:
        raise BulkError(f"{what}: needs pyarrow: pip install 'dpdk-tokd[bulk]'") from None
    return importlib.import_module("pyarrow")
