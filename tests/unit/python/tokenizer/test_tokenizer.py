# SPDX-License-Identifier: BSD-3-Clause
"""Tokenizer: ids and text, files and their errors. tests/golden compares many more texts with the
reference, however they are cut."""

import filecmp
import os
import pickle
import random
import shutil
from pathlib import Path

import dpdk_tokd
import numpy as np
import pytest
from dpdk_tokd.tokenizer.decode import kept_but, without
from samples import TEXTS, random_bytes


@pytest.fixture(scope="session")
def expected(gpt2_reference):
    """Ids of bytes, which the reference takes only as text; special tokens count as by default."""
    reference = type(gpt2_reference).from_str(gpt2_reference.to_str())

    def encode(text: bytes) -> list[int]:
        decoded = text.decode("utf-8", "replace")
        return reference.encode(decoded, add_special_tokens=False).ids

    return encode


@pytest.mark.parametrize("name", TEXTS)
def test_ids_equal_the_reference(gpt2, expected, name):
    ids = gpt2.encode(TEXTS[name])
    assert ids.dtype == np.uint32 and ids.ndim == 1
    assert ids.tolist() == expected(TEXTS[name])


def test_a_folder_whose_name_is_not_utf8(gpt2, gpt2_file, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    copy = Path(shutil.copy(gpt2_file, folder / f"own{gpt2_file.suffix}"))
    for tok in (
        dpdk_tokd.Tokenizer.load(copy),
        dpdk_tokd.Tokenizer.load("own", search_path=folder),
        pickle.loads(pickle.dumps(dpdk_tokd.Tokenizer.load(copy))),
    ):
        assert tok == gpt2 and tok.info.path == str(copy)
    with pytest.raises(ValueError, match=r"caf.*/none"):
        dpdk_tokd.Tokenizer.load(folder / "none")
    with pytest.raises(ValueError, match="null byte"):
        dpdk_tokd.Tokenizer.load("gpt2\0")


@pytest.mark.parametrize("pretty", [False, True])
def test_what_the_reference_wrote_is_written_alike(gpt2_reference, tmp_path, pretty):
    (tmp_path / "tokenizer.json").write_text(gpt2_reference.to_str())
    ours = dpdk_tokd.as_hf(dpdk_tokd.Tokenizer.load(tmp_path / "tokenizer.json"))
    equal = ours.to_str(pretty) == gpt2_reference.to_str(pretty)
    assert equal  # pytest would look for the difference for minutes
    ours.save(str(tmp_path / "ours"), pretty)
    gpt2_reference.save(str(tmp_path / "theirs"), pretty)
    assert filecmp.cmp(tmp_path / "ours", tmp_path / "theirs", shallow=False)


@pytest.mark.parametrize("seed", range(20))
def test_ids_of_random_bytes_equal_the_reference(gpt2, expected, seed):
    text = random_bytes(random.Random(seed), 500)
    assert gpt2.encode(text).tolist() == expected(text)


def test_ids_come_before_the_text_ends(gpt2):
    stream = gpt2.stream()
    first = stream.feed(b"The quick brown fox jumps over the lazy dog. Then")
    assert len(first) >= 9
    assert stream.waiting <= 8


def test_finish_ends_a_stream(gpt2):
    stream = gpt2.stream()
    stream.feed(b"over")
    stream.finish()
    with pytest.raises(ValueError, match="the stream has ended"):
        stream.feed(b"again")


def test_strict_utf8_refuses_what_is_not_utf8(gpt2, gpt2_file):
    strict = dpdk_tokd.Tokenizer.load(str(gpt2_file), strict_utf8=True)
    assert strict.encode("naïve").tolist() == gpt2.encode("naïve").tolist()
    for bad in (b"ab\xff", b"\xe2\x82", b"\xed\xa0\x80"):
        with pytest.raises(ValueError, match="UTF-8"):
            strict.encode(bad)
    stream = strict.stream()
    with pytest.raises(ValueError, match="UTF-8"):
        stream.feed(b"a\xc3\x28")
        stream.finish()


@pytest.mark.parametrize("name", TEXTS)
def test_decode_stream_gives_whole_characters(gpt2, name):
    text = TEXTS[name].decode("utf-8", "replace")
    stream = gpt2.decode_stream()
    out = ""
    for id in gpt2.encode(text):
        out += stream.feed([id])
        assert text.startswith(out)  # never part of a character
    assert out + stream.finish() == text


@pytest.mark.parametrize("skip", [False, True])
def test_a_decode_stream_gives_what_decode_gives(gpt2, skip):
    """Of ids at random, which are no UTF-8, cut at random."""
    rng = random.Random(3)
    few = [*range(200), gpt2.special_tokens["<|endoftext|>"]]
    for _ in range(2000):
        ids = rng.choices(few, k=rng.randint(1, 12))
        stream, parts = gpt2.decode_stream(skip_special_tokens=skip), []
        while ids:
            n = rng.randint(1, 4)
            parts.append((ids[:n], stream.feed(ids[:n])))
            ids = ids[n:]
        whole = [id for some, _ in parts for id in some]
        assert "".join(text for _, text in parts) + stream.finish() == gpt2.decode(
            whole, skip_special_tokens=skip
        )


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("beyond", [0, 5, 1 << 31])
def test_decode_names_an_unknown_id(gpt2, beyond, skip):
    unknown = gpt2.vocab_size + beyond
    stream = gpt2.decode_stream(skip_special_tokens=skip)
    for decode in (lambda ids: gpt2.decode(ids, skip_special_tokens=skip), stream.feed):
        with pytest.raises(ValueError, match=f"id {unknown} at index 1"):
            decode([1, unknown])


def test_special_ids_are_left_out_wherever_they_are():
    rng = np.random.default_rng(1)
    for special in ([], [0], [7], [0, 3, 4, 9]):
        special = np.array(special, np.uint32)
        ids = rng.choice(np.array([*range(12), 2**31, 2**32 - 1], np.uint32), 500)
        want = [id for id in ids.tolist() if id not in special.tolist()]
        assert without(ids, kept_but(special)).tolist() == want


@pytest.mark.parametrize("ids", [[-1], [1 << 32], np.array([1.0]), np.zeros((2, 2), np.uint32)])
def test_decode_refuses_what_are_no_ids(gpt2, ids):
    with pytest.raises(ValueError, match="ids: "):
        gpt2.decode(ids)


def test_decode_takes_any_integer_type(gpt2):
    ids = gpt2.encode("Some text of a few words")
    for kind in (np.int32, np.int64, np.uint64):
        assert gpt2.decode(ids.astype(kind)) == "Some text of a few words"
    assert gpt2.decode(np.repeat(ids, 2)[::2]) == "Some text of a few words"
    message = b"a head" + ids.tobytes()
    assert gpt2.decode(np.frombuffer(message, np.uint32, offset=6)) == "Some text of a few words"
    misaligned = np.frombuffer(b"?" + message, np.uint32, offset=7)
    assert gpt2.decode(misaligned) == "Some text of a few words"


def test_token_gives_the_bytes_of_one_id(gpt2, gpt2_reference):
    assert gpt2.token(gpt2_reference.token_to_id("Ġthe")) == b" the"
    with pytest.raises(KeyError):
        gpt2.token(gpt2.vocab_size)


def test_info_says_what_was_loaded(gpt2, gpt2_file, gpt2_reference):
    assert gpt2.vocab_size == gpt2.info.n_ids
    assert gpt2.vocab_size >= gpt2_reference.get_vocab_size()
    assert gpt2.checksum == gpt2.info.checksum != 0
    assert gpt2.info.path == str(gpt2_file)
    assert gpt2.info.pretokenizer == "gpt2"
    assert gpt2.info.table_bytes > 0


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"model": {"type": "Unigram"}}'])
def test_a_bad_vocabulary_is_refused_by_name(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="tokenizer.json"):
        dpdk_tokd.Tokenizer.load(str(path))


def test_a_model_file_may_have_ranks(gpt2, gpt2_file, tmp_path):
    """As those of Llama 3 and Kimi-K2."""
    (tmp_path / "tokenizer.model").symlink_to(gpt2_file)
    own = dpdk_tokd.Tokenizer.load(tmp_path)
    assert own == gpt2 and own.info.format == "tiktoken"
    ranks = gpt2_file.read_text().splitlines(keepends=True)
    (tmp_path / "tiktoken.model").write_text("".join(ranks[:1000]))
    with pytest.raises(
        ValueError, match=r'tiktoken.model": a \.tiktoken file does not name its pre'
    ):
        dpdk_tokd.Tokenizer.load(tmp_path / "tiktoken.model")


def test_a_missing_vocabulary_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="nowhere"):
        dpdk_tokd.Tokenizer.load("nowhere", search_path=str(tmp_path))
