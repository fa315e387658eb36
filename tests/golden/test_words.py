# SPDX-License-Identifier: BSD-3-Clause
"""WordLevel, WordPiece behind each pretokenizer, and byte-level BPE whose tokens end words with a
mark (CLIP): ids and decoded text equal the reference's, whole and however the text is cut.

$TOK_GOLDEN_TEXTS is how many texts each has.
"""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
import test_offsets
import texts

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

TOK = Path(__file__).resolve().parents[2] / os.environ.get("TOKD_BUILD", "build") / "app/tok"
models, made = tokenizers.models, tokenizers.pre_tokenizers
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
SPECIALS = ["<|startoftext|>", "<|endoftext|>"]
CLIP_5 = r"<\|startoftext\|>|<\|endoftext\|>|" + CLIP
WORDS = ["the", "The", "foo", "foobar", "##o", "'", "...", "é", "中", "don", "a_1", "!!"]


def word_level(pre_tokenizer, normalizer=None):
    vocab = {word: i for i, word in enumerate(["[UNK]", *WORDS])}
    model = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    model.pre_tokenizer, model.normalizer = pre_tokenizer, normalizer
    return model


def clip(words: str = CLIP, use_regex: bool = True):
    alphabet = sorted(made.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e</w>"), ("e", "r</w>"), ("a", "a"), ("aa", "aa</w>")]
    merges += [("a", "a</w>"), ("aa", "a</w>"), ("'", "s</w>"), ("Ã", "©</w>"), ("!", "!</w>")]
    names = [*alphabet, *(char + "</w>" for char in alphabet), *(a + b for a, b in merges)]
    vocab = {name: i for i, name in enumerate([*names, "<|endoftext|>"])}
    model = tokenizers.Tokenizer(
        models.BPE(
            vocab,
            merges,
            unk_token="<|endoftext|>",
            end_of_word_suffix="</w>",
            continuing_subword_prefix="",
        )
    )
    normalizers = tokenizers.normalizers
    model.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Replace(tokenizers.Regex(r"\s+"), " "),
            normalizers.Lowercase(),
        ]
    )
    model.pre_tokenizer = made.Sequence(
        [
            made.Split(tokenizers.Regex(words), "removed", True),
            made.ByteLevel(False, use_regex=use_regex),
        ]
    )
    model.decoder = tokenizers.decoders.ByteLevel()
    return model


SHAPES = {
    "white space": lambda: word_level(made.WhitespaceSplit()),
    "words": lambda: word_level(made.Whitespace()),
    "words of BERT's text": lambda: word_level(
        made.Whitespace(), tokenizers.normalizers.BertNormalizer()
    ),
    "BERT": lambda: word_level(made.BertPreTokenizer()),
    "CLIP": clip,
    "CLIP of transformers 5": lambda: clip(CLIP_5),
}


def test_words_end_behind_special_tokens_as_text(tmp_path):
    """Where a word begins: not within symbols."""
    reference = clip(CLIP_5)
    reference.add_special_tokens(SPECIALS)
    reference.add_tokens(["[x]"])
    path = tmp_path / "tokenizer.json"
    pair = test_offsets.Pair(json.loads(reference.to_str()), path, "not-special")
    comparison = texts.Comparison(pair.tokenizer, lambda text: pair.want(text)[0])
    rng = random.Random(5)
    some = [*SPECIALS * 4, "<|ENDOFTEXT|>", *"<|>!a1' é中", "'s", "start", "end", "of", "[x]"]
    for _ in range(texts.some(20_000) + 200):
        text = "".join(rng.choices(some, k=rng.randint(1, 7)))
        if rng.random() < 0.5:
            at = rng.randrange(len(text))
            text = text[:at] + text[at + 1 :]
        comparison.everywhere(text)
        pair.hold(text)


