# SPDX-License-Identifier: BSD-3-Clause
"""The modules under test lie in tools/bench; what tools/setup built, in $TOKD_BUILD or build/."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def tokd_load() -> Path:
    from bench.programs import TOKD_LOAD as program

    if not program.is_file():
        pytest.skip(f"{program} is not built: run tools/setup")
    return program


@pytest.fixture(scope="session")
def ranks_file() -> Path:
    from dpdk_tokd.fetch.packages import data_home

    path = data_home() / "vocab" / "gpt2.tiktoken"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab gpt2")
    return path


@pytest.fixture(scope="session")
def tokenizer_json(ranks_file, tmp_path_factory) -> Path:
    """GPT-2's, which takes seconds to make."""
    engines = pytest.importorskip("bench.baseline.engines", reason="run tools/setup")
    made = tmp_path_factory.mktemp("json") / "tokenizer.json"
    engines.write_json(ranks_file, made)
    return made


@pytest.fixture(scope="session")
def tiktoken(ranks_file):
    from bench.texts import reference

    return reference.load_tiktoken(ranks_file)


@pytest.fixture
def bench(ranks_file, tiktoken, tokenizer_json, tokd_load, tmp_path):
    """Makes what systems.prepare() does, with so many texts, over the loopback: without the
    namespaces, the wires and the warm-up of the servers."""
    import numpy as np
    from bench.lab.net import Veth
    from bench.tasks import systems
    from bench.texts.slices import Slice

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "sample").write_text("Some text to choose on.")
    link = Veth("a", "b", "127.0.0.1", "127.0.0.1", port)

    def make(count: int) -> systems.Bench:
        pieces = []
        for n in range(count):
            text = f"Text {n}, of nothing but {n * n} words; e\u0301t\u00e9, \u4f60\u597d."
            ids = np.array(tiktoken.encode_ordinary(text), np.uint32)
            pieces.append(Slice("english", "16", text, ids))
        return systems.Bench(
            tmp_path, ranks_file, tokenizer_json, tmp_path / "sample", {("english", 16): pieces},
            None, None, (link, link), huge=False,
        )  # fmt: skip

    return make


@pytest.fixture
def made(tmp_path: Path, no_fsync):
    """Writes a box of one entry, with a task beside it; what is given replaces keys of the
    entry."""
    from sweep_made import PARAMETERS, TASK

    folder = tmp_path / "tasks" / "made"
    folder.mkdir(parents=True)
    (folder / "task.py").write_text(TASK)

    def write(top: dict[str, Any] | None = None, **entry: Any) -> Path:
        one = {"task": "made", "parameters": PARAMETERS, "metrics": ["time p99", "speed"]} | entry
        whole = {"name": "a-box", "title": "A box", "repeats": {"full": 2, "quick": 1}}
        path = tmp_path / "box.json"
        path.write_text(json.dumps(whole | {"tests": [one]} | (top or {})))
        return path

    return write


@pytest.fixture
def said(tmp_path: Path):
    """What the task has logged."""
    return lambda: (tmp_path / "tasks/made/log").read_text().split("\n")[:-1]


@pytest.fixture
def no_fsync(monkeypatch):
    """What a power failure would leave is not tested, and a busy disk takes seconds."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
