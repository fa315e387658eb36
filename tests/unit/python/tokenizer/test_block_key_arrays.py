# SPDX-License-Identifier: BSD-3-Clause
"""Tokenizer.block_keys: what it takes, what it returns, what it refuses."""

from typing import Any

import numpy as np
import pytest
from dpdk_tokd import Tokenizer

block_keys = Tokenizer.block_keys
SHAPES = {
    "llm-d": ((3,), np.uint64),
    "vllm-sha256-cbor": ((3, 32), np.uint8),
    "vllm-xxhash-cbor": ((3, 16), np.uint8),
}


@pytest.mark.parametrize("scheme", SHAPES)
def test_keys_are_an_array_of_the_callers(scheme: Any) -> None:
    shape, dtype = SHAPES[scheme]
    keys = block_keys(range(50), scheme, seed="0")
    assert (keys.shape, keys.dtype) == (shape, dtype)
    assert keys.flags.owndata and keys.flags.writeable and keys.flags.c_contiguous
    none = block_keys(range(15), scheme, seed="0")
    assert (none.shape, none.dtype) == ((0, *shape[1:]), dtype)
    assert block_keys([], scheme, seed="0").shape == (0, *shape[1:])


def test_ids_are_of_any_integer_type() -> None:
    expected = block_keys(list(range(64)), "llm-d").tolist()
    for dtype in ("uint32", "int32", "int64", "uint16", "uint8", ">i4"):
        assert block_keys(np.arange(64, dtype=dtype), "llm-d").tolist() == expected
    assert block_keys(np.arange(128)[::2] // 2, "llm-d").tolist() == expected
    assert block_keys(np.arange(9000), "llm-d")[:4].tolist() == expected  # without the GIL


def test_seed_model_and_salt_count_where_the_scheme_hashes_them() -> None:
    def of(scheme: Any, **how: Any) -> bytes:
        return block_keys(range(32), scheme, **how).tobytes()

    assert of("llm-d") == of("llm-d", seed="") != of("llm-d", seed="0")
    assert of("llm-d", model="m") != of("llm-d") == of("llm-d", cache_salt="")
    sha = "vllm-sha256-cbor"
    assert of(sha) == of(sha, seed="vllm-none-hash") != of(sha, seed="")
    assert of(sha) == of(sha, model="m") == of(sha, cache_salt="")
    assert of(sha) != of(sha, cache_salt="salt")
    assert of(sha) != of(sha, block_size=8)[:64]


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"block_size": 0}, ValueError, "block_size: 0: expected a number from 1 to 1048576"),
        ({"block_size": -1}, ValueError, "block_size: -1"),
        ({"block_size": 2**70}, ValueError, "block_size: 1180591620717411303424"),
        ({"block_size": "16"}, ValueError, "block_size: '16'"),
        ({"ids": [0, -1]}, ValueError, "ids: -1 is not an unsigned 32-bit number"),
        ({"ids": [2**32]}, ValueError, "ids: 4294967296 is not"),
        ({"ids": [1.5]}, ValueError, "ids: expected a flat sequence of integers"),
        ({"ids": [[1, 2]]}, ValueError, "ids: expected a flat sequence of integers"),
        ({"scheme": "sha256"}, ValueError, 'scheme: \'sha256\': expected "llm-d", "vllm-sha256'),
        ({"scheme": None}, ValueError, "scheme: None"),
        ({"scheme": "vllm-xxhash-cbor"}, ValueError, "seed: vllm-xxhash-cbor needs one"),
        ({"cache_salt": "x"}, ValueError, "cache_salt: llm-d hashes none"),
        ({"seed": 0}, TypeError, "seed: expected a str, got int"),
        ({"model": b"m"}, TypeError, "model: expected a str, got bytes"),
        ({"model": "\ud800"}, UnicodeEncodeError, "surrogates"),
        ({"seed": "x" * 65536}, ValueError, "seed: longer than 65535 bytes"),
        ({"lora_name": "a"}, TypeError, "lora_name"),
    ],
)
def test_what_is_wrong_is_named(how: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        block_keys(**{"ids": [1, 2], "scheme": "llm-d", **how})
    assert message in str(raised.value)
