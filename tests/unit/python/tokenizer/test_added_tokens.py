# SPDX-License-Identifier: BSD-3-Clause
"""Added tokens in a text, and which bytes of it ids stand for."""

import dpdk_tokd
import numpy as np
import pytest

END = 50256
END_TEXT = "<|endoftext|>"


@pytest.fixture(scope="module")
def tok(gpt2_reference, tmp_path_factory) -> dpdk_tokd.Tokenizer:
    """GPT-2 with an added token, id 50257, and a template."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    made = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    made.normalizer = tokenizers.normalizers.NFC()
    made.add_tokens([tokenizers.AddedToken("<t>", normalized=False, rstrip=True)])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{END_TEXT} $A {END_TEXT}", special_tokens=[(END_TEXT, END)]
    )
    path = tmp_path_factory.mktemp("added") / "tokenizer.json"
    made.save(str(path))
    return dpdk_tokd.Tokenizer.load(str(path))


def plain_ids(gpt2, *parts: str | int) -> list[int]:
    """Of texts without added tokens, and ids."""
    ids = [
        [p] if isinstance(p, int) else gpt2.encode(p, tokens_in_text="none").tolist() for p in parts
    ]
    return [i for part in ids for i in part]


TEXT = f"a<t> b{END_TEXT}<t"


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        ({}, ["a", 50257, "b", END, "<t"]),
        ({"tokens_in_text": "not-special"}, ["a", 50257, f"b{END_TEXT}<t"]),
        ({"tokens_in_text": "all"}, ["a", 50257, "b", END, "<t"]),
        ({"tokens_in_text": "none"}, [TEXT]),
    ],
)
def test_which_are_recognised(tok, gpt2, asked: dict, parts: list) -> None:
    want = plain_ids(gpt2, *parts)
    assert tok.encode(TEXT, add_special_tokens=False, **asked).tolist() == want
    assert tok.encode(TEXT, **asked).tolist() == [END, *want, END]
    batch = tok.encode_batch([TEXT, "", TEXT], add_special_tokens=False, **asked)
    assert [ids.tolist() for ids in batch] == [want, [], want]
    for cut in range(len(TEXT)):
        stream = tok.stream(add_special_tokens=False, **asked)
        parts = [stream.feed(TEXT[:cut]), stream.feed(TEXT[cut:]), stream.finish()]
        assert np.concatenate(parts).tolist() == want, cut


@pytest.mark.parametrize("wrong", ["some", "", None, True])
def test_an_unknown_word_is_refused_with_those_that_are_known(tok, wrong) -> None:
    for ask in (
        tok.encode,
        lambda t, **a: tok.encode_batch([t], **a),
        lambda t, **a: tok.stream(**a),
    ):
        with pytest.raises(ValueError, match='tokens_in_text: .*"all", "not-special" or "none"'):
            ask("text", tokens_in_text=wrong)


def test_info_counts_them(tok, gpt2) -> None:
    assert (tok.info.n_special, tok.info.n_added) == (1, 1)
    assert (gpt2.info.n_added, gpt2.info.source) == (0, None)
    assert gpt2.info.storage in ("memory", "mapped file", "huge pages")


def test_offsets_are_the_bytes_that_a_token_stands_for(tok) -> None:
    text = "naïve 中文😀 e\u0301 <t>  x"
    data = text.encode()
    ids, offsets = tok.encode(text, return_offsets=True)
    assert ids.tolist() == tok.encode(text).tolist()
    assert (offsets.dtype, offsets.shape) == (np.uint64, (len(ids), 2))
    assert offsets[0].tolist() == offsets[-1].tolist() == [0, 0]
    ranges = [data[a:b] for a, b in offsets.tolist()]
    assert b"".join(ranges) == data.replace("\u0301".encode(), b"")  # as in the reference
    for id, range in zip(ids.tolist(), ranges, strict=True):
        if id == END:
            assert range == b""
        elif id == 50257:
            assert range == b"<t>  "  # with the white space it takes
        elif range == b" e":
            assert tok.token(id) == " é".encode()
        else:
            assert tok.token(id) == range


def test_text_in_any_buffer_has_offsets(tok) -> None:
    want = tok.encode("a b", return_offsets=True)[1].tolist()
    for kind in (str, bytes, bytearray, memoryview):
        given = "a b" if kind is str else kind(b"a b")
        assert tok.encode(given, return_offsets=True)[1].tolist() == want
    assert tok.encode("", return_offsets=True)[1].tolist() == [[0, 0], [0, 0]]
    none = tok.encode("", add_special_tokens=False, return_offsets=True)
    assert [array.shape for array in none] == [(0,), (0, 2)]


@pytest.mark.parametrize("side", ["left", "right"])
def test_offsets_are_cut_as_ids_are(tok, side) -> None:
    text = "one two three four five"
    all_ids, all_offsets = (array.tolist() for array in tok.encode(text, return_offsets=True))
    for most in range(2, 9):
        asked = {"truncation": most, "truncation_side": side, "return_offsets": True}
        ids, offsets = tok.encode(text, **asked)
        kept = slice(1, most - 1) if side == "right" else slice(len(all_ids) - most + 1, -1)
        kept = kept if most < len(all_ids) else slice(1, -1)
        assert ids.tolist() == [END, *all_ids[kept], END]
        assert offsets.tolist() == [[0, 0], *all_offsets[kept], [0, 0]]
    with pytest.raises(ValueError, match="truncation to 1 ids"):
        tok.encode(text, truncation=1, return_offsets=True)


@pytest.mark.parametrize("bad", [b"ab\xff", b"\xe2\x82", b"a\xed\xa0\x80"])
def test_offsets_are_of_text_that_is_utf8(tok, bad) -> None:
    tok.encode(bad)
    with pytest.raises(ValueError, match=r"^return_offsets: .* not UTF-8, .*after [012] bytes"):
        tok.encode(bad, return_offsets=True)
    with pytest.raises(UnicodeEncodeError):
        tok.encode("\ud800", return_offsets=True)
