# SPDX-License-Identifier: BSD-3-Clause
"""compute-sanitizer over embeddings and the C tests; last, because it takes longest."""

from __future__ import annotations

from pathlib import Path

from ..parts import part
from ..run import NotRun, Run, Wrong
from .a_exact import need
from .a_tests import tests_run
from .b_inside import tool

# Hundreds of waiting blocks take hours under a sanitizer.
FEW = {"TOKD_GPU_WORKERS": "8", "TOKD_GPU_ROUNDS": "100"}


def sanitizer(run: Run, kind: str) -> list[str]:
    if not run.on_gpu:
        raise NotRun("needs a GPU")
    found = tool("compute-sanitizer")
    if found is None:
        raise NotRun("needs compute-sanitizer, which was not found")
    # Calls that may fail, as for a dma-buf, are not errors; only memcheck reports them.
    calls = ["--report-api-errors", "no"] if kind == "memcheck" else []
    return [found, "--tool", kind, "--error-exitcode", "9", *calls]


def embeddings(run: Run, wrapper: list[str]) -> None:
    need("numpy")
    from .. import exact

    def ran(command: list[str | Path]) -> str:
        status, output, errors = run.call(command, 60, TOKD_GPU_RING="gpu", **FEW)
        if "Device not supported" in output + errors:
            raise NotRun(f"{wrapper[0]}: this device is not supported here")
        if status != 0:
            run.failed("gpu_embed_once", status, output, errors)
        return output

    program: list[str | Path] = [*wrapper, run.build.program("gpu_embed_once")]
    for kind, name in exact.KINDS.items():
        case = exact.Case.made(kind, exact.F32, 96, 1500, 0, run.seed)
        try:
            case.assert_equal(case.embedded(ran, program, run.device, run.work), case.expected())
        except (AssertionError, Wrong) as why:
            run.wrong(f"{name}: {why}")
        else:
            run.right(f"{wrapper[2]}, {name} f32, 1500 x 96, ring gpu")


@part("C", 90, "compute-sanitizer memcheck", 150)
def memcheck(run: Run) -> None:
    wrapper = sanitizer(run, "memcheck")
    embeddings(run, wrapper)
    for name, ring in (
        ("test_consumer", "host"),
        ("test_hostile", "host"),
        ("test_consumer", "gpu"),
    ):
        with run.at_ring(ring):
            tests_run(run, name, ring, tuple(wrapper), **FEW)


@part("C", 91, "compute-sanitizer racecheck", 120)
def racecheck(run: Run) -> None:
    wrapper = sanitizer(run, "racecheck")
    embeddings(run, wrapper)
    with run.at_ring("host"):
        tests_run(run, "test_consumer", "host", tuple(wrapper), **FEW)


@part("C", 92, "compute-sanitizer synccheck", 60)
def synccheck(run: Run) -> None:
    embeddings(run, sanitizer(run, "synccheck"))
