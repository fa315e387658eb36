# SPDX-License-Identifier: BSD-3-Clause
"""Many texts at once, templates, truncation, padding: what is given and what is refused.

That the ids are the reference's is the matter of tests/golden/test_batch.py.
"""

import json
import threading
from pathlib import Path

import dpdk_tokd
import numpy as np
import pytest

LINES = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "a", "b", "c", "d", "##a"]
UNK, PAD, CLS, SEP, A, B, C, D, AA = range(9)
TEXTS = ["a b c d", "", "a", "b c"]
PADDING = {
    "strategy": {"Fixed": 6},
    "direction": "Left",
    "pad_to_multiple_of": 4,
    "pad_id": AA,
    "pad_type_id": 0,
    "pad_token": "x",
}


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> dpdk_tokd.Tokenizer:
    path = tmp_path_factory.mktemp("bert") / "vocab.txt"
    path.write_text("\n".join(LINES))
    return dpdk_tokd.Tokenizer.load(str(path))


@pytest.fixture
def saying(tmp_path: Path):
    """The same as a tokenizer.json that says more."""

    def load(**more: object) -> dpdk_tokd.Tokenizer:
        document = {
            "version": "1.0",
            "added_tokens": [],
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": True,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {line: i for i, line in enumerate(LINES)},
            },
        }
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(document | more))
        return dpdk_tokd.Tokenizer.load(str(path))

    return load


def test_the_template_is_added_unless_it_shall_not_be(bert, gpt2):
    assert bert.template == ((CLS,), (SEP,))
    assert gpt2.template == ((), ())
    assert bert.encode("a b").tolist() == [CLS, A, B, SEP]
    assert bert.encode("a b", add_special_tokens=False).tolist() == [A, B]
    stream = bert.stream()
    assert stream.feed("a").tolist() == [CLS]
    assert stream.feed(" b").tolist() == [A]
    assert stream.finish().tolist() == [B, SEP]
    stream = bert.stream(add_special_tokens=False)
    assert [*stream.feed("a b"), *stream.finish()] == [A, B]


def test_truncation_keeps_the_template(bert):
    for most, right, left in (
        (6, [CLS, A, B, C, D, SEP], [CLS, A, B, C, D, SEP]),
        (5, [CLS, A, B, C, SEP], [CLS, B, C, D, SEP]),
        (3, [CLS, A, SEP], [CLS, D, SEP]),
        (2, [CLS, SEP], [CLS, SEP]),
    ):
        assert bert.encode("a b c d", truncation=most).tolist() == right
        assert bert.encode("a b c d", truncation=most, truncation_side="left").tolist() == left
    plain = {"add_special_tokens": False}
    assert bert.encode("a b c d", truncation=1, **plain).tolist() == [A]
    assert bert.encode("a b c d", truncation=1, truncation_side="left", **plain).tolist() == [D]
    assert bert.encode("a b c d", truncation=0, **plain).tolist() == []
    assert len(bert.encode("a b c d", truncation=False)) == 6


