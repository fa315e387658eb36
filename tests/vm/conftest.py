# SPDX-License-Identifier: BSD-3-Clause
"""Guests under QEMU: what cannot be had on the machine itself, in small. Speed in them means nothing."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "net"), str(TESTS / "python")]  # netlab.py, samples.py
