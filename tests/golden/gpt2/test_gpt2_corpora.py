# SPDX-License-Identifier: BSD-3-Clause
"""Ids equal the reference's on the three corpora: whole, and cut at random places."""

import random

import numpy as np
import pytest
from texts import DATA

BYTES = 1_500_000  # of each corpus
TEXT = 60_000  # of one text


@pytest.mark.parametrize("name", ["english", "code", "multi"])
def test_ids_equal_the_reference(name, gpt2, gpt2_reference):
    path = DATA / f"{name}.txt"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-corpus")
    rng = random.Random(name)
    data = path.read_bytes()
    for _ in range(BYTES // TEXT):
        at = rng.randrange(len(data) - TEXT)
        text = data[at : at + TEXT]  # may begin and end inside a character
        want = gpt2_reference.encode(text.decode("utf-8", "replace"), add_special_tokens=False).ids
        assert np.array_equal(gpt2.encode(text), want)
        stream, parts, done = gpt2.stream(), [], 0
        while done < len(text):
            piece = rng.choice([1, 2, 3, 7, 40, 200, 1376])
            parts.append(stream.feed(text[done : done + piece]))
            done += piece
        parts.append(stream.finish())
        assert np.array_equal(np.concatenate(parts), want)
