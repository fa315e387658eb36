# SPDX-License-Identifier: BSD-3-Clause
"""BPE of a .model behind sentencepiece's normalizer, with byte_fallback or without: ids and what
they decode to equal that package's, whole and however the text is cut.

All models are trained here, or made.
"""

import random
import subprocess
from pathlib import Path

import pytest
import texts
from test_sentencepiece_unigram import (
    COMMON,
    MARK,
    OWN,
    TOK,
    compare_bytes,
    compare_decoding,
    compare_some,
    corpus,
    field,
    flag,
    models,
    piece,
    trained,
)
from texts import DATA, some

dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

TRAINED = [
    *COMMON,
    {"normalization_rule_name": "nmt_nfkc", "byte_fallback": True},
    {"normalization_rule_name": "nmt_nfkc_cf", "remove_extra_whitespaces": False},
    {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    {"treat_whitespace_as_suffix": True, "remove_extra_whitespaces": False, "byte_fallback": True},
    {
        "normalization_rule_name": "nmt_nfkc_cf",
        "byte_fallback": True,
        "remove_extra_whitespaces": False,
        "allow_whitespace_only_pieces": True,
        "user_defined_symbols": ["[A]", "==", MARK * 2, "\n", "①", "AB"],
    },
    {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "user_defined_symbols": [MARK * 2, "\n", "[A]", "AB", "①"],
    },
]


def small(path: Path, **options) -> Path:
    return trained(path / "small.model", model_type="bpe", **options)


@pytest.mark.parametrize(
    "options", TRAINED, ids=lambda o: ", ".join(f"{k}={v}" for k, v in o.items())[:80]
)
def test_models_that_are_trained(options, tmp_path):
    path = small(tmp_path, **options)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    assert tokenizer.info.format == "sentencepiece"
    assert tokenizer.info.n_added == len(options.get("user_defined_symbols", []))
    c, processor = models(tokenizer, path)
    compare_some(c, processor, 200 + some(20_000))
    for text in texts.lines(c.rng, 60 + some(6_000)):
        c.randomly(text)
        compare_decoding(c, processor, text)
    for _ in range(200):
        ids = [c.rng.randrange(processor.get_piece_size()) for _ in range(c.rng.randint(1, 8))]
        got = tokenizer.decode(ids, skip_special_tokens=True)
        want = processor.decode(ids)
        assert "\ufffd" in want or got == want, ids


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_a_map_with_every_code_point(byte_fallback, tmp_path):
    path = small(tmp_path, byte_fallback=byte_fallback)
    c, _ = models(dpdk_tokd.Tokenizer.load(str(path)), path)
    points = [*map(chr, texts.CODE_POINTS[1:])]
    for i in range(0, len(points), 4096):
        c.whole("|".join(points[i : i + 4096]))


def all_corpora() -> list[str]:
    """The languages of corpus(), English and code."""
    lines = corpus()
    for name in ("english", "code"):
        some_of_it = (DATA / f"{name}.txt").read_text("utf-8", "replace")[:750_000].splitlines()
        lines += [line for line in some_of_it[::3] if line.strip()]
    return lines


@pytest.mark.parametrize("byte_fallback", [False, True], ids=["unknown", "bytes"])
def test_a_larger_model(byte_fallback, tmp_path):
    """As T5's and others are made, but by merges: 8,000 pieces, a map, blanks left out."""
    path = trained(
        tmp_path / "larger.model",
        all_corpora(),
        model_type="bpe",
        vocab_size=8000,
        normalization_rule_name="nmt_nfkc",
        byte_fallback=byte_fallback,
    )
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    assert tokenizer.info.normalizer == "sentencepiece"
    c, processor = models(tokenizer, path)
    texts.compare(tokenizer, processor.encode, OWN)
    compare_some(c, processor, some(20_000))


def test_what_is_unknown_in_a_row_is_one_piece(tmp_path):
    """However it is cut, and whatever came before it; what is recognised ends it."""
    path = small(tmp_path, user_defined_symbols=["[A]"], add_dummy_prefix=False)
    c, processor = models(dpdk_tokd.Tokenizer.load(str(path)), path)
    assert c.whole("𓀀𓀁𓀂").tolist() == [processor.unk_id()]
    for text in ["𓀀𓀁[A]𓀂𓀃", "a𓀀𓀁b", "𓀀 𓀁", "𓀀" * 5000, "[A]𓀀\x01𓀁", "the𓀀the𓀁𓀂"]:
        c.everywhere(text[:40])
        c.randomly(text)
        compare_decoding(c, processor, text)


def random_model(rng: random.Random) -> bytes:
    """Few characters; what is said of the text at random."""
    by_bytes = rng.random() < 0.4
    characters = rng.sample([MARK, "a", "b", "é", "中"], rng.randint(2, 5))
    if by_bytes and MARK not in characters:
        characters.append(MARK)
    pieces = list(characters)
    for _ in range(rng.randint(1, 14)):
        text = rng.choice(pieces) + rng.choice(pieces)
        if text not in pieces and len(text) <= 8:
            pieces.append(text)
    own = rng.sample(
        ["[A]", "ab", MARK * 2, "éé", "b", f"{MARK}<", "<", "a b", " a", "xx"], rng.randint(0, 3)
    )
    body = [piece("<unk>", 0, 2), piece("<s>", 0, 3), *(piece(text, 0, 4) for text in own)]
    body += [
        piece(text, -1.0 - rng.randrange(100) - i / 64)
        for i, text in enumerate(pieces)
        if text not in own
    ]
    if by_bytes:
        body += [piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256)]
    rng.shuffle(body)
    trainer = flag(3, 2) + flag(35, by_bytes) + flag(24, rng.random() < 0.2)
    normalizer = flag(3, rng.random() < 0.6) + flag(4, rng.random() < 0.5)
    return b"".join(body) + field(2, trainer) + field(3, normalizer)


