# SPDX-License-Identifier: BSD-3-Clause
"""Rows of every kind and type, on random tables and ids."""

from __future__ import annotations

import importlib.util
import itertools
import random
from pathlib import Path
from typing import Any

from ..parts import part
from ..run import NotRun, Run, Wrong

ROWS = 3000


def need(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise NotRun(f"needs {module} in this Python")


def embed(run: Run, ring: str, command: list[str | Path]) -> str:
    status, output, errors = run.call(command, 60, TOKD_GPU_RING=ring)
    if status != 0:
        run.failed("gpu_embed_once", status, output, errors)
    return output


def compare(run: Run, ring: str, name: str, case: Any, batch: int = 0, torch: Any = None) -> None:
    """Embeds a case and compares the rows with those of NumPy or PyTorch."""
    program = [run.build.program("gpu_embed_once")]
    try:
        rows = case.embedded(
            lambda words: embed(run, ring, words), program, run.device, run.work, batch
        )
        on = "cuda" if torch and torch.cuda.is_available() else "cpu"
        case.assert_equal(rows, case.torchs(torch, on) if torch else case.expected())
    except (AssertionError, Wrong) as why:
        run.wrong(f"{name}: {why}")
    else:
        run.right(name)


def against_numpy(run: Run, ring: str) -> None:
    """Each kind and type, plain and in batches, and dimensions with other copy widths."""
    from .. import exact  # numpy

    rng = random.Random(run.seed)
    for kind, dtype in itertools.product(exact.KINDS, exact.DTYPES):
        dim = rng.choice((768, 1024, 36, rng.randrange(1, 500)))
        batch = rng.choice((0, 0, rng.randrange(1, 900)))
        position0 = 0 if batch else rng.randrange(1000)
        case = exact.Case.made(kind, dtype, dim, ROWS, position0, rng.getrandbits(32))
        name = (
            f"{exact.KINDS[kind]} {exact.DTYPES[dtype]}, {ROWS} x {dim}, batch {batch}, ring {ring}"
        )
        compare(run, ring, name, case, batch)
    for dtype in exact.DTYPES:
        case = exact.Case.of_any_bits(dtype, 64, 1000, rng.getrandbits(32))
        compare(run, ring, f"any pattern of bits, {exact.DTYPES[dtype]}, ring {ring}", case)


@part("A", 20, "rows against NumPy", 100)
def rows_against_numpy(run: Run) -> None:
    need("numpy")
    for ring in run.rings:
        with run.at_ring(ring):
            against_numpy(run, ring)


@part("A", 80, "rows against PyTorch", 120)
def rows_against_pytorch(run: Run) -> None:
    need("numpy")
    need("torch")
    import torch

    from .. import exact

    run.fact("PyTorch", f"{torch.__version__}, CUDA {torch.version.cuda}")
    for kind, dtype in itertools.product(exact.KINDS, exact.DTYPES):
        case = exact.Case.made(kind, dtype, 768, ROWS, 5, run.seed)
        name = f"{exact.KINDS[kind]} {exact.DTYPES[dtype]}, {ROWS} x 768, ring {run.rings[0]}"
        compare(run, run.rings[0], name, case, torch=torch)
