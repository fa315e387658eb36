# SPDX-License-Identifier: BSD-3-Clause
"""The examples of the documents run."""

from __future__ import annotations

import re

import pytest
from bench.programs import ROOT

# What a block needs that is not here: a network, an appliance, other packages.
NOT_HERE = ("from_pretrained", "RingReader", "patch_transformers", "Client(", "to_torch")


@pytest.mark.parametrize(("page", "least"), [("python", 5), ("chat", 1), ("block-keys", 2)])
def test_the_blocks_of_a_page_run_one_after_the_other(
    gpt2_file, monkeypatch, page: str, least: int
) -> None:
    if page == "chat":
        pytest.importorskip("jinja2", reason="pip install jinja2")
    monkeypatch.setenv("TOK_VOCAB_PATH", str(gpt2_file.parent))
    text = (ROOT / f"doc/user/{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ran = [block for block in blocks if not any(word in block for word in NOT_HERE)]
    assert len(ran) >= least
    names: dict[str, object] = {}
    for block in ran:
        exec(compile(block, f"{page}.md", "exec"), names)
