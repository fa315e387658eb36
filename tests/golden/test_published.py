# SPDX-License-Identifier: BSD-3-Clause
"""Families of published models: doc/reference/families.md says what of them loads, and is current.
A long text has the same ids by two threads, in all of them and where blanks are no borders.

tools/gen/families trains a small vocabulary for each shape, compares ids with those of tokenizers,
and writes the page.
"""

import json
import random
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="pip install tokenizers")
pytest.importorskip("sentencepiece", reason="pip install sentencepiece")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

SCRIPT = Path(__file__).resolve().parents[2] / "tools/gen/families"
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
WORDS = ("a b", "It's I'LL", "don 't", "x  y", "x\ty", " é", "e\u0301 f", "1 2", "a 1", "中文 b",
    "of the", "the one\n", "<|endoftext|>", "_ q, r", "\xa0r")  # fmt: skip


def split(pattern: dict, behavior: str = "Isolated") -> dict:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}


# The pretokenizer before ByteLevel, None: ByteLevel's own words; and the normalizer.
ODD = {
    "lines": (split({"Regex": "\\n+"}), None),
    "letters and blanks": (split({"Regex": "[a-z ]+"}), None),
    "blanks end words": (split({"String": " "}, "MergedWithPrevious"), None),
    "a letter looks at the next": (split({"Regex": "\\p{L}+(?!\\s)|\\s?."}), None),
    "punctuation": ({"type": "Punctuation", "behavior": "Isolated"}, None),
    "strip": (None, {"type": "Strip", "strip_left": True, "strip_right": True}),
    "no blanks": (None, {"type": "Replace", "pattern": {"String": " "}, "content": ""}),
    "letters to blanks": (None, {"type": "Replace", "pattern": {"String": "a"}, "content": " "}),
}


def odd_shapes(like: dict) -> list[dict]:
    made = []
    for name, (splits, normalizer) in ODD.items():
        shape = like | {"families": name, "normalizer": normalizer}
        if splits:
            parts = [splits, BYTES | {"use_regex": False}]
            shape["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": parts}
        made.append(shape)
    return made


def test_the_page_is_current():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_threads_give_the_ids_of_one(tmp_path):
    loader = SourceFileLoader("families", str(SCRIPT))
    families = module_from_spec(spec_from_loader("families", loader))
    loader.exec_module(families)
    shapes = json.loads(families.SHAPES.read_text())
    text = " ".join(random.Random(5).choices(WORDS, k=120_000))
    assert len(text.encode()) > 700_000
    wrong, n_loaded = [], 0
    for shape in [*shapes, *odd_shapes(shapes[0])]:
        families.save(shape, tmp_path / "tokenizer.json")
        try:
            tokenizer = dpdk_tokd.Tokenizer.load(tmp_path / "tokenizer.json")
        except ValueError:
            assert "why_not" in shape
            continue
        n_loaded += 1
        ids = [
            tokenizer.encode_batch([text], threads=threads, tokens_in_text="none").ids
            for threads in (1, 2)
        ]
        if not np.array_equal(*ids):
            wrong.append(shape["families"])
    assert wrong == []
    assert n_loaded >= len(ODD) + 40