LONG = {
    "words": b"a b c d " * 3000,
    "blanks": b"a" + b" " * 30_000 + b"b",
    "no blank": b"abcd" * 5000,
    "a bad byte at a cut": b"a" * 4095 + b"\xe4\xb8 b" * 5000,
    "marks": ("e" + "\u0301" * 20).encode() * 1000,
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("special", [True, False])
def test_a_long_text_is_truncated_as_if_all_of_it_were_encoded(bert, gpt2, name, special):
    """Of one with far more ids than are kept, only the beginning is."""
    how = {"add_special_tokens": special}
    for tok in (bert, gpt2):
        after = len(tok.template.after) if special else 0
        ids = tok.encode(LONG[name], **how).tolist()
        for most in (3, 4, 100, 1500, 2500):
            want = ids if len(ids) <= most else [*ids[: most - after], *ids[len(ids) - after :]]
            assert tok.encode(LONG[name], truncation=most, **how).tolist() == want
            batch = tok.encode_batch(["a", LONG[name], "b"], truncation=most, **how)
            assert batch[1].tolist() == want
            assert batch[2].tolist() == tok.encode("b", **how).tolist()


def test_what_is_wrong_behind_the_cut_is_refused(gpt2, gpt2_file):
    strict = dpdk_tokd.Tokenizer.load(gpt2_file, strict_utf8=True)
    with pytest.raises(ValueError, match="after 20000 bytes"):
        strict.encode(b"a " * 10_000 + b"\xff", truncation=10)
    with pytest.raises(UnicodeEncodeError, match="position 20000"):
        gpt2.encode("a " * 10_000 + "\ud800", truncation=10)


@pytest.mark.parametrize("most", [-1, 0, 1])
def test_truncation_to_less_than_the_template_is_refused(bert, most):
    says = "a number from 0 to 2147483647" if most < 0 else "template alone has 2"
    with pytest.raises(ValueError, match=says):
        bert.encode("a", truncation=most)
    with pytest.raises(ValueError, match=says):
        bert.encode_batch(["a"], truncation=most)


def test_what_the_file_says_is_done_where_it_is_asked_for(bert, saying):
    truncation = {"direction": "Left", "max_length": 2, "strategy": "LongestFirst", "stride": 1}
    tok = saying(truncation=truncation, padding=PADDING)
    assert tok.truncation == dpdk_tokd.Truncation(2, "left", 1)
    assert tok.padding == dpdk_tokd.Padding(6, "left", 4, AA)
    assert tok.checksum == bert.checksum
    assert tok.encode("a b c").tolist() == [A, B, C]
    assert tok.encode("a b c", truncation=True).tolist() == [B, C]
    assert tok.encode("a b c", truncation=1).tolist() == [C]
    assert tok.encode("a b c", truncation=True, truncation_side="right").tolist() == [A, B]
    got = tok.encode_batch(["a b c"], truncation=True, padding=True)
    assert got.ids.tolist() == [[AA] * 6 + [B, C]]
    assert got.mask.tolist() == [[0] * 6 + [1, 1]]
    assert bert.truncation is None and bert.padding is None
    with pytest.raises(
        ValueError, match=r"nor a tokenizer_config\.json beside it says to how many"
    ):
        bert.encode("a", truncation=True)
    with pytest.raises(ValueError, match="OnlySecond"):
        saying(truncation=truncation | {"strategy": "OnlySecond"}).encode("a", truncation=True)


def test_else_what_the_configuration_beside_it_says(saying, tmp_path):
    config = {"model_max_length": 2, "truncation_side": "left", "padding_side": "left"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = saying()
    assert tok.truncation is None
    assert tok("a b c").tolist() == [A, B, C]
    for most in (True, 2):
        assert tok("a b c", truncation=most).tolist() == [B, C]
        assert tok("a b c", truncation_side="right", truncation=most).tolist() == [A, B]
        assert tok(["a b c"], truncation=most).tolist() == [[B, C]]
    assert tok(["a", "b c"], padding=True, pad_id=PAD).ids.tolist() == [[PAD, A], [B, C]]
    truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    assert saying(truncation=truncation)("a b c", truncation=True).tolist() == [A]
    (tmp_path / "tokenizer_config.json").write_text('{"truncation_side": "up"}')
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: truncation_side: 'up'"):
        saying()("a", truncation=2)


def test_a_batch_is_one_array_and_views_of_it(bert):
    batch = bert.encode_batch(TEXTS)
    assert batch.ids.dtype == np.uint32 and batch.splits.dtype == np.int64
    assert batch.splits.tolist() == [0, 6, 8, 11, 15]
    assert batch.lengths.tolist() == [6, 2, 3, 4]
    assert len(batch) == 4
    assert [ids.tolist() for ids in batch] == [bert.encode(t).tolist() for t in TEXTS]
    assert batch[-1].tolist() == [CLS, B, C, SEP] and np.shares_memory(batch[-1], batch.ids)
    for i in (4, -5):
        with pytest.raises(IndexError):
            batch[i]


def test_a_batch_may_be_empty_and_texts_of_any_kind(bert):
    empty = bert.encode_batch([])
    assert len(empty) == 0 and empty.splits.tolist() == [0] and [*empty] == []
    assert bert.encode_batch([], padding=True).ids.shape == (0, 0)
    kinds = ["a", b"a", bytearray(b"a"), memoryview(b"a"), np.frombuffer(b"a", np.uint8)]
    want = [CLS, A, SEP] * len(kinds)
    assert bert.encode_batch(kinds).ids.tolist() == want
    assert bert.encode_batch(kind for kind in kinds).ids.tolist() == want


def test_padding(bert):
    rows = [[CLS, A, B, C, D, SEP], [CLS, SEP], [CLS, A, SEP], [CLS, B, C, SEP]]
    for padding, multiple, width in ((True, None, 6), ("longest", 4, 8), (7, None, 7), (7, 5, 10)):
        for side in ("right", "left"):
            got = bert.encode_batch(
                TEXTS, padding=padding, pad_to_multiple_of=multiple, padding_side=side
            )
            pads = [[PAD] * (width - len(row)) for row in rows]
            want = [r + p if side == "right" else p + r for r, p in zip(rows, pads, strict=True)]
            ones = [[1] * len(r) for r in rows]
            zeros = [[0] * len(p) for p in pads]
            mask = [r + p if side == "right" else p + r for r, p in zip(ones, zeros, strict=True)]
            assert got.ids.dtype == np.uint32 and got.mask.dtype == np.uint8
            assert got.ids.tolist() == want and got.mask.tolist() == mask
    assert bert.encode_batch(["a", ""], padding=True, pad_id=9).ids.tolist()[1] == [CLS, SEP, 9]


def test_padding_that_cannot_be_is_refused(bert, gpt2):
    with pytest.raises(ValueError, match="text 0 has 6 ids, more than the 5 to pad to"):
        bert.encode_batch(TEXTS, padding=5)
    with pytest.raises(ValueError, match="pass pad_id"):
        gpt2.encode_batch(["a"], padding=True)


LENGTH = "a number from 0 to 2147483647"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"padding": "max_length"}, f"padding: 'max_length': expected True, False, .* or {LENGTH}"),
        ({"padding": None}, "padding: None: expected"),
        ({"padding": 1.5}, "padding: 1.5: expected"),
        ({"padding": -1}, f"padding: -1: .*{LENGTH}"),
        ({"padding": 2**40}, f"padding: {2**40}: .*{LENGTH}"),
        ({"padding_side": "x"}, 'padding_side: \'x\': expected "left" or "right"'),
        ({"padding_side": ""}, "padding_side: '': expected"),
        ({"pad_to_multiple_of": -4}, f"pad_to_multiple_of: -4: expected {LENGTH}"),
        ({"pad_to_multiple_of": 2**31}, f"pad_to_multiple_of: {2**31}: expected {LENGTH}"),
        ({"pad_id": -1}, "pad_id: -1: expected a number from 0 to 4294967295"),
        ({"pad_id": 2**32}, f"pad_id: {2**32}: expected"),
        ({"truncation": 2**70}, f"truncation: {2**70}: expected True, False or {LENGTH}"),
        ({"truncation": "longest_first"}, "truncation: 'longest_first': expected True"),
        ({"truncation_side": "top"}, 'truncation_side: \'top\': expected "left" or "right"'),
    ],
)
def test_an_argument_that_cannot_be_is_named_with_what_could(bert, arguments, says):
    with pytest.raises(ValueError, match=f"^{says}"):
        bert.encode_batch(["a"], **{"padding": True} | arguments)
    if "trunc" in next(iter(arguments)):
        with pytest.raises(ValueError, match=f"^{says}"):
            bert.encode("a", **arguments)


