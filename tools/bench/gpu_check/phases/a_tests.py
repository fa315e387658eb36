# SPDX-License-Identifier: BSD-3-Clause
"""The C tests of the consumer, its restarts, and malformed slots, on the device."""

from __future__ import annotations

from ..parts import part
from ..run import HUNG, NotRun, Run, Word, no_host_ring

TESTS = ("test_consumer", "test_life", "test_hostile", "test_generate", "test_text")
ROUNDS = "1000"  # of random slots: on a ring in GPU memory each word is a call of the driver


def tests_run(run: Run, name: str, ring: str, wrapper: tuple[str, ...] = (), **env: str) -> None:
    """Run all tests of a program; after a failure the remaining ones one by one."""
    command: list[Word] = [*wrapper, run.build.program(name)]
    env = {"TOKD_GPU_RING": ring, "TOKD_GPU_ROUNDS": ROUNDS, **env}
    status, output, errors = run.call(command, 100, **env)
    lines = output.splitlines()
    why = no_host_ring(f"{output}\n{errors}") if status != 0 else None
    if why is not None:
        raise NotRun(why)
    for line in lines:
        if line.startswith("# skipped: "):
            run.skipped(f"{name}, ring {ring}: {line[11:]}")
    passed = sum(line.startswith("ok ") and "# SKIP" not in line for line in lines)
    if passed:
        run.right(f"{name}, ring {ring}: {passed} tests")
    if status == 0 and passed == 0:
        run.wrong(f"{name}, ring {ring}: it exited with 0 without running a test")
    if status == HUNG:
        run.record("late", f"{name}, ring {ring}:\n{output[-4000:]}\n{errors[-2000:]}")
        return
    if status == 0:
        return
    run.wrong(f"{name}, ring {ring}, ended with {status}:\n{output[-4000:]}\n{errors[-2000:]}")
    for test in (line[len("# not run: ") :] for line in lines if line.startswith("# not run: ")):
        status, output, errors = run.call(command, 40, TOKD_TEST_ONLY=test, **env)
        if status == 0:
            run.right(f"{name}, ring {ring}: {test}")
        else:
            run.wrong(
                f"{name}, ring {ring}: {test} ended with {status}:\n{output}\n{errors[-2000:]}"
            )


@part("A", 45, "tests in C on the device", 90)
def tests_in_c(run: Run) -> None:
    for ring in reversed(run.rings):  # the host's ring first: what is posted there is quick
        with run.at_ring(ring):
            for name in TESTS:
                tests_run(run, name, ring)
