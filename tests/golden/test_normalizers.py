# SPDX-License-Identifier: BSD-3-Clause
"""Normalizers in steps: ids equal the reference's, whole and however the text is cut.

The model is a byte-level BPE without merges, so ids are the bytes of normalized text.
$TOK_GOLDEN_TEXTS is how many texts each has.
"""

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
import test_offsets
import texts

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

REPOSITORY = Path(__file__).resolve().parents[2]
TOK = REPOSITORY / os.environ.get("TOKD_BUILD", "build") / "app/tok"
made = tokenizers.normalizers
REGEX = tokenizers.Regex
ADDED = ("ÄB c", "Ⅷ", "x  y", "``")

NORMALIZERS = {
    "NFD": made.NFD(),
    "NFKC": made.NFKC(),
    "NFKD": made.NFKD(),
    "Lowercase": made.Lowercase(),
    "StripAccents": made.StripAccents(),
    "BERT": made.BertNormalizer(),
    "BERT cased": made.BertNormalizer(lowercase=False),
    "CLIP": made.Sequence([made.NFC(), made.Replace(REGEX(r"\s+"), " "), made.Lowercase()]),
    "ALBERT": made.Sequence(
        [
            made.Replace("``", '"'),
            made.Replace("''", '"'),
            made.NFKD(),
            made.StripAccents(),
            made.Lowercase(),
        ]
    ),
    "DeBERTa-v3": made.Sequence(
        [made.Replace(REGEX(r"\s{2,}|[\n\r\t]"), " "), made.NFC(), made.Strip(left=False)]
    ),
    "Strip": made.Strip(),
    "Strip left": made.Strip(right=False),
    "texts": made.Sequence(
        [made.Replace("aab", "é"), made.Replace("\n", " // "), made.Replace("--", "")]
    ),
    "one after the other": made.Sequence(
        [made.Lowercase(), made.NFKC(), made.Lowercase(), made.Replace(REGEX(" {2,}"), " ")]
    ),
}


@pytest.fixture
def saved(tmp_path):
    def save(normalizer, added: tuple[str, ...] = ()):
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        vocab = {char: i for i, char in enumerate(alphabet)}
        model = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
        model.normalizer = normalizer
        model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        model.decoder = tokenizers.decoders.ByteLevel()
        model.add_tokens([tokenizers.AddedToken(name, normalized=True) for name in added])
        path = tmp_path / "tokenizer.json"
        model.save(str(path))
        return path, model

    return save


def ids_of(reference):
    return lambda text: reference.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", NORMALIZERS)
def test_ids_however_the_text_is_cut(name, saved):
    path, reference = saved(NORMALIZERS[name])
    texts.compare(dpdk_tokd.Tokenizer.load(str(path)), ids_of(reference))


@pytest.mark.parametrize("name", NORMALIZERS)
def test_added_tokens_in_normalized_text(name, saved):
    path, reference = saved(NORMALIZERS[name], ADDED)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    rng, parts = random.Random(name), [*ADDED, "äb c", "ä", "B", " ", "viii", "a\u0308", "'"]
    comparison = texts.Comparison(tokenizer, ids_of(reference), tokens_in_text="all")
    for _ in range(texts.some(20_000) + 20):
        comparison.randomly("".join(rng.choices([*parts, *texts.PIECES], k=rng.randint(1, 9))))


@pytest.mark.parametrize("policy", ["not-special", "all"])
@pytest.mark.parametrize("name", NORMALIZERS)
def test_offsets_of_steps(name, policy, saved, tmp_path):
    _, reference = saved(NORMALIZERS[name], ADDED)
    document = json.loads(reference.to_str())
    pair = test_offsets.Pair(document, tmp_path / "pair.json", policy)
    made = ["''", "--", "aab", "ﬁ", "Ⅷ", "\u00ad", "Ä"]
    pair.hold_made([*test_offsets.PIECES, *test_offsets.COMPOSED, *ADDED, *made], 40)
    pair.hold_made([*test_offsets.PIECES, *made], texts.some(20_000))
    for _ in range(texts.some(1_000)):
        pair.hold("a" + "\u0308\u0301" * pair.rng.randint(129, 900) + pair.rng.choice(made))


