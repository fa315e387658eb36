# SPDX-License-Identifier: BSD-3-Clause
"""The tables that `tokd-gpu --table random:ROWSxDIM:SEED` makes, by numpy: to compare with."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

PARTS = {"word": 0, "position": 1, "type": 2, "gamma": 3, "beta": 4}


def _splitmix64(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def random_table(
    rows: int,
    dim: int,
    seed: int = 0,
    part: Literal["word", "position", "type", "gamma", "beta"] = "word",
    *,
    first: int = 0,
) -> npt.NDArray[np.float32]:
    """Rows [first, first + rows) of one of the random tables of `seed`: float32 in [-1, 1).

    Element i of a table, counted row by row, is

        (splitmix64(splitmix64(splitmix64(seed) + part) + i) >> 40) * 2**-23 - 1

    in arithmetic modulo 2**64, with the parts numbered from the word table's 0 on. With
    `--dtype f16` or `bf16` it is rounded to nearest, ties to even.
    """
    seeds = np.array([seed], np.uint64)
    key = _splitmix64(_splitmix64(seeds) + np.uint64(PARTS[part]))
    i = np.arange(first * dim, (first + rows) * dim, dtype=np.uint64)
    bits = _splitmix64(key + i) >> np.uint64(40)
    table: npt.NDArray[np.float32] = bits.astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    return table.reshape(rows, dim)
