# SPDX-License-Identifier: BSD-3-Clause
"""Texts on which tokenizers are timed: of the right length, different, and with right ids."""

from dataclasses import replace

import pytest

pytest.importorskip("tokenizers", reason="run tools/setup")
import numpy as np
from bench.texts import encode_texts, reference
from bench.texts.encode_texts import WARM_UP, Kind, Vocabulary

TEXT = "".join(f"Line {n}, of {n * n} w\u00f6rds, and \u4f60\u597d {n}.\n" for n in range(4000))
BYTES = Kind("gpt2", "english", "bytes", 100)


@pytest.fixture(scope="module")
def gpt2(ranks_file, tokenizer_json) -> Vocabulary:
    tokenizer = reference.load_gpt2(ranks_file)
    second, greedy = reference.load_tiktoken(ranks_file), reference.LongestMatch(tokenizer)
    return Vocabulary("gpt2", ranks_file, tokenizer_json, tokenizer, second, greedy)


@pytest.fixture(autouse=True)
def corpora(tmp_path, monkeypatch):
    files = {}
    for name in ("english", "code", "multi"):
        files[name] = tmp_path / f"{name}.txt"
        files[name].write_text(TEXT.replace("Line", name), encoding="utf-8")
    monkeypatch.setattr(encode_texts.fetch_corpus, "fetch", lambda _: files)
    encode_texts.corpus.cache_clear()
    yield
    encode_texts.corpus.cache_clear()


def test_texts_are_as_long_as_asked_for_and_all_different(gpt2):
    warm_up, found = encode_texts.cut(BYTES, gpt2, 50)
    texts = [piece.text for piece in found]
    assert len(texts) == len(set(texts)) == 50
    assert all(100 - 3 < len(text.encode()) <= 100 for text in texts)
    first = [len(piece.text.encode()) for piece in warm_up]
    assert all(100 - 3 < size <= 100 for size in first) and WARM_UP / 2 < sum(first) <= WARM_UP
    at = [encode_texts.corpus("english").index(text) for text in texts]
    assert at == sorted(at) and at[-1] > len(TEXT) / 2  # from all over it
    assert at[-1] + 100 < encode_texts.corpus("english").index(warm_up[0].text)
    long, _ = encode_texts.cut(replace(BYTES, length=10_000), gpt2, 1)
    assert all(1024 - 3 < len(piece.text.encode()) <= 1024 for piece in long)
    tokens = replace(BYTES, unit="tokens", length=20)
    _, found = encode_texts.cut(tokens, gpt2, 10)
    assert all(18 <= len(piece.ids) <= 22 for piece in found)
    for piece in found:
        assert piece.ids.tolist() == reference.ids(gpt2.tokenizer, piece.text)


def test_text_that_repeats_gives_fewer(gpt2, monkeypatch):
    with monkeypatch.context() as change:
        change.setattr(encode_texts, "corpus", lambda _: "All the same. " * 10_000)
        _, found = encode_texts.cut(replace(BYTES, length=14 * 7), gpt2, 50)
    assert 1 <= len(found) < 50


def test_mixed_has_all_of_each_corpus_by_turns():
    mixed = encode_texts.corpus("mixed")
    assert sorted(mixed.splitlines()) == sorted(
        line for name in ("english", "code", "multi") for line in
        encode_texts.corpus(name).splitlines()
    )  # fmt: skip
    first = [mixed.index(name) for name in ("english", "code", "multi", "english 3999")]
    assert first == sorted(first)


def test_calls_and_megabytes_are_limits_and_one_text_is_left():
    assert encode_texts.how_many(BYTES, 1000, 1) == 1000
    assert encode_texts.how_many(BYTES, 1000, 0.05) == 500
    assert encode_texts.how_many(replace(BYTES, length=1 << 24), 1000, 1) == 1
    assert encode_texts.how_many(replace(BYTES, unit="tokens"), 10_000, 1) == 2000


def test_longest_match_is_its_definition_and_not_merging(gpt2):
    text = "the ambiguities of undesirable antidisestablishmentarianism, \u4f60\u597d"
    ids = gpt2.greedy.ids(text)
    assert gpt2.tokenizer.decode(ids) == text and ids != reference.ids(gpt2.tokenizer, text)
    (piece,) = encode_texts.cut(BYTES, gpt2, 1)[1]
    (other,) = encode_texts.greedy([piece], gpt2.greedy)
    assert other.text == piece.text and other.ids.dtype == np.uint32
    assert other.ids.tolist() == gpt2.greedy.ids(piece.text)
    words = gpt2.tokenizer.pre_tokenizer.pre_tokenize_str(" antidisestablishmentarianism")
    vocab = gpt2.tokenizer.get_vocab(with_added_tokens=False)
    first = max((t for t in vocab if words[0][0].startswith(t)), key=len)
    assert gpt2.greedy.ids(" antidisestablishmentarianism")[0] == vocab[first]


def test_references_that_disagree_end_it(gpt2):
    class Other:
        @staticmethod
        def encode_ordinary(text):
            return [*gpt2.second.encode_ordinary(text), 1]

    with pytest.raises(reference.ReferenceMismatch, match="tokenizers and tiktoken disagree"):
        encode_texts.cut(BYTES, replace(gpt2, second=Other()), 5)
