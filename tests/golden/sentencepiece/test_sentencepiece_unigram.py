# SPDX-License-Identifier: BSD-3-Clause
"""SentencePiece's .model of kind Unigram (T5, mT5, umT5, j2): ids equal those of the package
sentencepiece, whole and however the text is cut, of bytes that are no UTF-8 too, and so does what
they decode to.

Models are trained here under all options, or made at random, with sums that are equal or that
rounding decides; T5's, umT5's and j2's own come by tools/fetch-vocab.
"""

import io
import itertools
import random
import struct
import subprocess
from pathlib import Path

import pytest
import texts
from test_compiled import TOK
from texts import DATA, FETCHED, some

sentencepiece = pytest.importorskip("sentencepiece", reason="pip install sentencepiece")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

MARK = "\u2581"

# What normalizers tell apart: blanks of all sorts, U+2581, what is left out, what composes.
OWN = [
    *(" " * n for n in (1, 2, 3, 7)),
    MARK,
    MARK * 2,
    f" {MARK} ",
    f"a{MARK}b",
    "\ufffd",
    "\u3000",
]
OWN += [
    "\x01", "\x01 ", " \x02 ", "\t", "\n ", "ﬁ", "①", "½", "㎏", "ﷺ", "e\u0301", "が", "か\u3099"
]  # fmt: skip
OWN += [
    "ｶﾞ", "ｶ", "ﾞ", "각", "ᄀ", "ᅡ", "ᆨ", "\u200b", "\u00ad", "</s>", "<unk>", "<0x41>", "[A]",
    "<a b>"
]  # fmt: skip
OWN += ["<extra_id_0>", f"{MARK}<extra_id_0>", "[eod]", "[web", "=====", "\u0301", "Å"]


def models(tokenizer, path: Path, seed: int = 1) -> tuple[texts.Comparison, object]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return texts.Comparison(tokenizer, processor.encode, seed), processor


def compare_decoding(c: texts.Comparison, processor, text: str) -> None:
    """Control pieces are left out there, and so they are here; bytes that are no UTF-8 stay."""
    ids = c.whole(text).tolist()
    got = c.tokenizer.decode(ids, skip_special_tokens=True)
    assert got == processor.decode(ids), (text, ids)
    stream, parts = c.tokenizer.decode_stream(), ""
    for i in ids:
        parts += stream.feed([i])
    assert parts + stream.finish() == c.tokenizer.decode(ids), (text, ids)


def compare_bytes(c: texts.Comparison, text: str) -> None:
    """Some bytes of it are others: as a rule it is no UTF-8 then."""
    data = bytearray(text.encode())
    for _ in range(c.rng.randint(1, 3)):
        data[c.rng.randrange(len(data))] = c.rng.choice(
            [0x80, 0xBF, 0xC3, 0xE2, 0xED, 0xF0, 0xFF, 0x41]
        )
    data = bytes(data)
    want = c.reference(data)
    assert c.tokenizer.encode(data, add_special_tokens=False).tolist() == want, data
    assert c.streamed(data, c.random_cuts(len(data))).tolist() == want, data


def compare_some(c: texts.Comparison, processor, count: int) -> None:
    for i in range(count):
        text = texts.from_pieces(c.rng, 10, OWN) if i % 4 else texts.random_unicode(c.rng)
        (c.everywhere if i % 3 == 0 else c.randomly)(text)
        if text:
            compare_decoding(c, processor, text)
            compare_bytes(c, text)


# ---- models as they are ----


@pytest.mark.parametrize("name", ["t5-spiece", "umt5-spiece", "j2-spiece"])
def test_real_models(name):
    path = FETCHED / f"{name}.model"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab {name}")
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    c, processor = models(tokenizer, path)
    texts.compare(tokenizer, processor.encode, OWN)
    compare_some(c, processor, 200 + some(20_000))


# ---- models that are trained ----


def corpus() -> list[str]:
    path = DATA / "multi.txt"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-corpus")
    lines = path.read_text("utf-8", "replace")[:1_500_000].splitlines()
    return [line for line in lines[::15] if line.strip()]


def trained(path: Path, lines: list[str] | None = None, **options) -> Path:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines or corpus()),
        model_writer=model,
        hard_vocab_limit=False,
        character_coverage=0.98,
        num_threads=1,
        minloglevel=2,
        **{"model_type": "unigram", "vocab_size": 1200, **options},
    )
    path.write_bytes(model.getvalue())
    return path


