# SPDX-License-Identifier: BSD-3-Clause
"""Encoding takes no more instructions than counts.json says, 3% allowed for libc and for what the
kernel lays out otherwise. No clock: a machine's neighbours change nothing.

Another compiler gives other counts, so that with one the test is skipped. Where a change is meant,
or there are fewer: build/venv/bin/python tests/golden/instructions/counted.py
"""

import json
import shutil
import warnings
from pathlib import Path

import counted
import pytest

TOLERANCE = 0.03
RECORD = "build/venv/bin/python tests/golden/instructions/counted.py"


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: apt-get install valgrind")
    if not counted.PROGRAM.is_file():
        pytest.skip(f"{counted.PROGRAM} is not built: it is made for x86-64, without sanitizers")
    found = json.loads(counted.RECORDED.read_text())
    if counted.build() != found["build"]:
        pytest.skip(f"built by {counted.build()}; counts are of {found['build']}: {RECORD}")
    return found["counts"]


def test_every_vocabulary_has_counts(recorded) -> None:
    assert list(recorded) == list(counted.VOCABULARIES)


@pytest.mark.parametrize("name", counted.VOCABULARIES)
def test_instructions_a_byte(name: str, recorded, tmp_path: Path) -> None:
    source = counted.file_of(name, tmp_path)
    if source is None:
        pytest.skip(f"{counted.VOCABULARIES[name]} is missing: no public package, or not fetched")
    vocab = counted.compiled(source, tmp_path)
    for isa, texts in recorded[name].items():
        now = counted.count(vocab, isa, tmp_path, counted.cases())
        for text, passes in texts.items():
            for which, before in passes.items():
                what = f"{name}, {isa}, {text}, {which}: {now[text][which]}, recorded {before}"
                assert now[text][which] <= before * (1 + TOLERANCE), f"{what}: {RECORD} if meant"
                if now[text][which] < before * (1 - TOLERANCE):
                    warnings.warn(f"fewer instructions a byte: {what}: {RECORD}", stacklevel=1)


@pytest.mark.parametrize("letters", [9, 30], ids=["short", "longer"])
def test_words_of_one_cache_set_cost_no_more_than_new_words(
    letters: int, recorded, tmp_path: Path
) -> None:
    """Someone who knows the source and the key can only evict what was learned."""
    source = counted.file_of("gpt2", tmp_path)
    if source is None:
        pytest.skip("gpt2.tiktoken is missing: run tools/fetch-vocab gpt2")
    vocab = counted.compiled(source, tmp_path)
    attack, new = (counted.words(vocab, 600, letters, colliding=same) for same in (True, False))
    cost = counted.count(vocab, "avx2", tmp_path, {"attack": (0, attack), "new": (0, new)})
    assert len(set(attack.split())) == 600
    assert cost["new"]["again"] < cost["new"]["first"] / 2, "learned words are found again"
    assert cost["attack"]["again"] > cost["new"]["again"] * 2, "the attack hits one set"
    for which in counted.PASSES:
        assert cost["attack"][which] <= cost["new"]["first"] * 1.1
