# SPDX-License-Identifier: BSD-3-Clause
"""The tasks waiting, train and queues: a real trial of the first two, cut short; and what the third
does with a run in which a worker got no flow."""

import lzma
from typing import Any

import pytest

tasks = pytest.importorskip("bench.task", reason="run tools/setup")
from bench.task import Context, Missing, WrongIds
from bench.texts import encode_texts
from dpdk_tokd.fetch.packages import data_home


def load(name: str) -> Any:
    return tasks.load(name).module


def need_corpora() -> None:
    if not (data_home() / "corpus").is_dir():
        pytest.skip("no corpora: run tools/fetch-corpus")


# ---- waiting ----


def test_the_bytes_that_wait_are_counted(tmp_path, monkeypatch):
    need_corpora()
    if not (data_home() / "vocab" / "bert-base-uncased.txt").is_file():
        pytest.skip("no bert-base-uncased: run tools/fetch-vocab bert-base-uncased")
    module = load("waiting")

    def measured(text: str, vocabulary: str) -> dict[str, float]:
        parameters = {"text": text, "vocabulary": vocabulary, "bytes": 4000}
        state = module.prepare(Context(tmp_path, True, [parameters], print))
        return module.report(state, parameters, module.run(state, parameters)).values

    each_is_a_word = measured("repeated-dash", "bert-base-uncased")
    assert each_is_a_word == {"p50": 0, "p99": 0, "most": 0}
    assert measured("words-of-1-to-120-letters", "bert-base-uncased")["most"] == 100
    assert measured("long-tokens-begun", "bert-base-uncased")["most"] > 0
    monkeypatch.setattr(encode_texts, "BESIDE", tmp_path)
    monkeypatch.setattr(encode_texts, "data_home", lambda: tmp_path)
    with pytest.raises(Missing, match=r"qwen3\.json is missing"):
        measured("english", "qwen3")


def test_a_packed_vocabulary_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(encode_texts, "BESIDE", tmp_path)
    monkeypatch.setattr(encode_texts, "data_home", lambda: tmp_path)
    (tmp_path / "some.json.xz").write_bytes(lzma.compress(b"{}"))
    found = encode_texts.own_json("some", tmp_path)
    assert found == tmp_path / "some.json" and found.read_bytes() == b"{}"


# ---- train ----


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bpe", "wordpiece"])
def test_both_trainers_make_the_same_vocabulary(model, tmp_path):
    need_corpora()
    module = load("train")
    parameters = {"model": model, "vocab-size": 2000, "megabytes": 1}
    state = module.prepare(Context(tmp_path, True, [parameters], print))
    for trainer in ("tok", "tokenizers"):
        raw = module.run(state, parameters | {"trainer": trainer})
        report = module.report(state, parameters, raw)
        assert set(report.values) == set(module.METRICS) and min(report.values.values()) > 0
        assert report.ids_checked == 2000
    right = state.right[model, 2000, 1]
    right.write_text(right.read_text().replace('"the"', '"eht"'))
    with pytest.raises(WrongIds, match="tok: the vocabulary differs"):
        module.run(state, parameters | {"trainer": "tok"})


# ---- queues ----


@pytest.mark.parametrize(
    ("given", "taken", "streams"),
    [
        ([[3, 5]], 1, [3, 5]),
        ([[0, 8], [8, 0], [4, 4], [1, 7]], 3, [4, 4]),
        ([[0, 8]] * 4, 3, None),
    ],
)
def test_a_run_that_left_a_worker_out_is_repeated_three_times_in_all(
    monkeypatch, given, taken, streams
):
    module = load("queues")
    left = iter([module.Raw(1.0, one, [0.5, 0.5]) for one in given])
    monkeypatch.setattr(module, "once", lambda *_: next(left))
    monkeypatch.setattr(module, "CPUS", [0, 1])
    state = module.State(None, None, {(8, 1): []}, None, None)
    parameters = {"workers": 2, "clients": 8, "characters": 1}
    if streams is None:
        with pytest.raises(OSError, match="a worker got no flow in 3 runs"):
            module.run(state, parameters)
    else:
        assert module.run(state, parameters).streams == streams
    assert len(list(left)) == len(given) - taken
