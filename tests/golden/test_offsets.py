# SPDX-License-Identifier: BSD-3-Clause
"""Offsets of ids equal the reference's, where it has the same idea of them.

The reference counts characters: a token that is part of one has all of it, and libtok's bytes are
rounded out to be compared. A token of white space behind one that takes white space overlaps with
it in the reference, and not in libtok: no set of tokens here has both. The reference's
post-processors move offsets (trim_offsets): there is none but a template.
"""

import json
import lzma
import random
from bisect import bisect_left, bisect_right
from itertools import pairwise
from pathlib import Path

import pytest
from test_added import first_merges, some_flags, token_of, with_form_c
from test_families import FETCHED, SHARED, unpacked
from texts import Unanswered, lines, random_unicode, shrink, some

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

Ranges = list[tuple[int, int]]

PIECES = [
    *["a", "foo", " ", "  ", "\n", "\t", "é", "中", "_", "1", "<", "<|", "|>", "x", "Hello"],
    *["\u3000", "\u00a0", "'s", " \n", "bar", "😀", "한국", "각", "ạ", "rés", "½", "running"],
    *[" world", "Ünïcode", "x" * 120],
]
# Form C composes these, or takes them apart, or changes their order.
COMPOSED = ["e\u0301", "\u1100\u1161\u11a8", "K\u0323\u0301", "\u212a", "\u0958"]
COMPOSED += ["o\u0308\u0323", "가\u11a8", "\u0301\u0323", "\u0344", "É\u0323", "\u0f73\u0f71"]


def bounds(text: str) -> list[int]:
    """Where characters begin, in bytes of UTF-8, and the end."""
    at, found = 0, []
    for char in text:
        found.append(at)
        at += len(char.encode())
    return [*found, at]


class Pair:
    """A file without its post-processor, beside the reference."""

    def __init__(self, document: dict, path: Path, policy: str, template=None) -> None:
        document = document | {"post_processor": template, "truncation": None, "padding": None}
        path.write_text(json.dumps(document))
        self.reference = tokenizers.Tokenizer.from_file(str(path))
        self.reference.encode_special_tokens = policy == "not-special"
        self.tokenizer = dpdk_tokd.Tokenizer.load(str(path))
        self.policy = policy
        self.texts = self.unanswered = 0
        self.rng = random.Random(1)

    def want(self, text: str) -> tuple[list[int], Ranges]:
        try:
            encoding = self.reference.encode(text)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise Unanswered(text) from None
        starts = bounds(text)
        return encoding.ids, [(starts[a], starts[b]) for a, b in encoding.offsets]

    def got(self, text: str) -> tuple[list[int], Ranges]:
        ids, ranges = self.tokenizer.encode(text, tokens_in_text=self.policy, return_offsets=True)
        return ids.tolist(), [(a, b) for a, b in ranges.tolist()]

    def rounded(self, text: str, ranges: Ranges) -> Ranges:
        at = bounds(text)
        return [
            (at[bisect_right(at, a) - 1], at[bisect_left(at, b)]) if b > a else (a, b)
            for a, b in ranges
        ]

    def differs(self, text: str) -> bool:
        try:
            want_ids, want = self.want(text)
        except Unanswered:
            self.unanswered += 1
            return False
        ids, ranges = self.got(text)
        return ids != want_ids or self.rounded(text, ranges) != self.rounded(text, want)

    def hold(self, text: str) -> None:
        self.texts += 1
        if self.differs(text):
            text = shrink(text, self.differs)
            pytest.fail(f"{text!r}: {self.got(text)}, the reference {self.want(text)}")
        ranges = [r for r in self.got(text)[1] if r != (0, 0)]
        assert all(a <= b for a, b in ranges), text
        assert all(a[0] <= b[0] for a, b in pairwise(ranges)), text

    def hold_made(self, pieces: list[str], count: int) -> None:
        for _ in range(count):
            self.hold("".join(self.rng.choices(pieces, k=self.rng.randint(1, 12))))

    def hold_all(self, pieces: list[str]) -> None:
        self.hold_made(pieces, some(20_000))
        for _ in range(some(5_000)):
            self.hold(random_unicode(self.rng))
        for text in lines(self.rng, some(5_000)):
            self.hold(text)
        print(f"{self.texts} texts equal, {self.unanswered} that the reference panics at")
        assert self.unanswered * 10 < self.texts