def test_a_batch_names_its_own_arguments(bert):
    batch = bert.encode_batch(["a"])
    for arguments, says in (
        ({"side": "x"}, "side: 'x'"),
        ({"length": -1}, "length: -1"),
        ({"length": 2**31}, "length: 2147483648"),
        ({"multiple_of": -1}, "multiple_of: -1"),
        ({"pad_id": 2**32}, "pad_id: 4294967296"),
    ):
        with pytest.raises(ValueError, match=f"^{says}: expected"):
            batch.padded(**{"pad_id": 0} | arguments)


def test_numbers_of_numpy_are_numbers(bert):
    got = bert.encode_batch(
        ["a b"], truncation=np.int64(3), padding=np.uint8(4), pad_id=np.uint32(2**32 - 1)
    )
    assert got.ids.tolist() == [[CLS, A, SEP, 2**32 - 1]]


def test_the_text_that_is_wrong_is_named(gpt2, gpt2_file):
    strict = dpdk_tokd.Tokenizer.load(str(gpt2_file), strict_utf8=True)
    texts: list[bytes | str] = [b"some text of many words " * 50] * 4000
    texts[3900] = texts[2500] = b"ab\xff"
    for threads in (1, 2, 8):
        for _ in range(5):
            with pytest.raises(ValueError, match=r"text 2500: .* \(after 2 bytes\)"):
                strict.encode_batch(texts, threads=threads)
    assert strict.encode_batch(texts[:2500]).lengths.max() > 100
    with pytest.raises(UnicodeEncodeError):
        gpt2.encode_batch(["a", "\ud800"])
    for wrong in ([1], [None], 5, [["a"]]):
        with pytest.raises(TypeError):
            gpt2.encode_batch(wrong)
    for one in ("text", b"text", bytearray(b"text")):
        with pytest.raises(TypeError, match="expected a list of texts"):
            gpt2.encode_batch(one)
    for threads in (0, -1, 65):
        with pytest.raises(
            ValueError, match=f"^threads: {threads}: expected a number from 1 to 64$"
        ):
            gpt2.encode_batch([], threads=threads)


