# SPDX-License-Identifier: BSD-3-Clause
"""The reference is what it says: two implementations agree, and slices are cut by it."""

import numpy as np
import pytest
from bench.texts import reference, slices

TEXTS = (
    "Hello world, it's 2024:  two  blanks\n\n\tand a tab. <|endoftext|> is text",
    "def f(x):\n    return x ** 2  # a comment\n" * 20,
    "Grüße, 你好世界, привет мир, مرحبا بالعالم 👩‍💻🏽 ﬁn\u00a0\u3000.",
)


@pytest.fixture(scope="module")
def gpt2(ranks_file):
    return reference.load_gpt2(ranks_file)


def test_tokenizers_and_tiktoken_agree(gpt2, ranks_file):
    assert reference.verify(gpt2, ranks_file, TEXTS) == sum(len(t.encode()) for t in TEXTS)


def test_a_reference_that_is_wrong_is_noticed(gpt2, ranks_file, monkeypatch):
    monkeypatch.setitem(reference.PATTERNS, "gpt2", r"\S+|\s+")
    with pytest.raises(reference.ReferenceMismatch, match="disagree"):
        reference.verify(gpt2, ranks_file, TEXTS)


def test_a_merge_that_is_wrong_is_noticed(gpt2, ranks_file, monkeypatch):
    """The merges are derived: had one been, wrongly, tiktoken would tell."""

    def swapped(ranks, token):
        left, right = parents(ranks, token)
        return (token[:1], token[1:]) if token == b" world" else (left, right)

    parents = reference.parents
    monkeypatch.setattr(reference, "parents", swapped)
    with pytest.raises(reference.ReferenceMismatch, match="disagree"):
        reference.verify(reference.load_gpt2(ranks_file), ranks_file, TEXTS)


def test_slices_do_not_overlap_and_come_back_from_their_file(gpt2, tmp_path):
    text = "".join(f"Sentence {i} says {i * i}, which is more than é {i}.\n" for i in range(20_000))
    found = slices.cut("english", text, gpt2, 5)
    assert [piece.size for piece in found] == list(slices.SIZES) * 5
    at = 0
    for piece in found:
        at = text.index(piece.text, at) + len(piece.text)
    for piece in found:
        if piece.size != "8KB":
            assert len(piece.ids) == int(piece.size)
        else:
            assert 8189 <= len(piece.text.encode()) <= 8192
    slices.write(tmp_path / "s", found)
    for (data, ids), piece in zip(slices.read(tmp_path / "s"), found, strict=True):
        assert data == piece.text.encode()
        assert np.array_equal(ids, piece.ids)


def test_a_corpus_that_ends_gives_fewer_slices(gpt2):
    assert 0 < len(slices.cut("english", "word " * 3000, gpt2, 100)) < 10
