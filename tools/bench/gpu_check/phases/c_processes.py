# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gpu with a producer, and subscriber processes that run PyTorch's kernels."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import figures
from ..agent import (
    SUBSCRIBER,
    Agent,
    Poster,
    Subscriber,
    ended,
    group_env,
    without_capabilities,
)
from ..build import DROPPED, driver_program
from ..parts import part
from ..run import NotRun, Run, Word, Wrong, python
from .a_exact import need

REQUESTS = {True: 1200, False: 100}  # on a GPU; as threads
DEVICE_CLOCK = {True: "globaltimer", False: "CLOCK_MONOTONIC"}


def compared(run: Run, said: dict[str, Any], title: str) -> str:
    """Records a subscriber's result; returns how it took the rows."""
    meanwhile = (
        f"{said['products']} products of 4096 x 4096 meanwhile" if said["torch"] else "no PyTorch"
    )
    note = f"{said['outputs']}, {meanwhile}"
    run.right(
        f"{title}: {said['taken']} embeddings, each row compared ({said['torch'] or 'numpy'}; {note})"
    )
    if run.on_gpu and not said["torch"]:
        run.skipped(f"{title}: PyTorch's kernels meanwhile: PyTorch is not in this Python")
    return note


def timed(run: Run, said: dict[str, Any], title: str) -> None:
    """The same, with its figures."""
    note = compared(run, said, title)
    for what, name, clock in (
        ("seen to embedded, 100 ids", "embedded_ns", DEVICE_CLOCK[run.on_gpu]),
        ("handed out to read by the subscriber", "handed_ns", "CLOCK_MONOTONIC"),
    ):
        numbers = figures.microseconds(said[name], 1)
        run.figure(what=f"{what}, {title}", ring="host", clock=clock, **numbers, note=note)


def one_round(run: Run, title: str, shared: bool = False, **env: str) -> None:
    agent = poster = subscriber = None
    try:
        agent = Agent(run, **env)
        requests = REQUESTS[run.on_gpu]
        subscriber = Subscriber(run, agent, requests, **env)
        poster = Poster(run, agent, 1)
        if shared != ("MPS runs kernels" in agent.said()):  # as device_cuda.cu has it
            raise NotRun(f"tokd-gpu is {'not ' if shared else ''}a client of MPS:\n{agent.said()}")
        for first in range(0, requests, 4):  # within the outputs, whatever the subscriber's speed
            poster.post(first, 4)
        timed(run, subscriber.result(), title)
        if agent.stop() != 0:
            raise Wrong(f"tokd-gpu did not stop well:\n{agent.said()}")
    finally:
        ended(poster, subscriber, agent)


@part("C", 10, "a subscriber in another process beside PyTorch's kernels", 90)
def with_a_subscriber(run: Run) -> None:
    need("numpy")
    one_round(run, "without MPS")


NOT_DROPPED = "restricting every thread"  # what tokd-gpu says where it cannot drop privileges


def try_without_privileges() -> None:
    """Raises NotRun if only root's privileges let this Python read what the subscriber needs."""
    words = [python(), "-B", "-c", f"import numpy; open({str(SUBSCRIBER)!r}).close()"]
    try:
        subprocess.run(
            words, preexec_fn=without_capabilities, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError) as why:
        said = getattr(why, "stderr", "") or str(why)
        raise NotRun(f"Python without root's privileges: {said.strip()}") from why


def with_dropped(run: Run) -> tuple[Agent, Subscriber]:
    """tokd-gpu as it is installed, but for its unit's filter of system calls, and a subscriber."""
    try_without_privileges()
    try:
        agent = Agent(run, DROPPED)
    except Wrong as why:
        if NOT_DROPPED in str(why):
            raise NotRun(str(why)) from why
        raise
    run.fact("capabilities of tokd-gpu", agent.capabilities())
    try:
        subscriber = Subscriber(run, agent, 20, without_capabilities)
    except NotRun as why:
        ended(agent)
        agent = Agent(run)
        ended(Subscriber(run, agent, 1), agent)  # not run only if that is not, either
        raise Wrong(f"a subscriber attaches only with privileges: {why}") from why
    run.fact("capabilities of the subscriber", subscriber.capabilities())
    return agent, subscriber


@part("C", 15, "a subscriber in another process, both without root's privileges", 120)
def without_privileges(run: Run) -> None:
    need("numpy")
    agent = poster = subscriber = None
    try:
        agent, subscriber = with_dropped(run)
        poster = Poster(run, agent, 1)
        poster.post(0, 20)
        compared(run, subscriber.result(), "without root's privileges")
        if agent.stop() != 0:
            raise Wrong(f"tokd-gpu did not stop well:\n{agent.said()}")
    finally:
        ended(poster, subscriber, agent)


