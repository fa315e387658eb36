# SPDX-License-Identifier: BSD-3-Clause
"""The Python lines of the documents run, and give the values beside them."""

import documented
import pytest
from bench.programs import ROOT

LEAST = {  # statements that run
    "README": 3,
    "doc/user/python": 20,
    "doc/user/chat": 6,
    "doc/user/bulk": 3,
    "doc/user/block-keys": 6,
}


@pytest.mark.parametrize("page", LEAST)
def test_the_lines_of_a_page_are_true(gpt2_file, monkeypatch, page: str) -> None:
    if page == "doc/user/chat":
        pytest.importorskip("jinja2", reason="pip install jinja2")
    monkeypatch.setenv("TOK_VOCAB_PATH", str(gpt2_file.parent))
    assert documented.page(ROOT / f"{page}.md") >= LEAST[page]
