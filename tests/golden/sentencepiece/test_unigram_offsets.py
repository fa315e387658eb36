# SPDX-License-Identifier: BSD-3-Clause
"""Offsets of a Unigram vocabulary's ids equal the reference's: the same characters, in bytes.

The reference's post-processors may move offsets: there is none here but a template.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import texts
from sentencepiece_map import trained_map
from test_offsets import TEMPLATE, bounds
from test_unigram import (
    CLUSTERS,
    FETCHED,
    MARK,
    NORMALIZERS,
    PRE_TOKENIZERS,
    AddedToken,
    by_words,
    bytes_model,
    cluster_texts,
    map_by_lead,
    metaspace,
    normalizers,
    precompiled,
    random_model,
    random_rules,
    reference_of,
    saved,
    squeeze,
    strip,
)

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")


class Pair:
    """A vocabulary beside the reference."""

    def __init__(self, path: Path, policy: str = "not-special") -> None:
        self.reference = reference_of(path, policy)
        self.reference.no_truncation()
        self.reference.no_padding()
        self.tokenizer = dpdk_tokd.Tokenizer.load(str(path))
        self.policy = policy
        self.texts = 0

    def want(self, text: str) -> list[tuple[int, int, int]]:
        encoding = self.reference.encode(text)
        at = bounds(text)
        return [(i, at[a], at[b]) for i, (a, b) in zip(encoding.ids, encoding.offsets, strict=True)]

    def got(self, text: str) -> list[tuple[int, int, int]]:
        ids, ranges = self.tokenizer.encode(text, tokens_in_text=self.policy, return_offsets=True)
        return [(i, a, b) for i, (a, b) in zip(ids.tolist(), ranges.tolist(), strict=True)]

    def differs(self, text: str) -> bool:
        return self.got(text) != self.want(text)

    def hold(self, text: str) -> None:
        self.texts += 1
        if self.differs(text):
            text = texts.shrink(text, self.differs)
            pytest.fail(f"{text!r}: {self.got(text)}, the reference {self.want(text)}")

    def hold_all(self, make: Callable[[random.Random], str] = texts.from_pieces) -> None:
        rng = random.Random(1)
        for _ in range(100 + texts.some(20_000)):
            self.hold(make(rng))
        for _ in range(100 + texts.some(20_000)):
            self.hold(texts.random_unicode(rng))
        for text in texts.lines(rng, 50 + texts.some(10_000)):
            self.hold(text)
        print(f"{self.texts} texts equal")


def with_added(rng: random.Random) -> str:
    return texts.from_pieces(
        rng, added=["<mask>", "  <mask>", "<s>", "</s>", "<unk>", "<extra_id_0>"]
    )


@pytest.mark.parametrize("policy", ["not-special", "all"])
@pytest.mark.parametrize("name", ["t5", "umt5", "xlmr"])
def test_a_tokenizer_json(name, policy):
    path = FETCHED / f"{name}.json"
    if not path.is_file():
        how = f"tools/fetch-vocab {name}" if name != "xlmr" else "tools/test"
        pytest.skip(f"{path} is missing: run {how}")
    Pair(path, policy).hold_all(with_added)


def test_a_template(tmp_path):
    path = tmp_path / "tokenizer.json"
    saved(bytes_model(), path, squeeze(MARK), metaspace())
    path.write_text(json.dumps(json.loads(path.read_text()) | {"post_processor": TEMPLATE}))
    pair = Pair(path)
    assert pair.got("")[1:] == [(6, 0, 0), (7, 0, 0)]
    pair.hold_all()


@pytest.mark.parametrize("name", ["nmt_nfkc", "by lead", *(f"random {i}" for i in range(8))])
def test_a_map_of_characters(name, tmp_path):
    rng = random.Random(name)
    if name == "nmt_nfkc":
        charsmap = trained_map(normalization_rule_name="nmt_nfkc")
    elif name == "by lead":
        charsmap = map_by_lead()
    else:
        random_rules(rng, tmp_path / "rules.tsv")
        charsmap = trained_map(normalization_rule_tsv=str(tmp_path / "rules.tsv"))
    for part in ([], [strip(rng.random() < 0.5)], [squeeze(rng.choice([" ", MARK]))]):
        path = tmp_path / "tokenizer.json"
        normalizer = normalizers.Sequence([precompiled(charsmap), *part])
        saved(bytes_model(), path, normalizer, by_words() if rng.random() < 0.5 else None)
        pair = Pair(path)
        for text in cluster_texts(rng, 300 + texts.some(30_000)):
            pair.hold(text)


@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS)
def test_small_models(pre_tokenizer, tmp_path):
    rng = random.Random(pre_tokenizer)
    path = tmp_path / "tokenizer.json"
    charsmap = map_by_lead()
    for normalizer in NORMALIZERS:
        if "first" in pre_tokenizer and normalizer == "both ends":
            continue  # refused
        for by_bytes in [False, True] * (1 + texts.some(300)):
            model, pieces = random_model(rng, by_bytes)
            parts = NORMALIZERS[normalizer]()
            if rng.random() < 0.4 and "first" not in pre_tokenizer:
                parts = normalizers.Sequence([precompiled(charsmap), *([parts] if parts else [])])
            flags = {name: rng.random() < 0.4 for name in ("normalized", "lstrip", "rstrip")}
            model.add_tokens([AddedToken("ab ", **flags)])
            saved(model, path, parts, PRE_TOKENIZERS[pre_tokenizer])
            pair = Pair(path, rng.choice(["not-special", "all"]))
            letters = [*f"aabbcc    {MARK}{MARK}é中x<>\t\u2028", *rng.choices(pieces, k=6)]
            letters += ["<a b>", "cc  c", "<unk>", "<s>", "ab ", *rng.choices(CLUSTERS, k=4)]
            for _ in range(12):
                pair.hold("".join(rng.choices(letters, k=rng.randint(1, 24))))


@pytest.mark.parametrize("pre_tokenizer", ["none", "always", "words, never"])
def test_form_c(pre_tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    saved(bytes_model(), path, normalizers.NFC(), PRE_TOKENIZERS[pre_tokenizer])
    pair = Pair(path)
    for text in cluster_texts(random.Random(pre_tokenizer), 300 + texts.some(20_000)):
        pair.hold(text)


def test_a_word_that_is_longer_than_what_is_kept(tmp_path):
    path = tmp_path / "tokenizer.json"
    saved(bytes_model(), path, squeeze(MARK), metaspace(split=False))
    pair = Pair(path)
    pair.hold("añ中 " * 3000)


def test_a_text_that_is_not_utf_8_has_none(tmp_path):
    path = tmp_path / "tokenizer.json"
    saved(bytes_model(), path)
    with pytest.raises(ValueError, match="UTF-8"):
        dpdk_tokd.Tokenizer.load(str(path)).encode(b"a\xff", return_offsets=True)
