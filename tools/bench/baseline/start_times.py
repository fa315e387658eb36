# SPDX-License-Identifier: BSD-3-Clause
"""A fresh process, in which one tokenizer's Python library loads a vocabulary and has its first
texts.

Run as `python -m bench.baseline.start_times` with a JSON object on standard input: `engine`, the
vocabulary's `name`, `file` and `json`, and `texts` (bench.texts.slices). Prints ids compared; the
ms to load, its module imported before; the ns of each text, none of which was seen before; and the
ns of a call for no text and for the text "a", or why it was not timed: `missing` or `wrong`.
"""

import importlib
import json
import statistics
import sys
import time
import timeit
from pathlib import Path
from typing import Any

from bench.baseline import encode_times, engines
from bench.texts import slices

CALLS, ROUNDS = 1000, 51


def tiny(way: engines.Way, text: bytes) -> float:
    """ns of a call: the median of rounds of many calls."""
    timer = timeit.Timer(
        "encode(t)", globals={"encode": way.encode, "t": way.text(memoryview(text))}
    )
    return statistics.median(timer.repeat(ROUNDS, CALLS)) * 1e9 / CALLS


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    pieces = slices.read(Path(asked["texts"]))
    files = engines.Files(asked["name"], Path(asked["file"]), Path(asked["json"]))
    importlib.import_module(engines.NEEDS[asked["engine"]][0])
    begin = time.perf_counter()
    try:
        ways = engines.load(asked["engine"], files).ways
        load = time.perf_counter() - begin
        way = next(iter(ways.values()))
        took = encode_times.once(way, encode_times.taken(way, pieces))
    except engines.CannotLoad as error:
        return {"missing": str(error)}
    except encode_times.WrongIds as error:
        return {"wrong": str(error)}
    return {
        "ids": sum(len(ids) for _, ids in pieces), "load_ms": load * 1e3, "ns": took,
        "empty": tiny(way, b""), "letter": tiny(way, b"a"),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
