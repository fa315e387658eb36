# SPDX-License-Identifier: BSD-3-Clause
"""Files of text to files of ids, with several threads: `python -m dpdk_tokd encode`."""

from .errors import BulkError
from .run import Totals, encode_files

__all__ = ["BulkError", "Totals", "encode_files"]
