# SPDX-License-Identifier: BSD-3-Clause
"""boxes/nthu.json, blink-fig4.json and length.json, cut down: real engines on little text."""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench import task as tasks
from bench.sweep import table
from bench.task import Missing, WrongIds
from bench.texts import encode_texts, slices
from ended import ended
from sweep_made import swept

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = Path(os.environ.get("TOKD_BUILD", ROOT / "build")) / "app" / "tok"
TEXT = "".join(
    f"Line {n}, of {n * n} w\u00f6rds, don't {n % 7} \u4f60\u597d.\n" for n in range(9000)
)
CUT: dict[str, dict[str, Any]] = {
    "nthu": {"corpus": ["english"], "calls": [20], "seen": ["first"]},
    "blink-fig4": {"corpus": ["multi"], "length": [10, 2048], "calls": [20],
                   "seen": ["first"]},
    "length": {"length": [16, 4096], "calls": [20], "megabytes": [0.08]},
}  # fmt: skip
PARAMETERS = {
    "vocabulary": "gpt2", "corpus": "english", "unit": "bytes", "length": 300, "engine": "libtok",
    "seen": "first", "calls": 25, "megabytes": 1, "seconds": 60,
}  # fmt: skip


load = cache(encode_texts.load)  # GPT-2's takes seconds


@pytest.fixture(autouse=True)
def small(tmp_path, tmp_path_factory, monkeypatch, ranks_file):
    """Corpora of half a megabyte; vocabularies that are there already."""
    if not PROGRAM.is_file():
        pytest.skip(f"{PROGRAM} is not built: run tools/setup")
    files = {name: tmp_path / f"{name}.txt" for name in ("english", "code", "multi")}
    for name, path in files.items():
        path.write_text(TEXT.replace("Line", name), encoding="utf-8")
    monkeypatch.setattr(encode_texts.fetch_corpus, "fetch", lambda _: files)
    folder = tmp_path_factory.getbasetemp()
    monkeypatch.setattr(encode_texts, "load", lambda name, _: load(name, folder))
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tools"))
    encode_texts.corpus.cache_clear()
    yield
    encode_texts.corpus.cache_clear()


def need_bert() -> None:
    path = encode_texts.data_home() / "vocab" / "bert-base-uncased.txt"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab bert-base-uncased")


def cut_down(name: str, folder: Path) -> Path:
    """The box with fewer and shorter texts, and the tests of task tokenize alone."""
    box = json.loads((ROOT / "boxes" / f"{name}.json").read_text())
    box["tests"] = [entry for entry in box["tests"] if entry["task"] == "tokenize"]
    box["repeats"] = {"full": 1, "quick": 1}
    for entry in box["tests"]:
        del entry["quick"]
        entry["parameters"] |= CUT[name]
    (folder / "box.json").write_text(json.dumps(box))
    return folder / "box.json"


def blinks_range(found: dict[str, Any], text: str) -> None:
    """Blink tells a range alone: it stands beside each length, and below it how often it is met."""
    rows = {tuple(row["parameters"][n] for n in ("engine", "length")): row["cells"]["call p50"]
            for row in found["rows"] if row["state"] == "done"}  # fmt: skip
    lengths = CUT["blink-fig4"]["length"]
    times = [rows["tokenizers", n]["median"] / rows["libtok", n]["median"] for n in lengths]
    assert (
        f"libtok is better than tokenizers in every repeat in {sum(t > 1 for t in times)} of 2 "
        f"cells (0 not measured); the ratio's median is above Blink's own in "
        f"{sum(t > 19.7 for t in times)} of the 2 cells where both are known."
    ) in text
    beside = [line.split("|") for line in text.splitlines() if "| 8 to 19.7 " in line]
    for line, n, told in zip(beside, lengths, times, strict=False):
        assert line[1].strip() == str(n) and line[6].strip() == f"{told:.3g}"
    assert len(beside) == 4  # libtok's, and those of its Python package


