# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the check, and how one is run.

A part is a function that a file in phases/ registers:

    @part("A", 10, "properties of GPU and driver", limit_s=30)
    def promises(run: Run) -> None: ...

It runs in a process group of its own. When it ends, or at its time limit, the group is killed, and
every process that left it. It writes records line by line, so those written before it hung are
kept. Phases run in the order of ORDER, the parts of each in that of their numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from . import phases
from .run import GRACE_S, PHASE_OVER, Late, NotRun, Run, Wrong, killed, processes_below

PR_SET_PDEATHSIG = 1
LOG_MOST = 2000  # bytes of a helper's log in a result
PR_SET_CHILD_SUBREAPER = 36
ORDER = "AEDCB"  # of the phases: what tells most comes first, should there be no time for all
PHASE_LIMIT_S = {"A": 240, "E": 270}  # together with the build within ten minutes
PHASE_LIMIT_OTHERS_S = 480


class Part(NamedTuple):
    phase: str
    number: int
    title: str
    limit_s: int
    function: Callable[[Run], None]


REGISTERED: list[Part] = []


def part(phase: str, number: int, title: str, limit_s: int) -> Callable[..., Any]:
    """Registers a function as a part."""

    def register(function: Callable[[Run], None]) -> Callable[[Run], None]:
        REGISTERED.append(Part(phase, number, title, limit_s, function))
        return function

    return register


def load() -> list[Part]:
    """All parts, in running order."""
    for module in pkgutil.iter_modules(phases.__path__):
        importlib.import_module(f"{phases.__name__}.{module.name}")
    return sorted(REGISTERED, key=lambda each: (ORDER.index(each.phase), each.number))


def phase_limit_s(phase: str) -> int:
    return PHASE_LIMIT_S.get(phase, PHASE_LIMIT_OTHERS_S)


def new_result(each: Part, state: str) -> dict[str, Any]:
    lists: dict[str, Any] = {"facts": {}, "figures": [], "right": [], "skipped": [], "wrong": []}
    return {
        "phase": each.phase,
        "title": each.title,
        "state": state,
        "why": "",
        "hung": False,
        "seconds": 0.0,
        **lists,
    }


def ending_with(parent: int) -> None:
    """Kill this process group when the parent ends, however it ends."""
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def child(each: Part, run: Run, parent: int) -> None:
    """Runs the part. Does not return."""
    os.setsid()
    ending_with(parent)
    try:
        each.function(run)
    except Late as why:
        run.record("late", str(why))
    except NotRun as why:
        run.record("not_run", str(why))
    except Wrong as why:
        run.record("wrong", str(why))
    except BaseException:  # anything that a part raises goes into the report
        run.record("wrong", traceback.format_exc())
    run.record("end", None)
    sys.stdout.flush()
    os._exit(0)


def said(path: Path) -> Iterator[list[Any]]:
    """The records of a part; an incomplete line is left out."""
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def judged(each: Part, words: list[list[Any]], late: str, how: str) -> dict[str, Any]:
    """The result, from the records and the way the process ended. `late`: why it was killed."""
    result = new_result(each, "right")
    reasons: list[str] = [late] if late else []
    ended = False
    for kind, value in words:
        if kind in ("right", "skipped", "wrong"):
            result[kind].append(value)
        elif kind == "figure":
            result["figures"].append(value)
        elif kind == "fact":
            result["facts"][value[0]] = value[1]
        elif kind == "not_run":
            result["state"] = "not run"
            reasons.append(value)
        elif kind == "late":
            result["state"], result["hung"] = "not run", True
            reasons.append(f"time: {value}")
        elif kind == "end":
            ended = True
    result["why"] = "; ".join(reasons)
    if result["wrong"]:
        result["state"] = "WRONG"
    elif late:
        result["state"] = "not run"
    elif not ended:
        result["wrong"].append(f"the part ended without its last record: {how}")
        result["state"] = "WRONG"
    elif result["state"] == "right" and not (
        result["right"] or result["figures"] or result["facts"]
    ):
        result["state"], result["why"] = (
            "not run",
            "; ".join(result["skipped"]) or "no output",
        )
    return result


def ended(pid: int, before: set[int]) -> None:
    """Kill `pid`, its group, and all processes below this one that were not there `before`. Does
    not wait for a process that cannot be killed."""
    left = processes_below(os.getpid()) - before
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    killed({pid, *left})
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
                continue
        return


def wait(pid: int, limit_s: float) -> int | None:
    """Its wait status; None: it has not ended in time."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done == pid:
            return status
        time.sleep(0.02)
    return None


def logs_of(folder: Path) -> dict[str, str]:
    """The ends of what helper processes have said."""
    found = {}
    for log in sorted(folder.glob("*.log")):
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_MOST))
            found[log.name] = file.read().decode(errors="replace")
    return found


def run_part(each: Part, run: Run, limit_s: float) -> dict[str, Any]:
    """Runs a part in a process group of its own, and returns its result."""
    began = time.monotonic()
    short = limit_s < each.limit_s
    run.begin(limit_s, short)
    sys.stdout.flush()
    parent = os.getpid()
    # What leaves the part's group and loses its parent becomes a child of this process.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = processes_below(parent)
    # Python ignores exceptions raised around fork(), also by SIGTERM's handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    pid = os.fork()
    if pid == 0:
        child(each, run, parent)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        status = wait(pid, limit_s)
    finally:
        ended(pid, before)  # and helpers that it left running
    how = "" if status is None else f"wait status {status}"
    late = "" if status is not None else PHASE_OVER if short else "time: it exceeded its limit"
    result = judged(each, list(said(run.records)), late, how)
    result["hung"] = result["hung"] or (late != "" and not short)
    if late or result["wrong"]:
        result["logs"] = logs_of(run.work)
    result["seconds"] = round(time.monotonic() - began, 2)
    return result


def command_line(arguments: list[str]) -> str:
    return shlex.join(["tools/gpu-check", *arguments])
