# SPDX-License-Identifier: BSD-3-Clause
"""tools/gen/tokenizers: what is lost is told as well, and no cell comes from nowhere."""

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="run tools/setup")

ROOT = Path(__file__).resolve().parents[4]
FIRST = {"libtok": 2.0, "libtok-python": 4.0, "tokenizers": 90.0, "gigatoken": 6.0}
AGAIN = {"libtok": 4.0, "libtok-python": 5.0, "tokenizers": 80.0, "gigatoken": 3.0}
HERE = {"cpu": {"model": "a CPU", "cpus": 2, "virtual": "no"}, "kernel": "Linux 6 #1",
        "load_average": 0.1, "revision": "0123", "versions": {"gigatoken": "0.10.0"}}  # fmt: skip


def row(task: dict[str, Any], **cells: float) -> dict[str, Any]:
    found = {name.replace("_", " "): {"median": value, "min": value, "max": 1.5 * value}
             for name, value in cells.items()}  # fmt: skip
    return {"parameters": task, "state": "done", "cells": found, "ids_checked": 10, "reason": ""}


def gone(task: dict[str, Any], reason: str, state: str = "missing") -> dict[str, Any]:
    return {"parameters": task, "state": state, "cells": {}, "ids_checked": 0, "reason": reason}


@pytest.fixture
def page(tmp_path, monkeypatch) -> str:
    loader = SourceFileLoader("page", str(ROOT / "tools" / "gen" / "tokenizers"))
    module = module_from_spec(spec_from_loader("page", loader))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.syspath_prepend(ROOT / "tools" / "gen")
    loader.exec_module(module)
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(module, "PLOT", tmp_path / "plot.svg")
    of = {"vocabulary": "gpt2", "corpus": "code", "unit": "tokens", "length": 2048}
    rows = [row(of | {"seen": seen, "engine": engine}, call_p50=took)
            for seen, every in (("first", FIRST), ("again", AGAIN))
            for engine, took in every.items()]  # fmt: skip
    rows.append(gone(of | {"seen": "first", "engine": "x"}, "x cannot load gpt2: not for it"))
    rows.append(gone(of | {"seen": "first", "engine": "y"}, "text 1: wrong ids", "refused"))
    file = {"vocabulary": "gpt2", "file": "tokenizer.json"}
    starts = [row(file | {"engine": "gigatoken"}, load=30, empty=500),
              row(file | {"file": "tokv", "engine": "libtok"}, load=10)]  # fmt: skip
    result = {
        "command": "tools/sweep", "repeats": 3, "machine": HERE,
        "missing": [{"what": "XLM-R", "why": "no file"}],
        "tables": [{"task": "tokenize", "rows": rows}, {"task": "tokenizer-start", "rows": starts}],
    }  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(result))
    (tmp_path / "page.md").write_text(f"# What stays\n\n{module.MARK}what goes\n")
    monkeypatch.setattr("sys.argv", ["tokenizers", str(tmp_path)])
    module.main()
    assert "fastest exact peer" in (tmp_path / "plot.svg").read_text()
    return (tmp_path / "page.md").read_text()


@pytest.fixture
def cells(page, tmp_path) -> str:
    return (tmp_path / "tokenizers-cells.md").read_text()


def test_each_cell_stands_beside_the_fastest_peer(page, cells):
    assert page.startswith("# What stays\n") and "what goes" not in page
    for text in (page, cells):
        assert "| code | 2,048 tokens | first | 2 | 4 | 90 | **6** | 2.75 | 1.50 |" in text
        assert "| code | 2,048 tokens | again | 4 | 5 | 80 | **3** | 0.62 | 0.60 |" in text
    assert "| gpt2 | tokv | libtok | 10 | - | - | - | - | - |" in cells


def test_each_goal_stands_beside_the_cell_farthest_from_it(page):
    where = "gpt2, code, 2,048 tokens"
    assert f"C call, first | 2.5 times | 1 of 1 | 2.75 | {where} | met |" in page
    assert f"C call, again | 2 times | 0 of 1 | 0.625 | {where} | **by 1.4 times** |" in page
    assert "| loading a `.tokv` | 10 ms | 1 of 1 | 10 | gpt2, libtok | met |" in page
    assert "| 1 us | not measured |" in page


def test_what_is_lost_and_what_is_not_there_is_told(page):
    assert "| C call | first | 1 | 1 | 0 | 2.75 / 2.75 / 2.75 |" in page
    assert "| C call | again | 1 | 0 | 1 | 0.62 / 0.62 / 0.62 |" in page
    assert "Lost: 2." in page and "- x0.60 libtok-python: gpt2, code" in page
    assert "equalled them; wrong ids, and so no times, had y (1 cells)." in page
    assert "tokenize, gpt2, code, y: refused: text 1: wrong ids" in page
    assert "| x | gpt2 | not for it |" in page and "- XLM-R: no file" in page
    assert "the slowest p50 is 1.50 times the fastest in half of the cells, 1.50 in" in page
    assert "a first look, not a result" in page and "100 ids were compared" in page