# Of many classes, and of two that decompose to several; others, some of which become marks.
MARKS = "\u0301\u0308\u0323\u0327\u031b\u0334\u0345\u0315\u05b0\u05bc\u064b\u0651\u093c\u094d\u0e38"
MARKS += "\u0f71\u0f72\u3099\u302a\u0344\u0f73\U0001d165\U0001d16e\uff9e"
BETWEEN = ["", *"eéǖ\u1f82가ﬁ¨Ⅷ\ufdfa", "\u1100\u1161", "``", " \n ", "a b"]


def run_of_marks(rng: random.Random, most: int) -> str:
    n = round(257 * (most / 257) ** rng.random())
    return rng.choice(BETWEEN) + "".join(rng.choices(rng.sample(MARKS, rng.randint(1, 9)), k=n))


@pytest.mark.parametrize("name", NORMALIZERS)
def test_any_number_of_marks_of_a_whole_text(name, saved):
    path, reference = saved(NORMALIZERS[name], ADDED)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    rng = random.Random(name)
    for _ in range(texts.some(10_000)):
        text = run_of_marks(rng, 100_000) + "".join(rng.choices([*BETWEEN, *texts.PIECES], k=9))
        text += run_of_marks(rng, 2_000) + rng.choice(BETWEEN)
        assert tokenizer.encode(text, add_special_tokens=False).tolist() == ids_of(reference)(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NFD", "NFKC", "Lowercase", "StripAccents", "BERT"])
def test_every_code_point(name, saved):
    path, reference = saved(NORMALIZERS[name])
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    for at in range(0, len(texts.CODE_POINTS), 4096):
        points = texts.CODE_POINTS[at : at + 4096]
        text = "\n".join(f"a{chr(c)}b" for c in points)
        ids = tokenizer.encode(text, add_special_tokens=False).tolist()
        assert ids == ids_of(reference)(text), hex(points[0])


def test_the_longest_that_a_character_becomes(saved):
    """U+FDFA has 18 characters in form KC: a stream has room for all of them."""
    path, reference = saved(made.NFKC())
    text = "\ufdfa" * 3000
    ids = dpdk_tokd.Tokenizer.load(str(path)).encode(text, add_special_tokens=False)
    assert ids.tolist() == ids_of(reference)(text)


@pytest.mark.parametrize("name", NORMALIZERS)
def test_compiled(name, saved, tmp_path):
    path, reference = saved(NORMALIZERS[name], ADDED)
    compiled = tmp_path / "v.tokv"
    subprocess.run([TOK, "vocab", "compile", path, "-o", compiled], check=True)
    tokenizer = dpdk_tokd.Tokenizer.load(str(compiled))
    assert tokenizer.info.checksum == dpdk_tokd.Tokenizer.load(str(path)).info.checksum
    for text in ["ÄB c Ⅷ x  y``aab--\n", "".join(texts.PIECES)]:
        assert tokenizer.encode(text, add_special_tokens=False).tolist() == ids_of(reference)(text)


TOO_LONG = "its normalizer gives more than 12 ids for a byte"
FIFTEEN = "123456789012345"


def in_a_row(*steps) -> dict:
    return json.loads(made.Sequence(list(steps)).__getstate__())


REFUSED = [
    (in_a_row(made.Replace("a", "xyxyxyxyxyxy"), made.Replace("xy", FIFTEEN)), TOO_LONG),
    (in_a_row(made.Replace("a", "e\u0301" * 4), made.NFC(), made.Replace("é", FIFTEEN)), TOO_LONG),
    (
        in_a_row(
            made.Replace(" ", "b"),
            made.Replace("\U00010000", " "),
            made.Strip(),  # blanks wait here
            made.Replace(" ", FIFTEEN),
        ),
        TOO_LONG,
    ),
    ({"type": "Nmt"}, '"Nmt" is not implemented (implemented: NFC, NFD'),
    (
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "NFC"}]},
        "normalizers[1]: a second normalization form is not implemented",
    ),
    (
        {"type": "Replace", "pattern": {"Regex": "a|b"}, "content": "c"},
        'Replace of the Regex "a|b" by "c" is not implemented',
    ),
    (
        {"type": "Replace", "pattern": {"String": "é-"}, "content": "c"},
        'Replace of "é-" is not implemented (implemented: one character, or ASCII)',
    ),
]


@pytest.mark.parametrize(("normalizer", "error"), REFUSED)
def test_refused(normalizer, error, saved):
    path, _ = saved(made.NFC())
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalizer": normalizer}))
    with pytest.raises(ValueError, match=re.escape(error)):
        dpdk_tokd.Tokenizer.load(str(path))