def test_special_tokens_that_are_not_split_are_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    clip(CLIP_5, use_regex=False).save(str(path))
    with pytest.raises(ValueError, match="with end_of_word_suffix this is not implemented"):
        dpdk_tokd.Tokenizer.load(str(path))


@pytest.mark.parametrize("name", SHAPES)
def test_ids_and_decoding(name, tmp_path):
    path, compiled = tmp_path / "tokenizer.json", tmp_path / "v.tokv"
    reference = SHAPES[name]()
    reference.save(str(path))
    subprocess.run([TOK, "vocab", "compile", path, "-o", compiled], check=True)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    again = dpdk_tokd.Tokenizer.load(str(compiled))

    def ids_of(text: str) -> list[int]:
        return reference.encode(text, add_special_tokens=False).ids

    texts.compare(tokenizer, ids_of)
    rng = random.Random(name)
    for _ in range(200):
        text = "".join(rng.choices([*WORDS, " ", " ", "aaaa", "\u3000", "b" * 600], k=8))
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert ids.tolist() == ids_of(text)
        assert again.encode(text, add_special_tokens=False).tolist() == ids.tolist()
        assert tokenizer.decode(ids) == reference.decode(ids.tolist(), False)


MARKED = [*"#ab[]é", "##", "###", "ab", "b##", "#[", "##[", "##a", "##é", "##ab", "###x", "##]"]
MARKED += ["####", "#####", "##[[", "##b##"]


@pytest.mark.parametrize("pre_tokenizer", ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"])
def test_words_that_begin_as_tokens_inside_of_words(pre_tokenizer, tmp_path):
    """The reference looks up the beginning of a word as it is: "##[" may be that token."""
    path, compiled = tmp_path / "tokenizer.json", tmp_path / "v.tokv"
    rng, begin = random.Random(pre_tokenizer), 0
    for _ in range(texts.some(20_000)):
        vocab = ["[UNK]", *rng.sample(MARKED, rng.randint(6, len(MARKED)))]
        reference = tokenizers.Tokenizer(
            models.WordPiece({token: i for i, token in enumerate(vocab)}, unk_token="[UNK]")
        )
        reference.pre_tokenizer = getattr(made, pre_tokenizer)()
        reference.decoder = tokenizers.decoders.WordPiece(cleanup=False)
        reference.save(str(path))
        subprocess.run([TOK, "vocab", "compile", path, "-o", compiled], check=True)
        again = dpdk_tokd.Tokenizer.load(str(compiled))
        comparison = texts.Comparison(
            dpdk_tokd.Tokenizer.load(str(path)), lambda text, r=reference: r.encode(text).ids
        )
        for _ in range(20):
            text = "".join(rng.choices([*"###ab[]é ", "##"], k=rng.randint(1, 14)))
            comparison.everywhere(text)
            want = reference.encode(text)
            begin += any(
                token.startswith("##") and text[a:b] == token
                for token, (a, b) in zip(want.tokens, want.offsets, strict=True)
            )
            ids, ranges = again.encode(text, return_offsets=True)
            at = [len(text[:i].encode()) for i in range(len(text) + 1)]
            assert ids.tolist() == want.ids
            assert ranges.tolist() == [[at[a], at[b]] for a, b in want.offsets], text
            assert again.decode(ids) == reference.decode(want.ids, False)
    assert (begin > 0) == (pre_tokenizer != "BertPreTokenizer")


def test_a_long_word_that_is_cut(tmp_path):
    """Nothing of it is certain before its end is, and it is longer than what a stream keeps."""
    path = tmp_path / "tokenizer.json"
    reference = clip()
    reference.save(str(path))
    comparison = texts.Comparison(
        dpdk_tokd.Tokenizer.load(str(path)),
        lambda text: reference.encode(text, add_special_tokens=False).ids,
    )
    for n in (60, 61, 62, 63, 64, 65, 200, 3000):
        comparison.randomly("a" * n + " " + "the" * n + "!")
