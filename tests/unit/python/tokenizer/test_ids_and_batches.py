# SPDX-License-Identifier: BSD-3-Clause
"""The type of ids that is asked for, and parts of a Batch."""

import json

import dpdk_tokd
import numpy as np
import pytest
from dpdk_tokd._native import libtok
from samples import documents

TYPES = ("uint32", np.uint32, np.int32, "int64", np.dtype(np.int64), np.longlong)
LONG = documents()[:100_000].decode("utf-8", "replace") * 8  # whose ids have memory of their own


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("text", ["", "a", "naïve 中文", LONG], ids=["none", "a", "some", "long"])
def test_ids_have_the_type_that_is_asked_for(gpt2, dtype, text: str) -> None:
    want = gpt2.encode(text).tolist()
    ids = gpt2.encode(text, dtype=dtype)
    assert ids.dtype == np.dtype(dtype) and ids.tolist() == want
    assert ids.flags.writeable and ids.flags.c_contiguous
    ids, offsets = gpt2.encode(text, dtype=dtype, return_offsets=True)
    assert ids.dtype == np.dtype(dtype) and len(offsets) == len(want)
    for texts in ([text], [text, "b", ""]):
        batch = gpt2.encode_batch(texts, dtype=dtype)
        assert batch.ids.dtype == np.dtype(dtype) and batch.tolist()[0] == want
    stream = gpt2.stream(dtype=dtype)
    parts = [stream.feed(text), stream.finish()]
    assert {part.dtype for part in parts} == {np.dtype(dtype)}
    assert np.concatenate(parts).tolist() == want
    assert gpt2.decode(ids) == text


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_have_it_too(gpt2, dtype) -> None:
    rows = gpt2.encode_batch(["one two", "three"], dtype=dtype, padding=True, pad_id=7)
    assert rows.ids.dtype == np.dtype(dtype) and rows.ids.tolist() == [[505, 734], [15542, 7]]
    most = int(np.iinfo(dtype).max)
    with pytest.raises(ValueError, match=f"^pad_id: {2**70}: expected a number from 0 to"):
        gpt2.encode_batch(["a"], dtype=dtype, padding=True, pad_id=2**70)
    batch = gpt2.encode_batch(["a"], dtype=dtype)
    assert batch.padded(2, pad_id=most).ids[0, 1] == most
    with pytest.raises(ValueError, match=f"^pad_id: {most + 1}: expected .* to {most}"):
        batch.padded(2, pad_id=most + 1)


@pytest.mark.parametrize("dtype", [None, "uint64", "int16", float, ">i4", "words", 5, object()])
def test_other_types_are_refused(gpt2, dtype) -> None:
    for call in (gpt2.encode, gpt2.encode_batch, lambda _, **how: gpt2.stream(**how)):
        with pytest.raises(ValueError, match=r"^dtype: .*: expected uint32, int32 or int64$"):
            call(["a"], dtype=dtype)


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_a_slice_of_a_batch_is_a_batch(gpt2, dtype) -> None:
    texts = ["one two", "", "three four five", "six", "", "seven"]
    batch = gpt2.encode_batch(texts, dtype=dtype)
    want = [gpt2.encode(text).tolist() for text in texts]
    ends = (None, 0, 1, 3, 6, 9, -1, -4)
    for part in (slice(a, b, c) for a in ends for b in ends for c in (None, 1, 2, 3, -1, -2)):
        got = batch[part]
        assert isinstance(got, dpdk_tokd.Batch) and len(got) == len(want[part])
        assert got.tolist() == [ids.tolist() for ids in got] == want[part], part
        assert got.ids.dtype == batch.ids.dtype and got.splits[0] == 0
        assert got.lengths.tolist() == [len(ids) for ids in want[part]]
    assert np.shares_memory(batch[2:4].ids, batch.ids)
    assert batch[1:][1:][0].tolist() == want[2]
    with pytest.raises(IndexError, match="text 6 of a batch of 6"):
        batch[6]
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        batch["one"]


def test_calling_a_tokenizer_encodes(gpt2) -> None:
    want = gpt2.encode("one two").tolist()
    for text in ("one two", b"one two", bytearray(b"one two")):
        assert gpt2(text).tolist() == want
    for texts in (["one two", "a"], ("one two", "a"), iter(["one two", "a"])):
        assert gpt2(texts).tolist() == [want, [64]]
    assert gpt2(["one two", "a"], padding=True, pad_id=0).ids.tolist() == [want, [64, 0]]
    assert gpt2("one two", truncation=1, dtype="int64").tolist() == want[:1]
    with pytest.raises(TypeError, match="^text: expected str, .* got int$"):
        gpt2(5)


def test_a_number_of_numpy_is_no_text(gpt2) -> None:
    """Though it is memory as well."""
    with pytest.raises(TypeError, match=r"got uint8 with 0 dimensions"):
        gpt2.encode(np.uint8(65))
    with pytest.raises(TypeError, match=r"^text 0: .*got uint8 with 0 dimensions"):
        gpt2.encode_batch(np.array([65, 66], np.uint8))


def test_ids_become_an_array_of_json() -> None:
    edges = {n for e in range(10) for n in (10**e - 1, 10**e, 37 * 10**e) if n < 2**32}
    for ids in ([], [7], [*sorted(edges), 2**32 - 1]):
        made = libtok.json_ids(np.array(ids, np.uint32))
        assert made == json.dumps(ids, separators=(",", ":")).encode()
