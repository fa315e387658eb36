# SPDX-License-Identifier: BSD-3-Clause
"""A compiled vocabulary gives the ids of its source on slices of the three corpora."""

import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from texts import DATA, FETCHED

REPOSITORY = Path(__file__).resolve().parents[2]
TOK = REPOSITORY / os.environ.get("TOKD_BUILD", "build") / "app/tok"
TEXT = 60_000  # bytes of one text
TEXTS = 5  # of each corpus

dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")


def streamed(tokenizer, text: bytes, rng: random.Random) -> np.ndarray:
    stream, parts, done = tokenizer.stream(), [], 0
    while done < len(text):
        piece = rng.choice([1, 2, 3, 7, 40, 200, 1376])
        parts.append(stream.feed(text[done : done + piece]))
        done += piece
    return np.concatenate([*parts, stream.finish()])


@pytest.mark.parametrize("algo", ["exact", "greedy"])
@pytest.mark.parametrize(
    "name",
    [
        *("gpt2.tiktoken", "cl100k_base.tiktoken", "tekken.json", "bert-base-uncased.txt"),
        *("t5.json", "umt5.json"),
    ],
)
def test_ids_are_those_of_the_source(name: str, algo: str, tmp_path: Path) -> None:
    path, out = FETCHED / name, tmp_path / "a.tokv"
    corpora = [DATA / f"{corpus}.txt" for corpus in ("english", "code", "multi")]
    for needed in (path, TOK, *corpora):
        if not needed.is_file():
            pytest.skip(f"{needed} is missing: run tools/test, or tools/setup and what fetches it")
    subprocess.run([TOK, "vocab", "compile", path, "--algo", algo, "-o", out], check=True)
    source = dpdk_tokd.Tokenizer.load(str(path), algo=algo)
    compiled = dpdk_tokd.Tokenizer.load(str(out))
    assert compiled.info.checksum == source.info.checksum
    assert compiled.info.algo == source.info.algo
    rng = random.Random(name)
    for corpus in corpora:
        data = corpus.read_bytes()
        for _ in range(TEXTS):
            at = rng.randrange(len(data) - TEXT)
            text = data[at : at + TEXT]  # may begin and end inside a character
            want = source.encode(text)
            assert np.array_equal(compiled.encode(text), want)
            assert np.array_equal(streamed(compiled, text, rng), want)
            assert compiled.decode(want) == source.decode(want)
