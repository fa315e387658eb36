# SPDX-License-Identifier: BSD-3-Clause
"""Rows that the consumer makes of ids, against NumPy and PyTorch.

What equality means: tools/bench/gpu_check/exact.py, whose cases tools/gpu-check runs on a GPU. Here
the kernel's source runs as threads; with TOKD_GPU_DEVICE=cuda:0 on a GPU.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE

import debian
import numpy as np
import pytest
from bench.gpu_check.exact import (
    BADID,
    BADPOS,
    DTYPES,
    F16,
    F32,
    KINDS,
    N_IDS,
    N_POSITIONS,
    OK,
    WORD_POSITION,
    Case,
    status_said,
    stored,
    value,
)

DEVICE = os.environ.get("TOKD_GPU_DEVICE", "cpu")
TOOLS = Path(__file__).resolve().parents[3] / "tools"
HELPER = Path(os.environ["TOKD_BUILD"]) / "tests/unit/gpu/device/gpu_embed_once"
LIMIT_S = 120  # of one run of the helper, by its own alarm: no kernel stays on a GPU
EACH_KIND = [pytest.param(k, id=n) for k, n in KINDS.items()]
EACH_DTYPE = [pytest.param(t, id=n) for t, n in DTYPES.items()]


def ran(command: list[str | Path]) -> str:
    """Output of the helper, which must end well. It and all it started are gone on return."""
    env = os.environ | {"TOKD_GPU_LIMIT_S": str(LIMIT_S)}
    with subprocess.Popen(
        command,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        errors="replace",
        env=env,
        start_new_session=True,
    ) as helper:
        try:
            output, errors = helper.communicate(timeout=LIMIT_S + 10)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(helper.pid, signal.SIGKILL)
    if helper.returncode != 0:  # no assert: TAP's output cannot show one that is expected
        raise AssertionError(f"ended with {helper.returncode}: {errors}{output}")
    return output


def embedded(case: Case, folder: Path, batch: int = 0, status: int = OK) -> np.ndarray:
    """Rows as the device stores them."""
    return case.embedded(ran, [HELPER], DEVICE, folder, batch, status)


def test_a_sanitizers_numbers_are_not_taken_for_a_status() -> None:
    said = "========= COMPUTE-SANITIZER\n5\n========= ERROR SUMMARY: 0 errors\n"
    assert status_said(said) == BADID


def test_a_helper_that_ran_nothing_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="ended with 77: no GPU: none"):
        ran(["sh", "-c", "echo no GPU: none >&2; exit 77"])


@pytest.mark.parametrize("dim", [768, 772, 1024, 1032, 36, 5])
@pytest.mark.parametrize("dtype", EACH_DTYPE)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_rows_are_the_references(kind: int, dtype: int, dim: int, tmp_path: Path) -> None:
    case = Case.made(kind, dtype, dim, n=300, position0=11)
    case.assert_equal(embedded(case, tmp_path), case.expected())


@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_text_may_take_several_slots(kind: int, tmp_path: Path) -> None:
    case = Case.made(kind, F32, 32, n=5000, position0=3)
    case.assert_equal(embedded(case, tmp_path), case.expected())


@pytest.mark.parametrize("records", [1, 37, 1000])
@pytest.mark.parametrize("kind", EACH_KIND)
def test_records_of_batches_are_embedded_one_by_one(
    kind: int, records: int, tmp_path: Path
) -> None:
    case = Case.made(kind, F16, 48, n=2100)
    case.assert_equal(embedded(case, tmp_path, batch=records), case.expected())


@pytest.mark.parametrize("dtype", EACH_DTYPE)
def test_every_pattern_of_bits_is_added_right(dtype: int, tmp_path: Path) -> None:
    case = Case.of_any_bits(dtype, dim=64, n=1000, seed=5)
    case.assert_equal(embedded(case, tmp_path), case.expected())


@pytest.mark.parametrize("dtype", EACH_DTYPE)
def test_what_is_beyond_a_table_is_a_row_of_zeros(dtype: int, tmp_path: Path) -> None:
    case = Case.made(WORD_POSITION, dtype, 40, n=100, position0=N_POSITIONS - 90)
    case.ids[7] = N_IDS
    rows = value(embedded(case, tmp_path, status=BADPOS), dtype)
    outside = [7, *range(90, 100)]
    assert not rows[outside].any()
    case.ids[outside] = 0
    case.tables["position"] = np.pad(case.tables["position"], ((0, 10), (0, 0)))
    expected = value(stored(case.expected(), dtype), dtype)
    inside = np.setdiff1d(np.arange(100), outside)
    np.testing.assert_array_equal(rows[inside], expected[inside])


# Rows of each kind and type, by whichever Python has PyTorch.
PYTORCHS = """
import sys
import numpy as np
import torch
sys.path.insert(0, sys.argv[1])
from bench.gpu_check.exact import DTYPES, KINDS, Case
rows = {f"{k} {t}": Case.made(k, t, *map(int, sys.argv[3:])).torchs(torch, "cpu") for k in KINDS for t in DTYPES}
np.savez(sys.argv[2], **rows)
"""
PYTORCHS_CASE = (768, 2048, 5)  # numbers in a row, ids, first position


@pytest.fixture(scope="module")
def pytorchs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, np.ndarray]:
    python = [sys.executable] if find_spec("torch") else debian.python("pytorch")
    if python is None:
        pytest.skip(
            "PyTorch is not unpacked here: run tools/test, or tests/support/debian.py pytorch"
        )
    path = tmp_path_factory.mktemp("pytorch") / "rows.npz"
    command = [*python, "-c", PYTORCHS, TOOLS, path, *map(str, PYTORCHS_CASE)]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    return np.load(path)


@pytest.mark.parametrize("dtype", EACH_DTYPE)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_rows_are_pytorchs(
    kind: int, dtype: int, tmp_path: Path, pytorchs: Mapping[str, np.ndarray]
) -> None:
    """In fp32; 16-bit sums of two are PyTorch's to the bit as well."""
    case = Case.made(kind, dtype, *PYTORCHS_CASE)
    case.assert_equal(embedded(case, tmp_path), pytorchs[f"{kind} {dtype}"])
