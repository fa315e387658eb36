# SPDX-License-Identifier: BSD-3-Clause
"""Pretokenizers as the files of published models write them, with GPT-2's merges: ids and offsets
equal the reference's, whole and however the text is cut.

$TOK_GOLDEN_TEXTS is how many texts each has.
"""

import json
import random

import pytest
import texts
from test_families import LLAMA3, reference_of
from test_offsets import PIECES, Pair
from test_regexes import GPT2, PUNCTUATED, borders, borders_of_reference

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")
hf = pytest.importorskip("dpdk_tokd.hf", reason="pip install ./python")


def split(pattern: str, behavior: str = "Isolated", invert: bool = False, kind: str = "Regex"):
    return {
        "type": "Split",
        "pattern": {kind: pattern},
        "behavior": behavior,
        "invert": invert,
    }


def digits(individual: bool):
    return {"type": "Digits", "individual_digits": individual}


def punctuation(behavior: str):
    return {"type": "Punctuation", "behavior": behavior}


def byte_level(prefix: bool = False, **more: bool):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, **more}


def sequence(*parts: dict):
    return {"type": "Sequence", "pretokenizers": list(parts)}


BYTES = byte_level(use_regex=False)
IDEOGRAPHS = "[一-龥ࠀ-一가-퟿]+"
POROS = PUNCTUATED.replace("[.", ".").replace("])", ")")

SHAPES = {
    "starcoder, smollm, granite, command-r": sequence(digits(True), byte_level(use_regex=True)),
    "bloom": sequence(split(PUNCTUATED), BYTES),
    "viking": sequence(split(PUNCTUATED), digits(True), BYTES),
    "poro": sequence(split(POROS), digits(True), BYTES),
    "deepseek-coder": sequence(
        split("[\r\n]"),
        split(r"\s?\p{L}+"),
        split(r"\s?\p{P}+"),
        split(IDEOGRAPHS),
        digits(True),
        BYTES,
    ),
    "deepseek-llm, with fewer letters": sequence(
        split("[\r\n]"),
        split(r"\s?[A-Za-zµÀ-ÖØ-öø-ƺЀ-ҁ]+"),
        split(r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"),
        split(r"\s+$"),
        split(IDEOGRAPHS),
        digits(True),
        BYTES,
    ),
    "falcon": sequence(
        punctuation("Contiguous"),
        byte_level(use_regex=True),
        digits(False),
        split("[0-9][0-9][0-9]"),
    ),
    "gpt2, then digits of its bytes": sequence(byte_level(use_regex=True), digits(False)),
    "llama3 as transformers.js has it": sequence(split(LLAMA3, "Removed", True), BYTES),
    "roberta with a blank in front": byte_level(True),
    "a blank in front, then others": sequence(byte_level(True)),
    "gpt2 behind runs of other things": sequence(
        split("[\r\n]+", "MergedWithPrevious"), split(GPT2, "MergedWithNext"), BYTES
    ),
}


@pytest.fixture
def with_pre_tokenizer(gpt2_reference, tmp_path):
    document = json.loads(gpt2_reference.to_str())

    def save(pre_tokenizer: dict):
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(document | {"pre_tokenizer": pre_tokenizer}))
        return path

    return save


@pytest.mark.parametrize("name", SHAPES)
def test_ids_however_the_text_is_cut(name, with_pre_tokenizer):
    path = with_pre_tokenizer(SHAPES[name])
    texts.compare(dpdk_tokd.Tokenizer.load(str(path)), reference_of(path))


@pytest.mark.parametrize("name", SHAPES)
def test_offsets(name, with_pre_tokenizer):
    path = with_pre_tokenizer(SHAPES[name])
    pair = Pair(json.loads(path.read_text()), path, "not-special")
    pair.hold_all(PIECES)


@pytest.mark.parametrize("name", SHAPES)
def test_words(name, with_pre_tokenizer):
    """Which pretoken an id belongs to."""
    path = str(with_pre_tokenizer(SHAPES[name]))
    theirs, ours = tokenizers.Tokenizer.from_file(path), hf.HFTokenizer.from_file(path)
    rng = random.Random(name)
    for i in range(max(50, texts.some(10_000))):
        text = texts.from_pieces(rng) if i % 2 else texts.random_unicode(rng)
        want, got = theirs.encode(text), ours.encode(text)
        assert (got.word_ids, got.offsets) == (want.word_ids, want.offsets), repr(text)


BEHAVIORS = ["Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
PATTERNS = [
    split(r"\s"),
    split(r"[aeiou]+|\n"),
    split(r" ?\p{Lu}"),
    split(r"\p{N}{2}"),
    split("<|", kind="String"),
    split(".", kind="String"),
]


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_what_becomes_of_matches(behavior, with_pre_tokenizer):
    """Each pattern alone, or behind another one; matches and gaps, or the reverse."""
    rng = random.Random(behavior)
    for pattern in PATTERNS:
        first = pattern | {"behavior": behavior, "invert": rng.random() < 0.5}
        other = rng.choice(PATTERNS) | {"behavior": rng.choice(BEHAVIORS)}
        parts = rng.choice([[first], [other, first], [punctuation(behavior), first]])
        path = with_pre_tokenizer(sequence(*parts, BYTES))
        compared = texts.Comparison(dpdk_tokd.Tokenizer.load(str(path)), reference_of(path))
        for _ in range(max(20, texts.some(10_000))):
            compared.randomly(texts.from_pieces(compared.rng))


def test_a_blank_in_front_of_each_text_between_added_tokens(with_pre_tokenizer):
    path = with_pre_tokenizer(byte_level(True))
    document = json.loads(path.read_text())
    pair = Pair(document, path, "all")
    pair.hold_made([*PIECES, *[token["content"] for token in document["added_tokens"]]], 500)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    assert tokenizer.decode(tokenizer.encode("a", add_special_tokens=False)) == " a"


@pytest.mark.parametrize(
    ("component", "regex"),
    [
        (tokenizers.pre_tokenizers.Punctuation(), "(?punctuation)"),
        (tokenizers.pre_tokenizers.Digits(individual_digits=True), "(?numeric)"),
    ],
    ids=["punctuation", "digits"],
)
def test_the_reference_s_own_characters(component, regex):
    """Every code point."""
    points = [*map(chr, texts.CODE_POINTS)]
    given = ["a" + "a".join(points[i : i + 4096]) for i in range(0, len(points), 4096)]
    for text, begins in zip(given, borders([regex], given), strict=True):
        assert begins == borders_of_reference(component, text)
