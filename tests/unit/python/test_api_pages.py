# SPDX-License-Identifier: BSD-3-Clause
"""The page that tools/gen/api builds has every public name, and its examples are true."""

import doctest
import inspect
import re
from pathlib import Path
from types import FunctionType

import dpdk_tokd
import dpdk_tokd.bulk
import dpdk_tokd.embedder
import dpdk_tokd.embeddings
import dpdk_tokd.hf
import dpdk_tokd.tiktoken

PAGE = Path(__file__).parents[3] / "doc/api/index.rst"


def test_every_public_name_is_on_the_page() -> None:
    named = re.findall(r"^\.\. auto\w+:: dpdk_tokd\.([\w.]+)$", PAGE.read_text(), re.MULTILINE)
    public = [*dpdk_tokd.__all__, "tiktoken.Encoding"]
    folders = (dpdk_tokd.bulk, dpdk_tokd.embedder, dpdk_tokd.embeddings, dpdk_tokd.hf)
    for folder in folders:
        for name in folder.__all__:
            if getattr(folder, name) is not getattr(dpdk_tokd, name, None):
                public.append(f"{folder.__name__.removeprefix('dpdk_tokd.')}.{name}")
    assert sorted(named) == sorted(public)


def test_every_public_name_has_a_docstring() -> None:
    """And each method and property that its class defines."""

    def undocumented(kind: type) -> list[str]:
        members = {name: m for name, m in vars(kind).items() if not name.startswith("_")}
        calls = (FunctionType, classmethod, property)  # fields are in the text of the class
        return [name for name, m in members.items() if isinstance(m, calls) and not m.__doc__]

    public = {name: getattr(dpdk_tokd, name) for name in dpdk_tokd.__all__}
    public |= {f"hf.{name}": getattr(dpdk_tokd.hf, name) for name in dpdk_tokd.hf.__all__}
    assert [name for name, o in public.items() if not inspect.getdoc(o)] == []
    classes = {name: o for name, o in public.items() if inspect.isclass(o)}
    assert {n: found for n, o in classes.items() if (found := undocumented(o))} == {}


def test_the_examples_are_true(gpt2_file: Path, monkeypatch) -> None:
    monkeypatch.setenv("TOK_VOCAB_PATH", f"{gpt2_file.parent}:{gpt2_file.parent.parent}")
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert failed == 0 and tried > 5