@pytest.mark.slow
@pytest.mark.parametrize("name", CUT)
def test_a_box_cut_down(name, tmp_path):
    if name != "blink-fig4":
        need_bert()
    result = swept(cut_down(name, tmp_path), tmp_path / "out")
    assert result["finished"] and result["ids_right"]
    (found,) = result["tables"]
    states = {}
    for row in found["rows"]:
        parameters = row["parameters"]
        states.setdefault((parameters["engine"], parameters["vocabulary"]), set()).add(row["state"])
        if row["state"] == "done":
            assert row["ids_checked"] > 0
            assert all(cell.get("median", 1) > 0 for cell in row["cells"].values())
        else:
            assert row["state"] == "missing", row["reason"]
            assert re.search("for BPE alone|cannot load|not installed", row["reason"])
    for engine in ("libtok", "libtok-pieces", "libtok-python", "tokenizers", "tiktoken"):
        assert states[engine, "gpt2"] == {"done"}
    if name == "nthu":
        assert states["libtok-greedy", "gpt2"] == {"done"}
        assert states["libtok-greedy", "bert-base-uncased"] == {"missing"}
    if name != "blink-fig4":
        assert states["libtok", "bert-base-uncased"] == {"done"}
    text = table.markdown(result)
    if name == "blink-fig4":
        blinks_range(found, text)
    if name == "nthu":
        rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
        beside = [row for row in rows if row[2:3] == ["call p50, us"]]  # not a heading elsewhere
        assert len(beside) == 4 and any("332" in row for row in beside)
        assert any("4,688" in row for row in beside)


# ---- the task ----


@pytest.fixture(scope="module")
def module():
    return tasks.load("tokenize").module


@pytest.fixture
def state(module, tmp_path):
    several = ("libtok", "libtok-greedy", "libtok-python", "tokenizers", "python")
    tests = [PARAMETERS | {"engine": engine} for engine in several]
    return module.prepare(tasks.Context(tmp_path, True, tests, print))


@pytest.mark.slow
@pytest.mark.parametrize("seen", ["first", "again"])
@pytest.mark.parametrize(
    "engine", ["libtok", "libtok-pieces", "libtok-greedy", "libtok-python", "tokenizers", "python"]
)
def test_each_call_has_its_time_and_each_id_was_compared(module, state, engine, seen):
    parameters = PARAMETERS | {"engine": engine, "seen": seen}
    raw = module.run(state, parameters)
    found = module.report(state, parameters, raw)
    took = raw[seen]["ns"]
    assert len(found.samples["call"]) == len(took) == 25 and min(took) > 0
    key = next(key for key in state.texts if key[2] == (engine == "libtok-greedy"))
    texts = slices.read(state.texts[key].path)
    ids, size = sum(len(ids) for _, ids in texts), sum(len(text) for text, _ in texts)
    assert found.ids_checked == 2 * ids
    assert found.values["ns-per-byte"] == pytest.approx(sum(took) / size)
    assert found.values["clock"] > 0
    assert bool(found.notes) == (engine in module.PY_ENGINES)


@pytest.mark.parametrize("engine", ["libtok", "libtok-pieces", "libtok-python", "tokenizers"])
@pytest.mark.parametrize("which", ["warm_up", "path"])
def test_one_wrong_id_refuses_all(module, state, engine, which):
    (texts,) = (found for key, found in state.texts.items() if not key[2])
    path = getattr(texts, which)
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(data)
    last = len(slices.read(path)) - 1
    with pytest.raises(WrongIds, match=f"text {last}: wrong ids"):
        module.run(state, PARAMETERS | {"engine": engine})