# BPE has these too: test_sentencepiece_bpe.py.
COMMON = [
    {"normalization_rule_name": "nmt_nfkc"},
    {"normalization_rule_name": "nmt_nfkc_cf", "byte_fallback": True, "split_digits": True},
    {
        "normalization_rule_name": "nfkc",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
    },
    {"normalization_rule_name": "identity", "byte_fallback": True},
    {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
    },
    {"normalization_rule_name": "identity", "add_dummy_prefix": False, "unk_surface": "?"},
    {"normalization_rule_name": "nmt_nfkc", "treat_whitespace_as_suffix": True},
    {
        "normalization_rule_name": "nmt_nfkc",
        "user_defined_symbols": [
            "[A]",
            "==",
            "===",
            f"{MARK}<extra_id_0>",
            "ﬁ",
            "\u0301",
            "か",
            "ab",
        ],
        "control_symbols": ["<ctrl>"],
    },
]
TRAINED = [
    *COMMON,
    {"normalization_rule_name": "nfkc_cf", "remove_extra_whitespaces": False},
    {
        "treat_whitespace_as_suffix": True,
        "remove_extra_whitespaces": False,
        "split_by_whitespace": False,
    },
    {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "allow_whitespace_only_pieces": True,
        "byte_fallback": True,
        "user_defined_symbols": [MARK * 2, "\n", "[A]", "AB"],
    },
]


@pytest.mark.parametrize(
    "options", TRAINED, ids=lambda o: ", ".join(f"{k}={v}" for k, v in o.items())[:60]
)
def test_models_that_are_trained(options, tmp_path):
    path = trained(tmp_path / "small.model", **options)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    assert tokenizer.info.format == "sentencepiece"
    c, processor = models(tokenizer, path)
    compare_some(c, processor, 100 + some(20_000))
    for text in texts.lines(c.rng, 60 + some(6_000)):
        c.randomly(text)
        compare_decoding(c, processor, text)


def test_a_map_with_every_code_point(tmp_path):
    path = trained(tmp_path / "small.model", byte_fallback=True)
    c, _ = models(dpdk_tokd.Tokenizer.load(str(path)), path)
    points = [*map(chr, texts.CODE_POINTS[1:])]
    for i in range(0, len(points), 4096):
        c.whole("|".join(points[i : i + 4096]))


def test_random_maps(tmp_path):
    """Keys that begin one another, that leave nothing, and that make blanks."""
    rng = random.Random(1)
    letters = ["a", "b", "ab", "é", "e\u0301", " ", "  ", "中", "ﬁ", MARK, "\u0301", "c", "x"]
    for _ in range(6 + some(200)):
        rules = {}
        for _ in range(rng.randint(1, 14)):
            source = "".join(rng.choices(letters, k=rng.choice([1, 2, 2, 3, 4])))
            rules[source] = "".join(
                rng.choices(["b", "é", " ", "  ", MARK, "中", "ab"], k=rng.randint(0, 3))
            )
        lines = [
            "\t".join(" ".join(f"{ord(c):X}" for c in part) for part in rule)
            for rule in rules.items()
        ]
        (tmp_path / "rules.tsv").write_text("".join(line + "\n" for line in lines))
        path = trained(
            tmp_path / "small.model",
            ["".join(rng.choices(letters, k=12)) for _ in range(60)],
            normalization_rule_tsv=str(tmp_path / "rules.tsv"),
            remove_extra_whitespaces=rng.random() < 0.6,
            add_dummy_prefix=rng.random() < 0.7,
            treat_whitespace_as_suffix=rng.random() < 0.2,
            byte_fallback=True,
            user_defined_symbols=rng.sample(["ab", "b", "\u0301", "aba", " b", "中", "xx"], 2),
            vocab_size=400,
            max_sentencepiece_length=4,
        )
        c, processor = models(dpdk_tokd.Tokenizer.load(str(path)), path, rng.randrange(1 << 30))
        for i in range(60):
            text = "".join(c.rng.choices(letters, k=c.rng.randint(1, 16)))
            (c.everywhere if i < 20 else c.randomly)(text)
            compare_decoding(c, processor, text)


# ---- models that are made ----


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def flag(number: int, value: bool) -> bytes:
    return varint(number << 3) + bytes([value])


def piece(text: str, score: float, kind: int = 1) -> bytes:
    tail = b"\x15" + struct.pack("<f", score) + bytes([0x18, kind])
    return field(1, field(1, text.encode()) + tail)


