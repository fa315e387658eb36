# SPDX-License-Identifier: BSD-3-Clause
"""The modules under test lie in tools/lib; what tools/setup built, in $TOKD_BUILD or build/."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))


@pytest.fixture
def tokd_load() -> Path:
    program = Path(os.environ.get("TOKD_BUILD", ROOT / "build")) / "tools" / "load" / "tokd-load"
    if not program.is_file():
        pytest.skip(f"{program} is not built: run tools/setup")
    return program


@pytest.fixture(scope="session")
def ranks_file() -> Path:
    from packages import data_home

    path = data_home() / "vocab" / "gpt2.tiktoken"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab gpt2")
    return path


@pytest.fixture(scope="session")
def tokenizer_json(ranks_file, tmp_path_factory) -> Path:
    """GPT-2's, which takes seconds to make."""
    engines = pytest.importorskip("engines", reason="run tools/setup")
    made = tmp_path_factory.mktemp("json") / "tokenizer.json"
    engines.write_json(ranks_file, made)
    return made