def names_of(document: dict) -> list[str]:
    names = [token["content"] for token in document["added_tokens"]]
    return [*names[:40], *names[40:][-40:]]


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "a", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "b", "type_id": 0}},
    ],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {
        "a": {"id": "a", "ids": [5, 6], "tokens": ["a", "a"]},
        "b": {"id": "b", "ids": [7], "tokens": ["b"]},
    },
}


@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["alone", "template"])
@pytest.mark.parametrize("form_c", [False, True], ids=["plain", "nfc"])
def test_gpt2(form_c, template, gpt2_reference, tmp_path) -> None:
    document = json.loads(gpt2_reference.to_str())
    document["normalizer"] = {"type": "NFC"} if form_c else None
    pair = Pair(document, tmp_path / "tokenizer.json", "not-special", template)
    pair.hold_all([*PIECES, *COMPOSED, *names_of(document)])


@pytest.mark.parametrize("policy", ["not-special", "all"])
@pytest.mark.parametrize("name", ["llama3", "qwen3"])
def test_a_tokenizer_json(name, policy, tmp_path) -> None:
    document = json.loads(unpacked(f"{name}.json", tmp_path).read_text())
    pair = Pair(document, tmp_path / "tokenizer.json", policy)
    pair.hold_all([*PIECES, *COMPOSED, *names_of(document)])


@pytest.mark.parametrize("policy", ["not-special", "all"])
def test_deepseek(policy, tmp_path) -> None:
    path = FETCHED / "deepseek.json"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab deepseek")
    document = json.loads(path.read_text())
    pair = Pair(document, tmp_path / "tokenizer.json", policy)
    pair.hold_all([*PIECES, *COMPOSED, *names_of(document)])


@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["alone", "template"])
@pytest.mark.parametrize("policy", ["not-special", "all"])
def test_bert_uncased(policy, template, tmp_path) -> None:
    packed = SHARED / "bert.json.xz"
    if packed.is_file():
        document = json.loads(lzma.decompress(packed.read_bytes()))
    else:
        from test_bert import UNCASED, reference_of

        document = json.loads(reference_of(UNCASED).to_str())
    pair = Pair(document, tmp_path / "tokenizer.json", policy, template)
    pair.hold_all([*PIECES, *COMPOSED, "[CLS]", "[MASK]", "[MAS", "unaffable"])


@pytest.mark.parametrize("form_c", [False, True], ids=["plain", "nfc"])
def test_random_added_tokens(form_c, gpt2_reference, tmp_path) -> None:
    rng = random.Random(form_c)
    base = first_merges(gpt2_reference)
    base = with_form_c(base) if form_c else base
    contents = ["foo", "foobar", "bar", "<|x|>", "<|x", " x", "zq", "é", "中", "oo", "b", " ", "\n"]
    compared = unanswered = 0
    for _ in range(max(12, some(400))):
        made = tokenizers.Tokenizer.from_str(base)
        chosen = rng.sample(contents, rng.randint(1, len(contents)))
        tokens = [token_of(text, {*some_flags(rng, text)} - {"special"}) for text in chosen]
        if any(token.rstrip for token in tokens):
            tokens = [token for token in tokens if token.content[0] not in " \n"]
        made.add_tokens(tokens)
        pair = Pair(json.loads(made.to_str()), tmp_path / "tokenizer.json", "not-special")
        pair.hold_made([*PIECES, *COMPOSED, *contents, *contents], 150)
        compared += pair.texts
        unanswered += pair.unanswered
    print(f"{compared} texts equal, {unanswered} that the reference panics at")
    assert unanswered * 10 < compared


def test_what_the_reference_rounds_is_exact(gpt2_reference, tmp_path) -> None:
    document = json.loads(gpt2_reference.to_str()) | {"normalizer": {"type": "NFC"}}
    pair = Pair(document, tmp_path / "tokenizer.json", "not-special")
    ids, ranges = pair.got("😀")
    assert [pair.tokenizer.token(i) for i in ids] == [b"\xf0\x9f\x98", b"\x80"]
    assert ranges == [(0, 3), (3, 4)]
    assert pair.got("ae\u0301b")[1] == [(0, 1), (1, 2), (4, 5)]
    ids, ranges = pair.got("e\u0301😀")
    assert ranges[-2:] == [(3, 6), (6, 7)]
