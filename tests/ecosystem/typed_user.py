# SPDX-License-Identifier: BSD-3-Clause
# pyright: strict
"""A user's program: checked, not run. Each name has the type that it should."""

from collections import Counter
from pathlib import Path
from typing import Any, assert_type

import dpdk_tokd
import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]
Some = npt.NDArray[Any]  # of the dtype that was asked for


def local(texts: list[str], either: bool, length: int) -> None:
    tok = dpdk_tokd.Tokenizer.load("gpt2")
    assert_type(tok, dpdk_tokd.Tokenizer)
    ids = tok.encode(texts[0], add_special_tokens=False)
    assert_type(ids, Ids)
    ids, offsets = tok.encode(texts[0], return_offsets=True)
    assert_type(ids, Ids)
    assert_type(offsets, npt.NDArray[np.uint64])
    batch = tok.encode_batch(texts)
    assert_type(batch, dpdk_tokd.Batch)
    assert_type(batch.tolist(), list[list[int]])
    padded = tok.encode_batch(texts, truncation=512, padding="longest", pad_id=0)
    assert_type(padded, dpdk_tokd.Padded)
    assert_type(tok.encode_batch(texts, padding=True), dpdk_tokd.Padded)
    assert_type(tok.encode_batch(texts, padding=False), dpdk_tokd.Batch)
    assert_type(tok.encode_batch(texts, padding=length), dpdk_tokd.Padded)
    assert_type(tok.encode_batch(texts, padding=either), dpdk_tokd.Batch | dpdk_tokd.Padded)
    with tok.stream() as stream:
        assert_type(stream, dpdk_tokd.Stream)
        assert_type(stream.feed("Hel"), Some)
    for part in tok.stream(texts):
        assert_type(part, Some)
    said = [{"role": "user", "content": texts[0]}]
    assert_type(tok.apply_chat_template(said), Some)
    assert_type(tok.apply_chat_template(said, tokenize=False), str)
    assert_type(tok.apply_chat_template([said, said]), dpdk_tokd.Batch)
    assert_type(tok.block_keys(ids, "llm-d"), Some)
    assert_type(tok.as_hf().encode(texts[0]).offsets, list[tuple[int, int]])
    assert_type(tok.info.n_ids, int)
    assert_type(tok.token_to_id(" the"), int | None)
    assert_type(dpdk_tokd.__version__, str)
    assert_type(dpdk_tokd.hf.fallbacks, Counter[str])
    assert callable(dpdk_tokd.bulk.encode_files)
    print(dpdk_tokd.Tokeniser)  # type: ignore[attr-defined] # pyright: ignore


def served(path: Path) -> None:
    with dpdk_tokd.Client("tokenizer.example") as client:
        assert_type(client.tokenize("Hello"), Ids)
    with dpdk_tokd.RingReader(str(path)) as ring:
        for part in ring:
            print(part.stream_id, part.first, part.tokens, part.last)
