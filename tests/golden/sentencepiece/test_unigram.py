# SPDX-License-Identifier: BSD-3-Clause
"""Unigram (XLM-R, multilingual E5, T5): ids equal the reference's, whole and however text is cut.

Models are trained here on the corpora, or made at random with many ties; T5's and umT5's own files
are used where tools/fetch-vocab has put them, and XLM-R's where tests/support/xlmr.py has.
"""

import base64
import json
import random
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import texts
from sentencepiece_map import trained_map
from texts import FETCHED

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

MARK = "\u2581"

normalizers, pre_tokenizers = tokenizers.normalizers, tokenizers.pre_tokenizers
AddedToken = tokenizers.AddedToken


def squeeze(to: str):
    return normalizers.Replace(tokenizers.Regex(" {2,}"), to)


def strip(left: bool = False):
    return normalizers.Strip(left=left, right=True)


def metaspace(scheme: str = "always", split: bool = True):
    return pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme=scheme, split=split)


def by_words(scheme: str = "always", split: bool = True):
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace(scheme, split)])


def reference_of(path: Path, policy: str = "not-special"):
    reference = tokenizers.Tokenizer.from_file(str(path))
    reference.encode_special_tokens = policy == "not-special"
    return reference


def saved(model, path: Path, normalizer=None, pre_tokenizer=None, scheme: str = "always"):
    """A tokenizer.json of these parts. Returns libtok's tokenizer."""
    if normalizer is not None:
        model.normalizer = normalizer
    if pre_tokenizer is not None:
        model.pre_tokenizer = pre_tokenizer
    model.decoder = tokenizers.decoders.Metaspace(replacement=MARK, prepend_scheme=scheme)
    model.save(str(path))
    return dpdk_tokd.Tokenizer.load(str(path))


def compared(path: Path, seed: int = 1, policy: str = "not-special") -> texts.Comparison:
    reference = reference_of(path, policy)
    return texts.Comparison(
        dpdk_tokd.Tokenizer.load(str(path)),
        lambda text: reference.encode(text, add_special_tokens=False).ids,
        seed,
        tokens_in_text=policy,
    )


# ---- maps of characters ----


@pytest.fixture(scope="module")
def nmt_nfkc() -> bytes:
    return trained_map(normalization_rule_name="nmt_nfkc")


def map_by_lead() -> bytes:
    """Every character of two bytes becomes 2, of three 3, of four 4: keys of one byte, by hand."""
    lead = {c: "2" if c < 0xE0 else "3" if c < 0xF0 else "4" for c in range(0xC2, 0xF5)}
    units = [0] * 768
    units[0] = 256 << 10
    for c, to in lead.items():
        leaf = 512 + int(to)
        units[256 + c] = c | 1 << 8 | ((256 + c) ^ leaf) << 10
        units[leaf] = 1 << 31 | 2 * int(to)
    trie = struct.pack("<768I", *units)
    return struct.pack("<I", len(trie)) + trie + b"0\x001\x002\x003\x004\x00"


def precompiled(charsmap: bytes):
    return normalizers.Precompiled(charsmap)


def bytes_model():
    """Text comes back from its ids: all is unknown, and becomes bytes."""
    vocab = [("<unk>", 0.0), (MARK, -1.0)] + [(f"<0x{i:02X}>", -9.0) for i in range(256)]
    return tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, 0, True))


def ascii_model():
    vocab = [("<unk>", 0.0)] + [(chr(c), -1.0) for c in range(0x21, 0x7F)]
    return tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, 0, False))


# What stands before and behind a code point, so that its class of grapheme clusters shows.
FRAMES = (
    "{}a\u0301", "\u0600{}", "©\u200d{}", "क्{}\u0301", "가{}\u0301", "각{}\u0301", "ᄀ{}\u0301"
)  # fmt: skip


