# SPDX-License-Identifier: BSD-3-Clause
"""tokd-host under Python 3.9, the oldest that it supports: RHEL 9's. Its files are read as that one
reads them, and Debian 11's runs them."""

import ast
import sys
from pathlib import Path

import debian
import pytest
import roots
from ended import ended

CONFIG = Path(__file__).parents[3] / "config"
PROGRAM = CONFIG / "tokd-host"
LEAST = (3, 9)
FILES = [PROGRAM, *sorted(CONFIG.rglob("*.py"))]
NEWER_CALLS = {
    "zip": {"strict"},
    "dataclass": {"slots", "kw_only", "match_args"},
    "field": {"kw_only"},
}
TYPES = {
    "bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple", "Path"
}  # fmt: skip


def is_type(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id in TYPES) or (
        isinstance(node, ast.Constant) and node.value is None
    )


def annotations(tree: ast.AST) -> set[ast.AST]:
    """All that is inside of one: not evaluated, where the file begins with the __future__ line."""
    said = [
        getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")
    ]
    return {inner for node in said if node is not None for inner in ast.walk(node)}


def newer(tree: ast.Module) -> list[str]:
    """Uses of what came after 3.9 that its grammar takes."""
    has_future = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )
    unread, found = annotations(tree) if has_future else set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and node not in unread:
            if is_type(node.left) or is_type(node.right):
                found.append(f"line {node.lineno}: | of types")
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            found += [
                f"line {node.lineno}: {name}({k.arg}=)"
                for k in node.keywords
                if k.arg in NEWER_CALLS.get(name, ())
            ]
            found += (
                [f"line {node.lineno}: {name}"]
                if name in ("bit_count", "pairwise", "aiter", "anext")
                else []
            )
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(CONFIG)))
def test_no_file_uses_what_came_later(file):
    assert newer(ast.parse(file.read_text(), str(file), feature_version=LEAST)) == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(a: int | None) -> None: pass",
        "from __future__ import annotations\nAlias = str | None",
        "isinstance(a, int | str)",
        "zip(a, b, strict=True)",
        "@dataclass(frozen=True, slots=True)\nclass A: pass",
        "a.bit_count()",
    ],
)
def test_what_came_later_is_seen(text):
    assert newer(ast.parse(text, feature_version=LEAST))


def test_the_grammar_that_came_later_is_refused():
    with pytest.raises(SyntaxError):
        ast.parse("match a:\n    case 1: pass\n", feature_version=LEAST)


@pytest.mark.slow
def test_it_runs_under_the_least_python(tmp_path):
    python = debian.python("python3.9")
    if python is None:
        pytest.skip(
            "Python 3.9 is not unpacked here: run tools/test, or tests/support/debian.py python3.9"
        )
    roots.debian(tmp_path)
    ask = ["--cores", "1-4", "--hugepages", "8x1G", "--root", tmp_path]
    for do, status, said in (
        ("check", 1, "governor schedutil"),
        ("apply", 0, "reboot, then"),
        ("verify", 1, "governor performance"),
        ("revert", 0, "restored"),
    ):
        command = [*python, PROGRAM, do, *ask]
        done = ended(*command)
        assert (done.returncode, done.stderr) == (status, "") and said in done.stdout, (
            do,
            done.stdout,
        )


def test_an_older_python_gets_one_line():
    script = f"import runpy, sys; sys.version_info = (3, 8, 18); runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    done = ended(sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tokd-host: this is Python 3.8, it needs 3.9 or newer\n"
