# SPDX-License-Identifier: BSD-3-Clause
"""Tokenizer: ids are the reference's, however the text was cut."""

from __future__ import annotations

import filecmp
import os
import pickle
import random
import shutil
import threading
import zlib
from pathlib import Path

import dpdk_tokd
import numpy as np
import pytest
from dpdk_tokd.tokenizer.decode import kept_but, without
from samples import TEXTS, documents, random_bytes, random_unicode


@pytest.fixture(scope="session")
def expected(gpt2_reference):
    """Ids of bytes, which the reference takes only as text; special tokens count as by default."""
    reference = type(gpt2_reference).from_str(gpt2_reference.to_str())

    def encode(text: bytes) -> list[int]:
        decoded = text.decode("utf-8", "replace")
        return reference.encode(decoded, add_special_tokens=False).ids

    return encode


def feed_all(stream: dpdk_tokd.Stream, pieces: list[bytes]) -> list[int]:
    return np.concatenate([*map(stream.feed, pieces), stream.finish()]).tolist()


def random_cuts(rng: random.Random, text: bytes, n: int) -> list[bytes]:
    cuts = sorted(rng.randint(0, len(text)) for _ in range(n))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("name", TEXTS)
def test_ids_equal_the_reference(gpt2, expected, name):
    ids = gpt2.encode(TEXTS[name])
    assert ids.dtype == np.uint32 and ids.ndim == 1
    assert ids.tolist() == expected(TEXTS[name])


def test_ids_of_real_text_equal_the_reference(gpt2, expected):
    assert gpt2.encode(documents()).tolist() == expected(documents())


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
def test_ids_of_random_unicode_equal_the_reference(gpt2, expected, seed):
    text = random_unicode(random.Random(seed), 500)
    assert gpt2.encode(text).tolist() == expected(text.encode())


@pytest.mark.parametrize("seed", range(20))
def test_ids_of_random_bytes_equal_the_reference(gpt2, expected, seed):
    text = random_bytes(random.Random(seed), 500)
    assert gpt2.encode(text).tolist() == expected(text)


@pytest.mark.parametrize("name", TEXTS)
def test_every_split_in_two_gives_the_same_ids(gpt2, expected, name):
    text = TEXTS[name]
    whole = expected(text)
    for cut in range(len(text) + 1):
        assert feed_all(gpt2.stream(), [text[:cut], text[cut:]]) == whole, cut


@pytest.mark.parametrize("name", [n for n in TEXTS if len(TEXTS[n]) <= 45])
def test_every_split_in_three_gives_the_same_ids(gpt2, expected, name):
    text = TEXTS[name]
    whole = expected(text)
    for a in range(len(text) + 1):
        for b in range(a, len(text) + 1):
            pieces = [text[:a], text[a:b], text[b:]]
            assert feed_all(gpt2.stream(), pieces) == whole, (a, b)


@pytest.mark.parametrize("name", TEXTS)
def test_one_byte_at_a_time_gives_the_same_ids(gpt2, expected, name):
    text = TEXTS[name]
    pieces = [text[i : i + 1] for i in range(len(text))]
    assert feed_all(gpt2.stream(), pieces) == expected(text)


@pytest.mark.parametrize("seed", range(10))
def test_random_splits_of_long_text_give_the_same_ids(gpt2, seed):
    rng = random.Random(seed)
    text = documents()
    whole = gpt2.encode(text).tolist()
    pieces = random_cuts(rng, text, rng.choice([3, 100, 5000]))
    assert feed_all(gpt2.stream(), pieces) == whole


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


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.array, str])
def test_text_may_be_any_buffer_or_str(gpt2, expected, kind):
    text = b"any buffer holds text"
    if kind is str:
        given = text.decode()
    elif kind is np.array:
        given = np.frombuffer(text, np.uint8)
    else:
        given = kind(text)
    assert gpt2.encode(given).tolist() == expected(text)


def test_str_with_surrogate_is_a_clear_error(gpt2):
    with pytest.raises(UnicodeEncodeError, match="position 3.*surrogates not allowed"):
        gpt2.encode("abc\ud800")


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
def test_decode_gives_the_text_back(gpt2, name):
    text = TEXTS[name].decode("utf-8", "replace").encode()
    ids = gpt2.encode(text)
    assert gpt2.decode(ids) == gpt2.decode(ids.tolist()) == text.decode()
    assert gpt2.decode_bytes(ids) == gpt2.decode_bytes(ids.tolist()) == text


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


def test_threads_share_a_tokenizer(gpt2):
    texts = [documents()[i * 9000 :][:9000] for i in range(8)]
    want = [zlib.crc32(gpt2.encode(text)) for text in texts]
    wrong = []

    def work(i: int) -> None:
        for _ in range(30):
            if zlib.crc32(gpt2.encode(texts[i])) != want[i]:
                wrong.append(i)
            if zlib.crc32(np.array(feed_all(gpt2.stream(), [texts[i]]), np.uint32)) != want[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
