# SPDX-License-Identifier: BSD-3-Clause
"""Rows that the consumer makes of ids, against NumPy and, where it is installed, PyTorch.

What equality means: rows of one table, and of word + position, are the same bits (16-bit types: the
sum in fp32, rounded once to nearest even). BERT's rows are within 1e-5 of LayerNorm in fp64; those
of 16-bit types within one rounding of it, since nothing is rounded before the end, as a model of
that type would after each sum.

TOKD_GPU_DEVICE=cuda:0 runs the same on a GPU; otherwise the kernel's source runs as threads.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

DEVICE = os.environ.get("TOKD_GPU_DEVICE", "cpu")
WRAPPER = shlex.split(os.environ.get("TOKD_GPU_WRAPPER", ""))  # tools/gpu-check: a sanitizer
HELPER = Path(os.environ["TOKD_BUILD"]) / "tests/gpu_device/gpu_embed_once"
LIMIT_S = 120  # of one run of the helper, by its own alarm: no kernel stays on a GPU
WORD, WORD_POSITION, BERT = 1, 2, 3
F32, F16, BF16 = 1, 2, 3
KINDS = [pytest.param(k, id=n) for k, n in ((WORD, "word"), (WORD_POSITION, "word+position"), (BERT, "bert"))]
DTYPES = [pytest.param(t, id=n) for t, n in ((F32, "fp32"), (F16, "fp16"), (BF16, "bf16"))]
OK, BADID, BADPOS = 1, 5, 6
N_IDS, N_POSITIONS = 1000, 6000
EPSILON = 1e-12


def ran(command: list[str | Path]) -> str:
    """Output of the helper, which must end well. It and all it started are gone on return."""
    env = os.environ | {"TOKD_GPU_LIMIT_S": str(LIMIT_S)}
    with subprocess.Popen(
        command, stdout=PIPE, stderr=PIPE, text=True, errors="replace", env=env, start_new_session=True
    ) as helper:
        try:
            output, errors = helper.communicate(timeout=LIMIT_S + 10)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(helper.pid, signal.SIGKILL)
    if helper.returncode != 0:  # no assert: TAP's output cannot show one that is expected
        raise AssertionError(f"ended with {helper.returncode}: {errors}{output}")
    return output


def status_said(output: str) -> int:
    """What the helper printed: a line of digits, among whatever a sanitizer printed."""
    (line,) = (line for line in output.splitlines() if line.isdigit())
    return int(line)


def stored(x: np.ndarray, dtype: int) -> np.ndarray:
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


def value(x: np.ndarray, dtype: int) -> np.ndarray:
    """Stored elements as fp32, exactly."""
    if dtype == BF16:
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.float32)


@dataclass
class Case:
    """Tables of one kind and type, as stored, and ids."""

    kind: int
    dtype: int
    ids: np.ndarray
    tables: dict[str, np.ndarray]
    position0: int = 0

    @classmethod
    def made(cls, kind: int, dtype: int, dim: int, n: int, position0: int = 0) -> Case:
        rng = np.random.default_rng(dim * 31 + n)
        tables = {"word": rng.normal(size=(N_IDS, dim))}
        if kind != WORD:
            tables["position"] = rng.normal(size=(N_POSITIONS, dim))
        if kind == BERT:
            tables |= {"type": rng.normal(size=dim), "gamma": rng.normal(1, 0.1, dim)}
            tables["beta"] = rng.normal(size=dim)
        stored_tables = {name: stored(t, dtype) for name, t in tables.items()}
        return cls(kind, dtype, rng.integers(0, N_IDS, n).astype(np.uint32), stored_tables, position0)

    def positions(self) -> np.ndarray:
        return self.position0 + np.arange(len(self.ids))

    def expected(self) -> np.ndarray:
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

    def embedded(self, folder: Path, batch: int = 0, status: int = OK) -> np.ndarray:
        """Rows as the device stores them."""
        for name, x in (self.tables | {"ids": self.ids}).items():
            x.tofile(folder / f"{name}.bin")
        dim = self.tables["word"].shape[1]
        n_positions = N_POSITIONS if self.kind != WORD else 0
        numbers = (self.kind, self.dtype, dim, N_IDS, n_positions, EPSILON, self.position0, batch)
        command = [*WRAPPER, HELPER, DEVICE, folder, *map(str, numbers)]
        assert status_said(ran(command)) == status
        element = {F32: np.float32, F16: np.float16, BF16: np.uint16}[self.dtype]
        return np.fromfile(folder / "rows.bin", dtype=element).reshape(len(self.ids), dim)


def assert_equal(case: Case, rows: np.ndarray, expected: np.ndarray) -> None:
    """To the bit, or within what the module says of BERT."""
    got = value(rows, case.dtype).astype(np.float64)
    if case.kind != BERT:
        np.testing.assert_array_equal(got, value(stored(expected, case.dtype), case.dtype))
        return
    bound = {F32: 1e-5, F16: 2.0**-11, BF16: 2.0**-8}[case.dtype]
    assert np.all(np.abs(got - expected) <= bound * np.maximum(1, np.abs(expected)) + 1e-5)


def test_a_sanitizers_numbers_are_not_taken_for_a_status() -> None:
    said = "========= COMPUTE-SANITIZER\n5\n========= ERROR SUMMARY: 0 errors\n"
    assert status_said(said) == BADID


def test_a_helper_that_ran_nothing_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="ended with 77: no GPU: none"):
        ran(["sh", "-c", "echo no GPU: none >&2; exit 77"])


@pytest.mark.parametrize("dim", [768, 36, 5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_references(kind: int, dtype: int, dim: int, tmp_path: Path) -> None:
    case = Case.made(kind, dtype, dim, n=300, position0=11)
    assert_equal(case, case.embedded(tmp_path), case.expected())


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_may_take_several_slots(kind: int, tmp_path: Path) -> None:
    case = Case.made(kind, F32, 32, n=5000, position0=3)
    assert_equal(case, case.embedded(tmp_path), case.expected())


@pytest.mark.parametrize("records", [1, 37, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_records_of_batches_are_embedded_one_by_one(kind: int, records: int, tmp_path: Path) -> None:
    case = Case.made(kind, F16, 48, n=2100)
    assert_equal(case, case.embedded(tmp_path, batch=records), case.expected())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pattern_of_bits_is_added_right(dtype: int, tmp_path: Path) -> None:
    """Subnormal numbers, infinities, what is not a number, and ties in rounding."""
    case = Case.made(WORD_POSITION, dtype, 64, n=1000)
    rng = np.random.default_rng(5)
    for name, x in case.tables.items():
        bits = rng.integers(0, 1 << 8 * x.itemsize, x.shape, dtype=f"u{x.itemsize}")
        near = rng.random(x.shape) < 0.5  # exponents so near that sums must be rounded
        mask = {F32: 0xBFFFFFFF, F16: 0x8FFF, BF16: 0x80FF}[dtype]
        case.tables[name] = np.where(near, bits & mask, bits).astype(bits.dtype).view(x.dtype)
    assert_equal(case, case.embedded(tmp_path), case.expected())


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_beyond_a_table_is_a_row_of_zeros(dtype: int, tmp_path: Path) -> None:
    case = Case.made(WORD_POSITION, dtype, 40, n=100, position0=N_POSITIONS - 90)
    case.ids[7] = N_IDS
    rows = value(case.embedded(tmp_path, status=BADPOS), dtype)
    outside = [7, *range(90, 100)]
    assert not rows[outside].any()
    case.ids[outside] = 0
    case.tables["position"] = np.pad(case.tables["position"], ((0, 10), (0, 0)))
    expected = value(stored(case.expected(), dtype), dtype)
    inside = np.setdiff1d(np.arange(100), outside)
    np.testing.assert_array_equal(rows[inside], expected[inside])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_pytorchs(kind: int, dtype: int, tmp_path: Path) -> None:
    """In fp32; 16-bit sums of two are PyTorch's to the bit as well."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: compared with NumPy alone")
    case = Case.made(kind, dtype, 768, n=2048, position0=5)
    torch_type = {F32: torch.float32, F16: torch.float16, BF16: torch.bfloat16}[dtype]
    bits = {n: torch.from_numpy(x.view(f"i{x.itemsize}")) for n, x in case.tables.items()}
    t = {n: x.view(torch_type) for n, x in bits.items()}
    if kind == BERT:
        t = {n: x.float() for n, x in t.items()}
    x = t["word"][torch.from_numpy(case.ids.astype(np.int64))]
    if kind == BERT:
        x = x + t["type"]
    if kind != WORD:
        x = x + t["position"][torch.from_numpy(case.positions())]
    if kind == BERT:
        x = torch.nn.functional.layer_norm(x, (768,), t["gamma"], t["beta"], EPSILON)
    assert_equal(case, case.embedded(tmp_path), x.float().numpy())