def test_a_buffer_is_let_go_of(gpt2):
    buffers = [bytearray(b"some text"), bytearray(b"more")]
    gpt2.encode_batch(buffers)
    with pytest.raises(TypeError):
        gpt2.encode_batch([*buffers, 5])
    for buffer in buffers:
        buffer.append(1)  # BufferError where it is still held


def test_other_threads_run_meanwhile(gpt2):
    """Which they could not if a batch kept the GIL."""
    texts, beats, done = [b"The quick brown fox. " * 50_000] * 20, [], threading.Event()

    def beat() -> None:
        while not done.wait(0.001):
            beats.append(1)

    thread = threading.Thread(target=beat)
    thread.start()
    gpt2.encode_batch(texts, threads=1)
    during = len(beats)
    done.set()
    thread.join()
    assert during >= 5


def test_special_tokens(bert, gpt2):
    assert bert.special_tokens == {"[UNK]": UNK, "[PAD]": PAD, "[CLS]": CLS, "[SEP]": SEP}
    assert gpt2.special_tokens == {"<|endoftext|>": 50256}
    ids = bert.encode("a b")
    assert bert.decode(ids) == "[CLS] a b [SEP]"
    assert bert.decode(ids, skip_special_tokens=True) == "a b"
    assert gpt2.decode([50256, 0], skip_special_tokens=True) == "!"


def test_tokens_and_their_ids(bert, gpt2):
    assert gpt2.token_to_id(" the") == gpt2.token_to_id(b" the") == 262
    assert gpt2.id_to_token(262) == b" the"
    assert gpt2.token_to_id("<|endoftext|>") == 50256
    assert gpt2.token_to_id("Ġthe") is None
    assert gpt2.id_to_token(gpt2.vocab_size) is None
    assert bert.token_to_id("##a") == AA
    assert all(gpt2.token_to_id(gpt2.token(id)) == id for id in range(gpt2.vocab_size))