def test_random_models(tmp_path):
    rng = random.Random(2)
    path = tmp_path / "random.model"
    parts = [
        *"aabbé中x",
        " ",
        " ",
        "  ",
        MARK,
        "[A]",
        "[A",
        "a b",
        "ab",
        "<s>",
        "<",
        "xx",
        "éé",
        "\x01",
    ]
    loaded, refused = 0, 0
    for _ in range(60 + some(20_000)):
        path.write_bytes(random_model(rng))
        try:
            tokenizer = dpdk_tokd.Tokenizer.load(str(path))
        except ValueError as error:
            assert "no piece" in str(error) or "comes before those of its parts" in str(error)
            refused += 1
            continue
        loaded += 1
        c, processor = models(tokenizer, path, rng.randrange(1 << 30))
        plain = tokenizer.info.normalizer == "metaspace"
        for i in range(16):
            text = "".join(rng.choices(parts, k=rng.randint(1, 16)))
            (c.everywhere if i < 4 else c.randomly)(text * rng.choice([1, 1, 1, 7]))
            if not plain:
                compare_decoding(c, processor, text)
                compare_bytes(c, text)
    print(f"{loaded} models loaded, {refused} refused")
    assert loaded > refused


@pytest.mark.parametrize("options", [TRAINED[2], TRAINED[11]], ids=["bytes", "unknown"])
def test_compiled(options, tmp_path):
    path = small(tmp_path, **options)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    compiled = tmp_path / "small.tokv"
    subprocess.run([TOK, "vocab", "compile", path, "-o", compiled], check=True)
    again = dpdk_tokd.Tokenizer.load(str(compiled))
    assert again.info.checksum == tokenizer.info.checksum
    assert again.info.n_added == tokenizer.info.n_added
    c, processor = models(again, path)
    compare_some(c, processor, 200)


def test_what_is_refused_by_name(tmp_path):
    path = small(tmp_path)
    with pytest.raises(ValueError, match="not implemented for SentencePiece's .model"):
        dpdk_tokd.Tokenizer.load(str(path)).encode("hello", return_offsets=True)
    with pytest.raises(ValueError, match='"greedy" is not implemented without byte_fallback'):
        dpdk_tokd.Tokenizer.load(str(path), algo="greedy")