# Of sums: equal ones; such that differ by what rounding leaves; large ones, which are taken off.
SCORES = {
    "ties": lambda rng: rng.choice([-1.0, -2.0, -3.0, -0.5, -1.5]),
    "tenths": lambda rng: rng.choice([-0.1, -0.2, -0.3, -0.4, -0.7, -1.1]),
    "any": lambda rng: -rng.uniform(0, 10),
    "near": lambda rng: -1.0 - rng.randrange(4) * 2.0**-22,
    "large": lambda rng: -rng.choice([1.0, 30_000.0, 99_999.0, 100_000.0, 100_001.0, 70_000.5]),
    "huge": lambda rng: rng.choice([-1.0, 1.0]) * rng.choice([1e29, 1e20, 250_000.0, 3.0, 1.0]),
    "above": lambda rng: rng.uniform(-3, 20_000),
}


def random_model(rng: random.Random, kind: str) -> bytes:
    score = SCORES[kind]
    pieces: dict[str, bytes] = {}

    def put(text: str, kind: int = 1) -> None:
        pieces.setdefault(text, piece(text, score(rng), kind))

    by_bytes = rng.random() < 0.4
    if by_bytes:
        put(MARK)
    for text in rng.sample(
        ["[A]", "ab", f"{MARK}{MARK}", "é", "b", "a b", "aabb", f"b{MARK}a"], rng.randint(0, 3)
    ):
        put(text, 4)
    for text in rng.sample(["a", "bb", "ba", "c", "é中"], rng.randint(0, 2)):
        put(text, 5)
    for _ in range(rng.choice([3, 12, 40])):
        put("".join(rng.choices(f"aabbc{MARK * 2}é中", k=rng.choice([1, 1, 2, 2, 3, 4, 6, 8]))))
    put("zz")  # one at least is NORMAL
    body = [*pieces.values(), piece("<unk>", 0, 2), piece("</s>", 0, 3), piece("a", 0, 3)]
    if by_bytes:
        body += [piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256)]
    rng.shuffle(body)
    trainer = flag(3, True) + flag(35, by_bytes) + flag(24, rng.random() < 0.2)
    normalizer = flag(3, rng.random() < 0.6) + flag(4, rng.random() < 0.5)
    return b"".join(body) + field(2, trainer) + field(3, normalizer)


@pytest.mark.parametrize("kind", SCORES)
def test_random_models(kind, tmp_path):
    rng = random.Random(kind)
    path = tmp_path / "random.model"
    parts = [
        *"aabbcé中x",
        " ",
        " ",
        "  ",
        MARK,
        "[A]",
        "[A",
        "a b",
        "ab",
        "<s>",
        "aabb",
        "zz",
        "</s>",
    ]
    for _ in range(12 + some(10_000)):
        path.write_bytes(random_model(rng, kind))
        c, processor = models(dpdk_tokd.Tokenizer.load(str(path)), path, rng.randrange(1 << 30))
        for i in range(12):
            text = "".join(rng.choices(parts, k=rng.randint(1, 16)))
            (c.everywhere if i < 4 else c.randomly)(text)
            compare_decoding(c, processor, text)
            compare_bytes(c, text)
        # Long, so that sums are; without runs that are certain only at their end.
        c.randomly("x".join("".join(rng.choices(parts, k=rng.randint(1, 40))) for _ in range(150)))


def test_a_long_text_whose_sum_is_taken_off(tmp_path):
    """Of T5's or a trained model: 400,000 characters, a hundred thousand and more below zero."""
    path = FETCHED / "t5-spiece.model"
    if not path.is_file():
        path = trained(tmp_path / "small.model")
    c, _ = models(dpdk_tokd.Tokenizer.load(str(path)), path)
    text = "\n".join(itertools.islice(texts.lines(c.rng, 3000), 2500))
    assert len(c.whole(text)) > 100_000
    c.randomly(text)


def test_compiled(tmp_path):
    path = trained(tmp_path / "small.model", **TRAINED[9])
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    compiled = tmp_path / "small.tokv"
    subprocess.run([TOK, "vocab", "compile", path, "-o", compiled], check=True)
    again = dpdk_tokd.Tokenizer.load(str(compiled))
    assert again.info.checksum == tokenizer.info.checksum
    c, processor = models(again, path)
    compare_some(c, processor, 100)


def test_offsets_are_refused_by_name(tmp_path):
    tokenizer = dpdk_tokd.Tokenizer.load(str(trained(tmp_path / "small.model", **TRAINED[0])))
    with pytest.raises(ValueError, match="not implemented for SentencePiece's .model"):
        tokenizer.encode("hello", return_offsets=True)
