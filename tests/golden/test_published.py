# SPDX-License-Identifier: BSD-3-Clause
"""Families of published models: doc/reference/families.md says what of them loads, and is current.

tools/gen/families trains a small vocabulary for each shape, compares ids with those of tokenizers,
and writes the page.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tokenizers", reason="pip install tokenizers")
pytest.importorskip("sentencepiece", reason="pip install sentencepiece")
pytest.importorskip("dpdk_tokd", reason="pip install ./python")

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_page_is_current():
    command = [sys.executable, REPOSITORY / "tools/gen/families", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