@part("C", 20, "SIGKILL of the subscriber, then of tokd-gpu, and restart", 120)
def kills(run: Run) -> None:
    need("numpy")
    agent = poster = subscriber = None
    try:
        agent = Agent(run)
        poster = Poster(run, agent, 1)
        subscriber = Subscriber(run, agent, 1_000_000)
        poster.post(0, 20)
        subscriber.kill()
        poster.post(20, 100)
        run.right("the subscriber was killed, and its producer continues")
        subscriber = Subscriber(run, agent, 10)
        poster.post(120, 10)
        compared(run, subscriber.result(), "after the death of another subscriber")
        for again in range(2):
            began = time.monotonic()
            ended(agent)
            run.figure(
                what=f"tokd-gpu killed to gone, {again}",
                value=time.monotonic() - began,
                unit="s",
                ring="host",
            )
            ended(poster)
            agent = Agent(run)
            subscriber = Subscriber(run, agent, 10)
            poster = Poster(run, agent, 2 + again)
            poster.post(0, 10)
            compared(run, subscriber.result(), f"after the death of tokd-gpu, {again}")
        run.right(
            "tokd-gpu was killed with its kernel running, and a new one serves at its sockets"
        )
    finally:
        ended(poster, subscriber, agent)


@part("C", 30, "a process that ends with its kernel running", 120)
def leaves(run: Run) -> None:
    more = [] if run.on_gpu else ["n_ids=1000"]
    for ring in run.rings:
        with run.at_ring(ring):
            began = time.monotonic()
            words: list[Word] = [run.build.program("gpu_measure"), "leave", run.device, *more]
            status, output, errors = run.call(words, 40, TOKD_GPU_RING=ring)
            took = time.monotonic() - began
            if status != 0:
                run.failed(f"leave, ring {ring}", status, output, errors)
            run.figure(what="begin to end of the process", ring=ring, value=took, unit="s")
            run.right(f"ring {ring}: it ended, after {took:.1f} s in all")
            run.measured("produce", ring, n=20, tokens=8, check_every=1, n_ids=1000)
            run.right(f"ring {ring}: the device serves the next process")


# Has a client of MPS a context?
CLIENT = """
import ctypes, sys
cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
rc = cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1]))
rc = rc or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
sys.exit(f"a client has the driver's error {rc}" if rc else 0)
"""
MPS_READY_S = 10
MPS_QUIT_S = 5  # then it ends a server that still has clients


def mps_said(folder: Path) -> str:
    """The end of what daemon and server have logged."""
    logs = sorted(path for path in folder.glob("*.log") if path.is_file())
    return "\n".join(path.read_text(errors="replace")[-2000:] for path in logs)


def mps_ready(run: Run, daemon: subprocess.Popen[bytes], folder: Path, env: dict[str, str]) -> None:
    """Waits until clients are served. Raises NotRun if they are not."""
    until = time.monotonic() + MPS_READY_S
    while daemon.poll() is None and not (folder / "control").exists():
        if time.monotonic() > until:
            raise NotRun(f"MPS has no control socket after {MPS_READY_S} s:\n{mps_said(folder)}")
        time.sleep(0.05)
    if daemon.poll() is not None:
        raise NotRun(f"MPS: it ended with {daemon.returncode}:\n{mps_said(folder)}")
    status, _, errors = run.call([python(), "-c", CLIENT, run.device[5:]], 30, **env)
    if status != 0:
        raise NotRun(f"MPS serves no client here: {errors.strip()}\n{mps_said(folder)}")


@contextlib.contextmanager
def mps(run: Run) -> Iterator[dict[str, str]]:
    """MPS in a folder of its own. What its clients need in their environment."""
    control = driver_program("nvidia-cuda-mps-control")
    if control is None:
        raise NotRun("needs nvidia-cuda-mps-control, which was not found")
    folder = run.work / "mps"
    folder.mkdir()
    env = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    full = group_env(run, env)
    full["PATH"] = f"{Path(control).parent}:{full['PATH']}"  # its server's program is beside it
    with (folder / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen(
            [control, "-f"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=full
        )
    try:
        mps_ready(run, daemon, folder, env)
        yield env
    except Wrong as why:  # with the server's own words
        raise Wrong(f"{why}\nMPS: {mps_said(folder)}") from why
    finally:
        quits = f"quit -t {MPS_QUIT_S}\n".encode()
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [control], input=quits, env=full, timeout=20, check=False, capture_output=True
            )
        daemon.kill()
        daemon.wait()


@part("C", 40, "a subscriber in another process, both under MPS", 120)
def under_mps(run: Run) -> None:
    if not run.on_gpu:
        raise NotRun("needs a GPU")
    need("numpy")
    with mps(run) as env:
        one_round(run, "under MPS", shared=True, **env)


@part("C", 50, "SIGKILL of tokd-gpu under MPS: does it serve the next one?", 120)
def killed_under_mps(run: Run) -> None:
    """NVIDIA promises nothing after that."""
    if not run.on_gpu:
        raise NotRun("needs a GPU")
    need("numpy")
    with mps(run) as env:
        began, agent = time.monotonic(), Agent(run, **env)
        if "MPS runs kernels" not in agent.said():
            ended(agent)
            raise NotRun(f"tokd-gpu is not a client of MPS:\n{agent.said()}")
        ended(agent)
        run.figure(
            what="tokd-gpu started, killed and gone under MPS",
            value=time.monotonic() - began,
            unit="s",
            ring="host",
        )
        one_round(run, "under MPS, after tokd-gpu was killed", shared=True, **env)
