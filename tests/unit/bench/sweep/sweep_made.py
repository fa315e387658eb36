# SPDX-License-Identifier: BSD-3-Clause
"""A task made for tests of tools/sweep, and ways to run it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.sweep import box as boxes
from bench.sweep import summary
from bench.sweep.runner import Runner
from bench.sweep.store import Store
from sweep_machine import HERE

ROOT = Path(__file__).resolve().parents[4]
TASK = """
import os, time
from pathlib import Path
from bench.samples import Samples
from bench.task import Choice, Distribution, Missing, Number, Report, Value, WrongIds
HELP = "For tests."
PARAMETERS = {"kind": Choice(("good", "wrong", "blind", "absent", "broken", "slow")),
              "ns": Number(1, 10_000), "count": Number(0, 100_000)}
METRICS = {"time": Distribution("us"), "speed": Value("1/s", better="higher")}
COUNTS = {"no-answer": "timed out"}
CHECKS_IDS = True
LOG = Path(__file__).with_name("log")

def log(word):
    with LOG.open("a") as file:
        file.write(word + "\\n")

def prepare(context):
    log("prepare")
    context.stack.callback(log, "closed")
    return context

def run(state, p):
    log(f"{p['kind']} {p['ns']}")
    if p["kind"] == "absent":
        raise Missing("no such device")
    if p["kind"] == "broken":
        raise ValueError("it broke")
    if p["kind"] == "wrong":
        raise WrongIds("text 3: wrong ids")
    if p["kind"] == "slow":
        time.sleep(0.1)
    return p

def report(state, p, raw):
    samples = Samples()
    if p["count"]:
        samples.add(p["ns"], p["count"])
    return Report({"speed": 1e9 / p["ns"]}, {"time": samples}, {"no-answer": 2},
                  ids_checked=0 if p["kind"] == "blind" else 7)

def clean(state):
    log("clean")
"""
PARAMETERS = {"kind": ["good"], "ns": [1000, 2000], "count": [1000]}


def box_of(folder: Path, task: str, repeats: int, **entry: Any) -> Path:
    """A box with one entry, of the task `made` with this text."""
    place = folder / "tasks" / "made" / "task.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(task)
    whole = {"name": "b", "title": "T", "repeats": {"full": repeats, "quick": 1}}
    path = folder / "box.json"
    path.write_text(json.dumps(whole | {"tests": [{"task": "made"} | entry]}))
    return path


def swept(path: Path, out: Path, here: dict[str, Any] = HERE) -> dict[str, Any]:
    box = boxes.load(path, quick=False)
    store = Store(out)
    store.begin(box, False, here, fresh=False)
    Runner(box, store, False, here).run()
    result = summary.summarize(box, store, "a command")
    (out / "results.json").write_text(json.dumps(result))
    return result


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bench.sweep", *arguments]


def start(*arguments: str) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT / "tools"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        command(*arguments), env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
