# SPDX-License-Identifier: BSD-3-Clause
"""Ids as tensors of PyTorch, in the memory where they are."""

from pathlib import Path

import dpdk_tokd
import pytest

torch = pytest.importorskip("torch", reason="pip install torch")

TEXTS = ["one two three", "", "four"]


@pytest.fixture(scope="module")
def tok(tmp_path_factory) -> dpdk_tokd.Tokenizer:
    path: Path = tmp_path_factory.mktemp("bert") / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\none\ntwo\nthree\nfour")
    return dpdk_tokd.Tokenizer.load(path)


@pytest.mark.parametrize(
    ("dtype", "becomes"),
    [("uint32", torch.int32), ("int32", torch.int32), ("int64", torch.int64)],
)
def test_tensors_have_the_arrays_memory(tok, dtype: str, becomes: torch.dtype) -> None:
    batch = tok.encode_batch(TEXTS, dtype=dtype)
    ids, splits = batch.to_torch()
    assert (ids.dtype, splits.dtype) == (becomes, torch.int64)
    assert (ids.data_ptr(), splits.data_ptr()) == (batch.ids.ctypes.data, batch.splits.ctypes.data)
    assert ids.tolist() == batch.ids.tolist() and splits.tolist() == batch.splits.tolist()
    rows = tok.encode_batch(TEXTS, dtype=dtype, padding=True)
    ids, mask = rows.to_torch()
    assert (ids.data_ptr(), mask.data_ptr()) == (rows.ids.ctypes.data, rows.mask.ctypes.data)
    assert ids.tolist() == rows.ids.tolist() and mask.tolist() == rows.mask.tolist()
    assert torch.nn.Embedding(8, 2)(ids).shape == (3, 5, 2)
    del rows, batch
    assert ids.tolist()[2] == [2, 7, 3, 0, 0]  # the tensor keeps it


def test_a_batch_is_padded_on_its_way(tok) -> None:
    batch = tok.encode_batch(TEXTS, add_special_tokens=False)
    ids, mask = batch.to_torch(padding="longest", pad_id=0, side="left", multiple_of=4)
    assert ids.tolist() == [[0, 4, 5, 6], [0, 0, 0, 0], [0, 0, 0, 7]]
    assert mask.tolist() == [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert batch.to_torch(padding=3, pad_id=1)[0].tolist()[2] == [7, 1, 1]
    with pytest.raises(ValueError, match="^pad_id: give the id"):
        batch.to_torch(padding=3)
    with pytest.raises(ValueError, match="nothing is padded: give padding"):
        batch.to_torch(pad_id=0)
    empty, splits = tok.encode_batch([]).to_torch()
    assert empty.shape == (0,) and splits.tolist() == [0]
    assert batch[2:].to_torch()[0].tolist() == [7]
