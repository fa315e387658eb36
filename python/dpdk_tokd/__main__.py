# SPDX-License-Identifier: BSD-3-Clause
"""`python -m dpdk_tokd encode`."""

import sys

from .bulk.cli import main

sys.exit(main(sys.argv[1:]))
