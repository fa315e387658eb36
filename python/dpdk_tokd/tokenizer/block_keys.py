# SPDX-License-Identifier: BSD-3-Clause
"""Keys of blocks of ids, by which LLM routers find a cached prefix."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, TypeAlias

from .._arguments import check_number
from .batch import NDArray
from .decode import IdsLike, ids_for

Scheme: TypeAlias = Literal["llm-d", "vllm-sha256-cbor", "vllm-xxhash-cbor"]

BLOCK_SIZE_MAX = 2**20


def block_keys(
    ids: IdsLike,
    scheme: Scheme,
    block_size: int = 16,
    seed: str | None = None,
    model: str = "",
    cache_salt: str | None = None,
) -> NDArray[Any]:
    """Keys of the full blocks of `ids`: hashes that LLM routers use to find cached prefixes.

    scheme: "llm-d": uint64, shape (blocks,). "vllm-sha256-cbor", "vllm-xxhash-cbor": the bytes of
    the digests, uint8, shape (blocks, 32) or (blocks, 16); `bytes(keys[i])` is vLLM's BlockHash.
    The array is the caller's. Each key stands for all ids up to the end of its block; ids after
    the last full block have none.
    ids: as in `decode`. block_size: ids of a block, up to 2**20; that of the engine.
    seed: the engine's PYTHONHASHSEED, or llm-d's hashSeed. None: llm-d: empty;
    "vllm-sha256-cbor": vLLM's own; "vllm-xxhash-cbor": ValueError, since vLLM draws one a process.
    model: hashed by llm-d alone. cache_salt: hashed by vLLM alone; an empty one is none.
    Keys of LoRA adapters and of blocks with images or audio are not supported.
    ValueError: an id that is no unsigned 32-bit number, an unknown scheme, or an argument out of
    range. ImportError: the package was built without block keys.
    """
    size = check_number("block_size", block_size, BLOCK_SIZE_MAX, least=1)
    keys: NDArray[Any] = _native().keys(ids_for(ids), scheme, size, seed, model, cache_salt)
    return keys


@cache
def _native() -> ModuleType:
    try:
        return import_module("dpdk_tokd._native.block_keys")
    except ImportError as error:
        raise ImportError(
            f"block_keys: {error}: the package was built without them, or libcrypto is missing: "
            "install libssl-dev and libxxhash-dev, and install the package again"
        ) from error
