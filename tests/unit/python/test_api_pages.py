# SPDX-License-Identifier: BSD-3-Clause
"""The page that tools/gen/api builds has every public name, and its examples are true."""

import doctest
import re
from pathlib import Path

import dpdk_tokd

PAGE = Path(__file__).parents[3] / "doc/api/index.rst"


def test_every_public_name_is_on_the_page() -> None:
    named = re.findall(r"^\.\. auto\w+:: dpdk_tokd\.(\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(named) == sorted(dpdk_tokd.__all__)


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name in dpdk_tokd.__all__ if not getattr(dpdk_tokd, name).__doc__] == []


def test_the_examples_are_true(gpt2_file: Path, monkeypatch) -> None:
    monkeypatch.setenv("TOK_VOCAB_PATH", f"{gpt2_file.parent}:{gpt2_file.parent.parent}")
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert failed == 0 and tried > 5
