# SPDX-License-Identifier: BSD-3-Clause
"""Which folders are embedding models, and what is missing in others. What they compute:
tests/ecosystem."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dpdk_tokd import Tokenizer
from dpdk_tokd.embedder import Embedder, NoEmbedder
from dpdk_tokd.embedder.model import RUN_TOKENS, normalized, runs

PREFIX = "sentence_transformers.models."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    modules(tmp_path, "Transformer", "Pooling", "Normalize")
    write(tmp_path, "1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    write(tmp_path, "config.json", {"model_type": "modernbert"})
    (tmp_path / "model.safetensors").touch()
    return tmp_path


def write(folder: Path, name: str, value: object) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(value))


def modules(folder: Path, *kinds: str) -> None:
    paths = {"Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    write(
        folder,
        "modules.json",
        [{"type": PREFIX + kind, "path": paths.get(kind, "")} for kind in kinds],
    )


def test_what_is_missing_is_named(
    folder: Path, gpt2_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Tokenizer.load(gpt2_file)

    def missing(folder: Path) -> str:
        with pytest.raises(NoEmbedder) as why:
            Embedder(folder, tokenizer=tokenizer)
        return str(why.value)

    changes: list[tuple[str, Any, str]] = [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "'max_tokens': implemented"),
        ("1_Pooling/config.json", {}, "pooling '': implemented: mean, cls"),
        ("modules.json", [], "expected Transformer and Pooling"),
        ("modules.json", [{"type": PREFIX + "Dense", "path": ""}], "Dense: implemented"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case is not"),
    ]
    for name, value, message in changes:
        before = (folder / name).read_text() if (folder / name).exists() else "{}"
        write(folder, name, value)
        assert message in missing(folder)
        (folder / name).write_text(before)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert "onnxruntime is missing: pip install 'dpdk-tokd[embeddings]'" in missing(folder)
    (folder / "model.safetensors").unlink()
    assert "no weights: neither onnx/model.onnx nor model.safetensors" in missing(folder)
    (folder / "modules.json").write_text("{")
    assert "modules.json: Expecting" in missing(folder)
    (folder / "modules.json").unlink()
    assert "has no modules.json" in missing(folder)


def test_rows_of_a_run_are_of_similar_length() -> None:
    lengths = np.random.default_rng(1).integers(1, 512, 3000)
    seen = []
    for chosen in runs(lengths):
        padded, real = len(chosen) * lengths[chosen].max(), lengths[chosen].sum()
        assert padded <= RUN_TOKENS and padded - real <= real // 8 + 16
        seen += chosen.tolist()
    assert sorted(seen) == [*range(3000)]
    assert [*map(len, runs(np.array([RUN_TOKENS * 2, 1])))] == [1, 1]
    assert [*map(len, runs(np.ones(5, np.int64), texts=2))] == [2, 2, 1]


def test_vectors_of_length_one() -> None:
    given = np.array([[3, 4], [0, 0]], np.float32)
    np.testing.assert_allclose(normalized(given), [[0.6, 0.8], [0, 0]], rtol=1e-6)
