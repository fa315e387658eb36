# SPDX-License-Identifier: BSD-3-Clause
"""What is no longer used is given back."""

from __future__ import annotations

import resource
from pathlib import Path

MIB = 1 << 20


def mapped() -> int:
    """Bytes that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def test_a_large_text_leaves_no_mapping(gpt2) -> None:
    text = "a word or two, " * 30_000
    for _ in range(2):
        gpt2.encode(text)
    before = mapped()
    for _ in range(100):
        gpt2.encode(text)
    assert mapped() - before < 50 * MIB