def test_clusters_of_all_code_points(tmp_path):
    """Where clusters end, by a map under which each of fewer than six bytes is one digit."""
    path = tmp_path / "tokenizer.json"
    tokenizer = saved(ascii_model(), path, precompiled(map_by_lead()))
    reference = reference_of(path)
    everything = range(0, 0x110000, 0x8000)
    assigned = [
        *range(0, 0x30000, 0x8000),
        0xE0000,
    ]  # the other planes have no classes of their own
    for frame in FRAMES:
        for first in everything if texts.share() == 1 else assigned:
            points = [c for c in range(first, first + 0x8000) if not 0xD800 <= c < 0xE000]
            data = "!".join(frame.format(chr(c)) for c in points)
            want = reference.normalizer.normalize_str(data).split("!")
            got = tokenizer.decode(tokenizer.encode(data)).split("!")
            # What is no printable ASCII stays as it is, and is unknown.
            want = ["".join(c if "!" < c < "\x7f" else "?" for c in part) for part in want]
            got = [part.replace("<unk>", "?") for part in got]
            differ = [
                (hex(c), w, g)
                for c, w, g in zip(points, want, got, strict=False)  # "!" itself makes two more
                if w != g and chr(c) > "~"
            ]
            assert differ == [], frame


CLUSTERS = [
    *["a", "e", "1", "\r", "\n", "\r\n", "\t", "\x00", " ", "©", "®", "é", "ñ", "\u0301", "\u0308"],
    *["\u0345", "\u200d", "\u0903", "\u0600", "\u06dd", "\u070f", "\u08e2", "क", "\u094d", "त"],
    *["ᄀ", "ᅡ", "ᆨ", "가", "각", "👩", "🚀", "\U0001f3fd", "\ufe0f", "🇫", "🇷", "ﬁ", "ﷺ", "㎏", "①"],
    *[
        "\u00ad",
        "\u200b",
        "\ufeff",
        "\u3000",
        "\u2581",
        "Å",
        "\ufffd",
        "½",
        "…",
        "が",
        "か",
        "\u3099",
    ],
]


