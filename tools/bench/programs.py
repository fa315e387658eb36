# SPDX-License-Identifier: BSD-3-Clause
"""Paths of the built programs, in build/ or in $TOKD_BUILD."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOKD_BUILD", ROOT / "build"))
DPDK_TOKD = BUILD / "app" / "dpdk-tokd"
TOKD_GPU = BUILD / "app" / "tokd-gpu"
TOK = BUILD / "app" / "tok"
TOKD_CLIENT = BUILD / "app" / "tokd-client"
TOKD_LOAD = BUILD / "app" / "tokd-load"
TOKD_LOAD_DPDK = BUILD / "app" / "tokd-load-dpdk"
TOKD_MICRO = BUILD / "tools" / "tokd-micro"
