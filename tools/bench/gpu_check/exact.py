# SPDX-License-Identifier: BSD-3-Clause
"""Rows as numpy makes them, and what it means for the device's to be equal. Needs numpy.

Rows of one table, and of word + position, are the same bits (16-bit types: the sum in fp32, rounded
once to nearest even). BERT's rows are within 1e-5 of LayerNorm in fp64; those of 16-bit types
within one rounding of it, since nothing is rounded before the end, as a model of that type would
after each sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = Any  # numpy's own type needs a newer Python
WORD, WORD_POSITION, BERT = 1, 2, 3
F32, F16, BF16 = 1, 2, 3
KINDS = {WORD: "word", WORD_POSITION: "word+position", BERT: "bert"}
DTYPES = {F32: "f32", F16: "f16", BF16: "bf16"}
OK, BADID, BADPOS = 1, 5, 6
N_IDS, N_POSITIONS = 1000, 6000
EPSILON = 1e-12


def status_said(output: str) -> int:
    """What gpu_embed_once printed: a line of digits, among whatever a sanitizer printed."""
    (line,) = (line for line in output.splitlines() if line.isdigit())
    return int(line)


def stored(x: Array, dtype: int) -> Array:
    """fp32 as elements of the type, rounded to nearest even: uint16 for bfloat16."""
    x = x.astype(np.float32)
    if dtype == F32:
        return x
    if dtype == F16:
        with np.errstate(over="ignore"):
            return x.astype(np.float16)
    bits = x.view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def value(x: Array, dtype: int) -> Array:
    """Stored elements as fp32, exactly."""
    if dtype == BF16:
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.float32)


@dataclass
class Case:
    """Tables of one kind and type, as stored, and ids."""

    kind: int
    dtype: int
    ids: Array
    tables: dict[str, Array]
    position0: int = 0

    @classmethod
    def made(
        cls, kind: int, dtype: int, dim: int, n: int, position0: int = 0, seed: int | None = None
    ) -> Case:
        rng = np.random.default_rng(dim * 31 + n if seed is None else seed)
        tables = {"word": rng.normal(size=(N_IDS, dim))}
        if kind != WORD:
            tables["position"] = rng.normal(size=(N_POSITIONS, dim))
        if kind == BERT:
            tables.update(type=rng.normal(size=dim), gamma=rng.normal(1, 0.1, dim))
            tables["beta"] = rng.normal(size=dim)
        stored_tables = {name: stored(t, dtype) for name, t in tables.items()}
        return cls(
            kind, dtype, rng.integers(0, N_IDS, n).astype(np.uint32), stored_tables, position0
        )

    @classmethod
    def of_any_bits(cls, dtype: int, dim: int, n: int, seed: int) -> Case:
        """Subnormal numbers, infinities, what is not a number, and ties in rounding, in sums of
        two."""
        case = cls.made(WORD_POSITION, dtype, dim, n)
        rng = np.random.default_rng(seed)
        for name, x in case.tables.items():
            bits = rng.integers(0, 1 << 8 * x.itemsize, x.shape, dtype=f"u{x.itemsize}")
            near = rng.random(x.shape) < 0.5  # exponents so near that sums must be rounded
            mask = {F32: 0xBFFFFFFF, F16: 0x8FFF, BF16: 0x80FF}[dtype]
            case.tables[name] = np.where(near, bits & mask, bits).astype(bits.dtype).view(x.dtype)
        return case

    @property
    def dim(self) -> int:
        return int(self.tables["word"].shape[1])

    def positions(self) -> Array:
        return self.position0 + np.arange(len(self.ids))

    def expected(self) -> Array:
        """Rows in fp32 (BERT: fp64), before they are rounded."""
        t = {name: value(x, self.dtype) for name, x in self.tables.items()}
        rows = t["word"][self.ids]
        if self.kind == WORD:
            return rows
        if self.kind == WORD_POSITION:
            with np.errstate(over="ignore", invalid="ignore"):
                return rows + t["position"][self.positions()]
        x = rows.astype(np.float64) + t["type"] + t["position"][self.positions()]
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPSILON)
        return x * t["gamma"] + t["beta"]

    def torchs(self, torch: Any, device: str) -> Array:
        """Rows in fp32 as PyTorch makes them on that device; 16-bit sums of two are its own."""
        torch_type = {F32: torch.float32, F16: torch.float16, BF16: torch.bfloat16}[self.dtype]
        bits = {n: torch.from_numpy(x.view(f"i{x.itemsize}")) for n, x in self.tables.items()}
        t = {n: x.view(torch_type).to(device) for n, x in bits.items()}
        if self.kind == BERT:
            t = {n: x.float() for n, x in t.items()}
        x = t["word"][torch.from_numpy(self.ids.astype(np.int64)).to(device)]
        if self.kind == BERT:
            x = x + t["type"]
        if self.kind != WORD:
            x = x + t["position"][torch.from_numpy(self.positions()).to(device)]
        if self.kind == BERT:
            x = torch.nn.functional.layer_norm(x, (self.dim,), t["gamma"], t["beta"], EPSILON)
        return x.float().cpu().numpy()

    def embedded(
        self,
        ran: Callable[[list[str | Path]], str],
        program: list[str | Path],
        device: str,
        folder: Path,
        batch: int = 0,
        status: int = OK,
    ) -> Array:
        """Rows as the device stores them. `ran` runs a command, which must end well: its output."""
        for name, x in {**self.tables, "ids": self.ids}.items():
            x.tofile(folder / f"{name}.bin")
        n_positions = N_POSITIONS if self.kind != WORD else 0
        numbers: list[float] = [self.kind, self.dtype, self.dim, N_IDS, n_positions]
        numbers += [EPSILON, self.position0, batch]
        said = status_said(ran([*program, device, folder, *map(str, numbers)]))
        if said != status:
            raise AssertionError(f"status {said}, expected {status}")
        element = {F32: np.float32, F16: np.float16, BF16: np.uint16}[self.dtype]
        return np.fromfile(folder / "rows.bin", dtype=element).reshape(len(self.ids), self.dim)

    def assert_equal(self, rows: Array, expected: Array) -> None:
        """To the bit, or within what this module says of BERT."""
        got = value(rows, self.dtype).astype(np.float64)
        if self.kind != BERT:
            np.testing.assert_array_equal(got, value(stored(expected, self.dtype), self.dtype))
            return
        bound = {F32: 1e-5, F16: 2.0**-11, BF16: 2.0**-8}[self.dtype]
        error = np.abs(got - expected) / (bound * np.maximum(1, np.abs(expected)) + 1e-5)
        if not np.all(error <= 1):  # not: any > 1, which NaN is not
            raise AssertionError(
                f"BERT: {np.count_nonzero(~(error <= 1))} elements are too far off"
            )
