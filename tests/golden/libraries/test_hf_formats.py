# SPDX-License-Identifier: BSD-3-Clause
"""`as_hf` of vocabularies that are no `tokenizer.json`: the document that is made of them does in
`tokenizers` what they do here; without a document everything else works."""

import os
import pickle
import random
import subprocess

import pytest
import texts
from test_families import FETCHED, REPOSITORY, tokenizers
from test_hf import equal

dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

MADE = ["gpt2.tiktoken", "cl100k_base.tiktoken", "o200k_base.tiktoken", "tekken.json"]
MADE += ["bert-base-uncased.txt"]
PIECES = ["mistral.model", "mistral-v1.model", "t5-spiece.model", "umt5-spiece.model"]


def load(name: str):
    path = FETCHED / name
    if not path.exists():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab")
    return dpdk_tokd.Tokenizer.load(str(path))


def compare(theirs, ours) -> None:
    added = [t.content for t in theirs.get_added_tokens_decoder().values()][:50]
    for seed in range(texts.some(20_000)):
        rng = random.Random(seed)
        theirs.encode_special_tokens = ours.encode_special_tokens = rng.random() < 0.3
        one, other = (texts.from_pieces(rng, 40, added) for _ in range(2))
        pair = other if rng.random() < 0.4 else None
        special = rng.random() < 0.6
        a, b = (t.encode(one, pair, add_special_tokens=special) for t in (theirs, ours))
        equal(a, b)
        for skip in (False, True):
            assert ours.decode(b.ids, skip) == theirs.decode(a.ids, skip)


@pytest.mark.parametrize("name", MADE)
def test_a_document_that_is_made(name):
    tokenizer = load(name)
    ours = tokenizer.as_hf()
    theirs = tokenizers.Tokenizer.from_str(ours.to_str())
    compare(theirs, ours)
    assert ours.get_vocab() == theirs.get_vocab()
    again = dpdk_tokd.hf.HFTokenizer.from_str(ours.to_str())
    assert again._tokenizer.checksum == tokenizer.checksum
    for tokenizer in theirs, ours:
        assert tokenizer.add_special_tokens(["<a new one>"]) == 1
    equal(theirs.encode("x <a new one>"), pickle.loads(pickle.dumps(ours)).encode("x <a new one>"))


def test_a_pair_of_files(tmp_path):
    source = load("gpt2.tiktoken").as_hf()
    model = tokenizers.Tokenizer.from_str(source.to_str()).model
    model.save(str(tmp_path))
    ours = dpdk_tokd.Tokenizer.load(str(tmp_path / "vocab.json")).as_hf()
    compare(tokenizers.Tokenizer.from_str(ours.to_str()), ours)


def test_a_cased_list_of_words(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"Aa", "##a", "##A", "##b"]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(words))
    ours = dpdk_tokd.Tokenizer.load(str(path), pretokenizer="bert-cased").as_hf()
    theirs = tokenizers.Tokenizer.from_str(ours.to_str())
    equal(theirs.encode("Aa aA ab B"), ours.encode("Aa aA ab B"))
    assert ours.encode("Aa", add_special_tokens=False).tokens == ["A", "##a"]


@pytest.mark.parametrize("name", PIECES)
def test_sentencepiece_has_no_document(name):
    tokenizer = load(name)
    ours = tokenizer.as_hf()
    text = "Hello, naïve world 😀"
    encoding = ours.encode(text, "and more")
    first = tokenizer.encode(text).tolist()
    assert encoding.ids[: len(first)] == first
    assert ours.decode(first) == tokenizer.decode(first)
    assert [ours.token_to_id(token) for token in encoding.tokens] == encoding.ids
    if tokenizer.info.normalizer == "sentencepiece":
        with pytest.raises(ValueError, match="offsets of this text cannot be told"):
            encoding.offsets  # noqa: B018
    else:
        assert text[slice(*encoding.offsets[0])] == "Hello"
    assert pickle.loads(pickle.dumps(ours)).encode(text).ids == ours.encode(text).ids
    for ask in (ours.to_str, lambda: ours.add_tokens(["new"]), lambda: ours.normalizer):
        with pytest.raises(ValueError, match="no exact equivalent of a SentencePiece model"):
            ask()


def test_a_compiled_vocabulary_has_no_document(tmp_path):
    path = FETCHED / "bert-base-uncased.txt"
    if not path.exists():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab bert")
    program = REPOSITORY / os.environ.get("TOKD_BUILD", "build") / "app/tok"
    if not program.exists():
        pytest.skip(f"{program} is missing: run tools/setup")
    out = tmp_path / "bert.tokv"
    subprocess.run([program, "vocab", "compile", path, "-o", out], check=True, capture_output=True)
    ours = dpdk_tokd.Tokenizer.load(str(out)).as_hf()
    theirs = dpdk_tokd.Tokenizer.load(str(path)).as_hf()
    equal(theirs.encode("Hello, naïve world"), ours.encode("Hello, naïve world"))
    assert ours.get_vocab() == theirs.get_vocab()
    kept = tmp_path / "kept.json"
    kept.write_text("{}")
    for ask in (ours.to_str, lambda: ours.save(str(kept))):
        with pytest.raises(ValueError, match=r"compiled from .*: load that instead"):
            ask()
    assert kept.read_text() == "{}"
    with pytest.raises(ValueError, match="does not say what stands between two texts"):
        ours.encode("a", "pair")