def cluster_texts(rng: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        some = rng.sample(CLUSTERS, rng.randint(2, 8))
        yield "".join(rng.choices(some, k=rng.randint(1, 12)))


def random_rules(rng: random.Random, path: Path) -> None:
    """Rules for some characters and sequences of the above, some of which leave nothing."""
    rules = {}
    for _ in range(40):
        source = "".join(rng.choices(CLUSTERS, k=rng.choice([1, 1, 2, 3])))
        if "\x00" not in source and not {"\r", "\n", "\t"} & {*source}:
            rules[source] = "".join(
                rng.choices(["b", "é", "  ", "中", "\u0301"], k=rng.randint(0, 3))
            )
    rules = {source: to for source, to in rules.items() if to != source}  # refused
    lines = [
        "\t".join(" ".join(f"{ord(c):X}" for c in part) for part in rule) for rule in rules.items()
    ]
    path.write_text("".join(line + "\n" for line in lines))


@pytest.mark.parametrize("name", ["nmt_nfkc", "by lead", "random 1", "random 2", "random 3"])
def test_a_map_of_characters(name, tmp_path, request):
    rng = random.Random(name)
    if name == "nmt_nfkc":
        charsmap = request.getfixturevalue("nmt_nfkc")
    elif name == "by lead":
        charsmap = map_by_lead()
    else:
        random_rules(rng, tmp_path / "rules.tsv")
        charsmap = trained_map(normalization_rule_tsv=str(tmp_path / "rules.tsv"))
    path = tmp_path / "tokenizer.json"
    saved(bytes_model(), path, precompiled(charsmap))
    c = compared(path)
    for text in cluster_texts(c.rng, 60 + texts.some(10_000)):
        c.everywhere(text)
    for text in cluster_texts(c.rng, 200 + texts.some(40_000)):
        c.randomly(text)
    if name == "nmt_nfkc":
        points = [*map(chr, texts.CODE_POINTS)]
        for i in range(0, len(points), 4096):
            c.whole("|".join(points[i : i + 4096]))


# ---- small models ----


def random_model(rng: random.Random, by_bytes: bool):
    """Pieces over a few letters, whose scores are often equal, in sum as well."""
    scores = [-1.0, -2.0, -3.0, -0.5, -0.1, -0.3, -rng.uniform(0, 10)]
    pieces = {"<unk>": rng.choice([0.0, -1.0])}
    for _ in range(rng.choice([4, 15, 50])):
        piece = "".join(rng.choices(f"aabbc{MARK * 3}é中", k=rng.choice([1, 1, 2, 2, 3, 4, 6, 8])))
        pieces.setdefault(piece, rng.choice(scores))
    if by_bytes:
        pieces.update({f"<0x{i:02X}>": -20.0 for i in range(256)})
        pieces.setdefault(MARK, -3.0)
    model = tokenizers.Tokenizer(tokenizers.models.Unigram([*pieces.items()], 0, by_bytes))
    model.add_special_tokens([AddedToken("<s>", special=True, normalized=False)])
    flags = {name: rng.random() < 0.4 for name in ("normalized", "lstrip", "rstrip")}
    model.add_tokens([AddedToken("<a b>", normalized=False), AddedToken("cc  c", **flags)])
    return model, [*pieces][:60]


PRE_TOKENIZERS = {
    "none": None,
    "words": pre_tokenizers.WhitespaceSplit(),
    "always": metaspace(),
    "first": metaspace("first"),
    "never": metaspace("never"),
    "always, whole": metaspace(split=False),
    "first, whole": metaspace("first", False),
    "never, whole": metaspace("never", False),
    "words, always": by_words(),
    "words, never": by_words("never"),
    "words, always, whole": by_words(split=False),
}
NORMALIZERS = {
    "none": lambda: None,
    "squeeze": lambda: squeeze(" "),
    "squeeze to mark": lambda: squeeze(MARK),
    "strip": strip,
    "as XLM-R": lambda: normalizers.Sequence([strip(), squeeze(MARK)]),
    "both ends": lambda: normalizers.Sequence([strip(True), squeeze(" ")]),
    "squeeze, strip": lambda: normalizers.Sequence([squeeze(" "), strip()]),
}


@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS)
def test_small_models(pre_tokenizer, tmp_path):
    rng = random.Random(pre_tokenizer)
    path = tmp_path / "tokenizer.json"
    for normalizer, make in NORMALIZERS.items():
        if "first" in pre_tokenizer and normalizer == "both ends":
            continue  # refused
        for by_bytes in [False, True] * (1 + texts.some(500)):
            model, pieces = random_model(rng, by_bytes)
            scheme = rng.choice(["always", "never"])
            tokenizer = saved(model, path, make(), PRE_TOKENIZERS[pre_tokenizer], scheme)
            policy = rng.choice(["not-special", "all"])
            c, reference = compared(path, rng.randrange(1 << 30), policy), reference_of(path)
            letters = [*f"aabbcc    {MARK}{MARK}é中x<>\t\u2028", *rng.choices(pieces, k=6)]
            letters += ["<a b>", "cc  c", "<unk>", "<s>"]
            for i in range(8):
                text = "".join(rng.choices(letters, k=rng.randint(1, 24)))
                (c.everywhere if i < 3 else c.randomly)(text)
                ids = c.whole(text).tolist()
                assert tokenizer.decode(ids) == reference.decode(ids, False)


