# SPDX-License-Identifier: BSD-3-Clause
"""Keys of blocks are those of cbor2, hashlib and xxhash, put together as llm-d and vLLM do, and
those that vLLM's own code gave (tools/gen/vllm-block-keys).

TOK_GOLDEN_BLOCKS=1000000 compares so many random blocks of each scheme, within two minutes of a CPU
in all."""

import hashlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

cbor2 = pytest.importorskip("cbor2", reason="pip install cbor2")
xxhash = pytest.importorskip("xxhash", reason="pip install xxhash")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

BLOCKS = int(os.environ.get("TOK_GOLDEN_BLOCKS", "3000"))
SCHEMES = {"llm-d": np.uint64, "vllm-sha256-cbor": np.uint8, "vllm-xxhash-cbor": np.uint8}
EDGES = (0, 23, 24, 255, 256, 65535, 65536, 2**31, 2**32 - 1)

block_keys = dpdk_tokd.Tokenizer.block_keys


def fnv_64a(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & (2**64 - 1)
    return h


def cbor(value: object) -> bytes:
    data: bytes = cbor2.dumps(value, canonical=True)
    return data


def reference(
    ids: list[int], scheme: str, size: int, seed: str | None, model: str, salt: str | None
) -> Iterator[int | bytes]:
    key: int | bytes
    if scheme == "llm-d":
        key = fnv_64a(cbor([fnv_64a((seed or "").encode()), None, model]))
    elif scheme == "vllm-sha256-cbor":
        key = hashlib.sha256(cbor("vllm-none-hash" if seed is None else seed)).digest()
    else:
        key = xxhash.xxh3_128_digest(cbor(seed))
    for at in range(0, len(ids) - size + 1, size):
        extra = (("cache_salt", salt),) if salt and at == 0 else None
        data = cbor((key, tuple(ids[at : at + size]), extra))
        if scheme == "llm-d":
            key = fnv_64a(data)
        elif scheme == "vllm-sha256-cbor":
            key = hashlib.sha256(data).digest()
        else:
            key = xxhash.xxh3_128_digest(data)
        yield key


def check(
    ids: list[int], scheme: str, size: int, seed: str | None, model: str, salt: str | None
) -> int:
    """Of how many blocks."""
    keys = block_keys(ids, scheme, size, seed=seed, model=model, cache_salt=salt)
    assert keys.dtype == SCHEMES[scheme]
    found = keys.tolist() if keys.ndim == 1 else [bytes(key) for key in keys]
    assert found == [*reference(ids, scheme, size, seed, model, salt)]
    return len(found)


def random_text(rng: random.Random) -> str:
    """Also of lengths at which CBOR's heads grow."""
    length = rng.choice((0, 1, 5, 23, 24, 255, 256, 300))
    return "".join(rng.choice(("a", "/", "é", "日", "😀", "\0")) for _ in range(length))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_blocks(scheme: str) -> None:
    rng = random.Random(scheme)
    done = 0
    while done < BLOCKS:
        size = rng.choice((1, 2, 15, 16, 16, 16, 23, 24, 32, 64, 256))
        limits = rng.choices((24, 256, 50257, 152064, 2**32), k=3)
        ids = [rng.randrange(rng.choice(limits)) for _ in range(size * 30 + rng.randrange(size))]
        for place in range(0, len(ids), 17):
            ids[place] = rng.choice(EDGES)
        seed = rng.choice((None, "", "0", random_text(rng)))
        salt = rng.choice((None, "", "salt", random_text(rng)))
        seed = "0" if seed is None and scheme == "vllm-xxhash-cbor" else seed
        salt = None if scheme == "llm-d" else salt
        done += check(ids, scheme, size, seed, random_text(rng), salt)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [255, 256, 65535, 65536, 2**20])
def test_large_blocks(scheme: str, size: int) -> None:
    ids = [i * 7919 % 152064 for i in range(2 * size + 1)]
    assert check(ids, scheme, size, "0", "", None) == 2


def test_vllms_own() -> None:
    with Path(__file__).with_name("vllm_block_keys.jsonl").open() as lines:
        for line in lines:
            case = json.loads(line)
            keys = case.pop("keys")
            assert [bytes(key).hex() for key in block_keys(**case)] == keys