def test_what_cannot_be_measured_is_missing_with_the_reason(module, state, monkeypatch, tmp_path):
    with pytest.raises(Missing, match=r"it would take some \d+ s, of 0\.0001 at most"):
        module.run(state, PARAMETERS | {"engine": "tokenizers", "seconds": 0.0001})
    tests = [PARAMETERS | {"length": 100_000, "calls": 90}]
    (tmp_path / "other").mkdir()
    few = module.prepare(tasks.Context(tmp_path / "other", True, tests, print))
    with pytest.raises(Missing, match=r"the corpus english has only \d of 10 texts"):
        module.run(few, tests[0])
    monkeypatch.setattr(module, "TOK", tmp_path / "nothing")
    with pytest.raises(Missing, match="nothing is not built: run tools/setup"):
        module.run(state, PARAMETERS)
    monkeypatch.setitem(module.engines.NEEDS, "gigatoken", ("no_such_package", "pip install it"))
    with pytest.raises(Missing, match="no_such_package is not installed: pip install it"):
        module.run(state, PARAMETERS | {"engine": "gigatoken"})


# ---- tokenizer-batch, tokenizer-start ----


def other(name: str, tests: list[dict[str, Any]], folder: Path) -> tuple[Any, Any]:
    """A task beside tokenize, and its state."""
    module = tasks.load(name).module
    folder.mkdir()
    return module, module.prepare(tasks.Context(folder, True, tests, print))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["sentences", "document"])
def test_many_texts_by_one_call_and_one_long_text(what, tmp_path):
    asked = {"vocabulary": "gpt2", "corpus": "english", "what": what, "megabytes": 0.05,
             "threads": 1, "rounds": 3}  # fmt: skip
    tests = [asked | {"form": form, "engine": engine} for form in ("native", "lists")
             for engine in ("libtok-python", "tokenizers", "tiktoken")]  # fmt: skip
    module, state = other("tokenizer-batch", tests, tmp_path / "batch")
    ((path, size),) = state.texts.values()
    ids = sum(len(ids) for _, ids in slices.read(path))
    for test in tests:
        found = module.report(state, test, module.run(state, test, 1))
        assert found.ids_checked == 3 * ids
        assert found.values["first"] > 0 and found.values["again"] > 0
        took = found.values["again"] / 1e3
        assert found.values["throughput"] == pytest.approx(size / 1e6 / took)
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(data)
    with pytest.raises(WrongIds, match="the ids of all texts together are wrong"):
        module.run(state, tests[0], 2)


@pytest.mark.slow
def test_a_fresh_process_loads_and_has_its_first_text(tmp_path):
    tests = [{"vocabulary": "gpt2", "file": file, "engine": engine} for file, engine in (
        ("tokenizer.json", "libtok"), ("tokenizer.json", "libtok-python"),
        ("tokenizer.json", "tokenizers"), ("tokv", "libtok"), ("tokv", "libtok-python"),
    )]  # fmt: skip
    module, state = other("tokenizer-start", tests, tmp_path / "start")
    for test in tests:
        found = module.report(state, test, module.run(state, test))
        assert min(found.values.values()) > 0 and found.ids_checked > 128 * 350
        assert found.values["first/warm"] == found.values["first"] / found.values["warm"]
    with pytest.raises(Missing, match="tokenizers does not read .tokv"):
        module.run(state, tests[2] | {"file": "tokv"})


def test_a_vocabulary_that_is_not_here_is_missing(module, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(encode_texts, "BESIDE", tmp_path)
    test = PARAMETERS | {"vocabulary": "llama3"}
    state = module.prepare(tasks.Context(tmp_path, True, [test], print))
    with pytest.raises(Missing, match="llama3.json is missing: tools/fetch-vocab has no"):
        module.run(state, test)


# ---- tok bench ----


def test_what_cannot_be_read_is_named(ranks_file, tmp_path):
    slices.write(tmp_path / "none", [])
    (tmp_path / "odd").write_bytes(b"\x01\0\0\0odd")
    for file, complaint in (("absent", "No such file"), ("none", "not a file of slices"),
                            ("odd", "not a file of slices")):  # fmt: skip
        path = str(tmp_path / file)
        run = ended(PROGRAM, "bench", "--vocab", ranks_file, "--warm-up", path, "--slices", path)
        assert run.returncode == 1 and file in run.stderr and complaint in run.stderr
