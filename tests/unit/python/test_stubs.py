# SPDX-License-Identifier: BSD-3-Clause
"""The stubs of the C extensions agree with what they have: names, parameters, defaults. Annotations
can be evaluated, as libraries do that check arguments."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import get_overloads, get_type_hints

import dpdk_tokd
import dpdk_tokd.bulk
import dpdk_tokd.embedder
import dpdk_tokd.embeddings
import dpdk_tokd.hf
import dpdk_tokd.tiktoken
from dpdk_tokd._native import libtokd

# Types alone, and the buffer interface, which has no method before Python 3.12.
ALLOWED = r"""
dpdk_tokd\._native\.libtok\.(\w+Dict|Offsets|StreamKind)
dpdk_tokd\._native\.libtok\.EngineMemory
dpdk_tokd\._native\.\w+\.\w+\.__buffer__
"""


def test_the_stubs_are_what_the_extensions_have(tmp_path: Path) -> None:
    (tmp_path / "allowed").write_text(ALLOWED)
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-unused-allowlist"]
    command += ["--allowlist", str(tmp_path / "allowed"), "--ignore-disjoint-bases"]
    command += [f"dpdk_tokd._native.{name}" for name in ("libtok", "libtokd", "block_keys")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_reader_is_generic() -> None:
    assert libtokd.Reader[dpdk_tokd.TokenRange].__args__ == (dpdk_tokd.TokenRange,)


MODULES = (dpdk_tokd, dpdk_tokd.bulk, dpdk_tokd.embedder, dpdk_tokd.embeddings, dpdk_tokd.hf)
# Of packages that need not be installed, and of modules that are imported later.
LATER = {
    "torch": SimpleNamespace(Tensor=object),
    "pyarrow": SimpleNamespace(ListArray=object),
    "HFTokenizer": dpdk_tokd.hf.HFTokenizer,
    "EmbeddingReader": dpdk_tokd.embeddings.EmbeddingReader,
    "Encoding": dpdk_tokd.tiktoken.Encoding,
}


def functions() -> Iterator[object]:
    public = {id(o): o for module in MODULES for o in (getattr(module, n) for n in module.__all__)}
    for o in (*public.values(), dpdk_tokd.tiktoken.Encoding):
        if inspect.isfunction(o):
            yield o
        elif inspect.isclass(o):
            for name, member in vars(o).items():
                if name in ("__init__", "__call__") or not name.startswith("_"):
                    function = getattr(member, "fget", getattr(member, "__func__", member))
                    if inspect.isfunction(function):
                        yield function
                        yield from get_overloads(function)


def test_annotations_can_be_evaluated() -> None:
    found = 0
    for function in functions():
        found += get_type_hints(function, localns=LATER) != {}
    assert found > 200