def test_scores_are_read_as_the_reference_reads_them(tmp_path):
    """Of some texts of 17 digits it makes the number next to the nearest, which makes two sums
    equal."""
    rng, found = random.Random(1), []
    while len(found) < 20:
        text = repr(-rng.uniform(10, 20))
        digits, point = text[1:].replace(".", ""), text[1:].index(".")
        read = -(float(int(digits)) / float(f"1e{len(digits) - point}"))
        again = repr(read)
        if read < float(text) and len(again) < 18:
            found.append((text, again))
    for text, again in found:
        vocab = f'[["<unk>",0],["a",0.0],["b",{text}],["ab",{again}],["c",-1e2],["d",-0.25E-1]]'
        parts = '"pre_tokenizer":null,"post_processor":null,"decoder":{"type":"Metaspace",'
        parts += f'"replacement":"{MARK}","prepend_scheme":"always","split":true}}'
        path = tmp_path / "tokenizer.json"
        path.write_text(
            '{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,'
            f'{parts},"model":{{"type":"Unigram","unk_id":0,"vocab":{vocab},"byte_fallback":false}}}}'
        )
        c = compared(path)
        assert c.whole("ab").tolist() == [3]
        c.everywhere("abcdab")


# ---- models as they are ----


@pytest.fixture(scope="module")
def trained() -> str:
    """Of the corpora's beginnings; 2,000 pieces, with XLM-R's special tokens."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    model = tokenizers.Tokenizer(tokenizers.models.Unigram())
    model.pre_tokenizer = by_words()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=2000, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    model.train_from_iterator(corpora(60_000), trainer)
    return model.to_str()


def corpora(size: int) -> Iterable[str]:
    for name in texts.CORPORA:
        path = texts.DATA / f"{name}.txt"
        if not path.is_file():
            pytest.skip(f"{path} is missing: run tools/fetch-corpus")
        yield from path.read_text("utf-8", "replace")[:size].splitlines()


def test_a_trained_model_as_xlm_r_has_it(trained, nmt_nfkc, tmp_path):
    path = tmp_path / "tokenizer.json"
    model = tokenizers.Tokenizer.from_str(trained)
    model.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=True)])
    normalizer = normalizers.Sequence([precompiled(nmt_nfkc), squeeze(" ")])
    tokenizer = saved(model, path, normalizer, by_words())
    assert tokenizer.info.pretokenizer == "metaspace"
    assert tokenizer.info.normalizer == "sentencepiece"
    c = compared(path, policy="all")
    for _ in range(100):
        c.everywhere(texts.from_pieces(c.rng, added=["<mask>", "  <mask>", "<s>", "<unk>"]))
    reference = reference_of(path)
    texts.compare(tokenizer, lambda text: reference.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("split", [True, False])
def test_a_trained_model_as_t5_has_it(split, trained, nmt_nfkc, tmp_path):
    path = tmp_path / "tokenizer.json"
    normalizer = normalizers.Sequence([precompiled(nmt_nfkc), strip(), squeeze(MARK)])
    saved(tokenizers.Tokenizer.from_str(trained), path, normalizer, metaspace(split=split))
    c = compared(path)
    for _ in range(60 + texts.some(4_000)):
        c.everywhere(texts.from_pieces(c.rng))
    for text in texts.lines(c.rng, 300 + texts.some(20_000)):
        c.randomly(text)
    for _ in range(100 + texts.some(20_000)):
        c.randomly(texts.random_unicode(c.rng))


@pytest.mark.parametrize("name", ["t5", "umt5", "xlmr"])
def test_a_tokenizer_json(name):
    path = FETCHED / f"{name}.json"
    if not path.is_file():
        how = f"tools/fetch-vocab {name}" if name != "xlmr" else "tools/test"
        pytest.skip(f"{path} is missing: run {how}")
    reference = reference_of(path)
    reference.no_truncation()
    reference.no_padding()
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    if texts.share() == 1:
        texts.compare(tokenizer, lambda text: reference.encode(text, add_special_tokens=False).ids)
    c = texts.Comparison(
        tokenizer, lambda text: reference.encode(text, add_special_tokens=False).ids, seed=2
    )
    for _ in range(30 + texts.some(4_000)):
        c.everywhere(texts.from_pieces(c.rng))
    for _ in range(200 + texts.some(4_000)):
        c.randomly(texts.random_unicode(c.rng))
    for text in texts.lines(c.rng, 200 + texts.some(6_000)):
        c.randomly(text)
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == reference.decode(ids.tolist(), False)


# ---- what is refused ----

REFUSED = {
    "normalizer": [
        (normalizers.Nmt(), "Nmt"),
        (normalizers.Replace(tokenizers.Regex("a|b"), "b"), "Replace of the Regex"),
        (normalizers.Sequence([squeeze(MARK), strip()]), "Replace of the Regex"),
        (normalizers.Sequence([precompiled(map_by_lead())] * 2), "Precompiled"),
    ],
    "pre_tokenizer": [
        (pre_tokenizers.Whitespace(), "Whitespace"),
        (pre_tokenizers.Metaspace(replacement="_"), "replacement"),
        (
            pre_tokenizers.Sequence([metaspace(), pre_tokenizers.WhitespaceSplit()]),
            "WhitespaceSplit",
        ),
        (by_words("first"), "prepend_scheme"),
    ],
    "decoder": [
        (tokenizers.decoders.WordPiece(), "WordPiece"),
        (tokenizers.decoders.Fuse(), "Fuse"),
    ],
}


@pytest.mark.parametrize(
    ("part", "of", "named"), [(p, *c) for p, cs in REFUSED.items() for c in cs]
)
def test_what_is_not_implemented_is_refused_by_name(part, of, named, tmp_path):
    path = tmp_path / "tokenizer.json"
    model = ascii_model()
    model.decoder = tokenizers.decoders.Metaspace()
    setattr(model, part, of)
    model.save(str(path))
    with pytest.raises(Exception, match=named):
        dpdk_tokd.Tokenizer.load(str(path))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"unk_id": None}, "unk_id"),
        ({"unk_id": 9999}, "unk_id"),
        ({"vocab": [["<unk>", 0.0], ["a" * 300, -1.0]]}, "300 bytes"),
        ({"vocab": [["<unk>", 0.0], ["a", -1.0], ["a", -2.0]]}, "twice"),
        ({"vocab": [["<unk>", 0.0], ["a"]]}, "score"),
        ({"vocab": [["<unk>", 0.0], ["a", "b"]]}, "score"),
        (
            {"vocab": [["<unk>", 0.0], ["a", -1e308], ["b", -(10**400)]]},
            "finite|range|overflow|large|big",
        ),
        ({"vocab": {"<unk>": 0}}, "list"),
        ({"vocab": [["<unk>", 20.0], ["a", 20.0]]}, "scores"),
        ({"vocab": [["<unk>", 0.0], ["<unk><unk>", -2.0]]}, "unknown token"),
        ({"vocab": [["<unk>", 0.0], ["<0x41>", -2.0]], "byte_fallback": True}, "byte_fallback"),
    ],
)
def test_a_model_that_cannot_be_is_refused(change, named, tmp_path):
    path = tmp_path / "tokenizer.json"
    model = ascii_model()
    model.decoder = tokenizers.decoders.Metaspace()
    document = json.loads(model.to_str())
    document["model"].update(change)
    path.write_text(json.dumps(document))
    with pytest.raises(Exception, match=named):
        dpdk_tokd.Tokenizer.load(str(path))


def test_a_damaged_map_is_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    model = ascii_model()
    model.decoder = tokenizers.decoders.Metaspace()
    model.normalizer = precompiled(map_by_lead())
    document = json.loads(model.to_str())
    charsmap = map_by_lead()
    damaged = [b"", charsmap[:3], charsmap[:100], b"\0\0\0\0" + charsmap[4:]]
    damaged.append(charsmap[:4] + struct.pack("<I", 0x3FFFFF << 10) + charsmap[8:])
    damaged.append(charsmap[:-4] + b"\xff\x00\xff\x00")
    damaged.append(charsmap[:-2] + b"4" * 300 + b"\x00")
    for one in damaged:
        document["normalizer"]["precompiled_charsmap"] = base64.b64encode(one).decode()
        path.write_text(json.dumps(document))
        with pytest.raises(Exception, match="charsmap|map of characters"):
            dpdk_tokd.Tokenizer.load(str(path))
