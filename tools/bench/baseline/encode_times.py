# SPDX-License-Identifier: BSD-3-Clause
"""A process of its own, in which tokenizers' Python libraries are timed beside each other.

Run as `python -m bench.baseline.encode_times` with a JSON object on standard input: `engines`, the
vocabulary's `name`, `file` and `json`, the texts of `warm_up` and `texts` (bench.texts.slices), the
`seconds` that an engine may take at most, and a `seed`. Each engine takes the fastest of its
library's calls on the texts to warm up. Then all texts are encoded once, and again: in blocks, for
each of which the engines take turns in random order. A block is long enough for the CPU's
caches to be the engine's own in most calls. Ids are compared after each call's time is taken.

Prints, by engine: how it was done, ids compared, and the ns of each call, `first` and `again`; or
why it was not timed: `missing` or `wrong`. What a library takes and gives (str, bytes; a list, an
array) is as it is, and what turns one into the other is not timed.
"""

import gc
import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.baseline import engines
from bench.texts import slices

PASSES = ("first", "again")
BLOCKS, BLOCK = 10, 50  # at most so many, of so many texts at least
CLOCK_READS = 10_000
Texts = list[tuple[Any, bytes]]  # as an engine takes them, and the ids they must give


class WrongIds(Exception):
    pass


@dataclass
class Timed:
    """An engine that is timed."""

    way: engines.Way
    how: str
    texts: Texts
    ns: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in PASSES})
    wrong: str = ""


def once(way: engines.Way, texts: Texts, begin_at: int = 0) -> list[int]:
    """ns of each. WrongIds: of which text."""
    clock, encode, as_bytes = time.perf_counter_ns, way.encode, way.as_bytes
    took = []
    for index, (text, right) in enumerate(texts, begin_at):
        begin = clock()
        ids = encode(text)
        took.append(clock() - begin)
        if as_bytes(ids) != right:
            raise WrongIds(f"text {index}: wrong ids")
    return took


def taken(way: engines.Way, pieces: list[tuple[bytes, Any]]) -> Texts:
    return [(way.text(memoryview(text)), ids.tobytes()) for text, ids in pieces]


def clock_ns() -> float:
    clock = time.perf_counter_ns
    reads = [clock() for _ in range(CLOCK_READS + 1)]
    return (reads[-1] - reads[0]) / CLOCK_READS


def prepare(engine: str, asked: dict[str, Any], first: list[Any], texts: list[Any]) -> Any:
    """What is timed, or why it is not."""
    files = engines.Files(asked["name"], Path(asked["file"]), Path(asked["json"]))
    try:
        ways = engines.load(engine, files).ways
        samples = {how: taken(way, first) for how, way in ways.items()}
        for how, way in ways.items():
            once(way, samples[how])
    except engines.CannotLoad as error:
        return {"missing": str(error)}
    except WrongIds as error:
        return {"wrong": str(error)}
    how, ns = engines.fastest(
        {how: way.encode for how, way in ways.items()},
        {how: [text for text, _ in sample] for how, sample in samples.items()},
    )
    per_byte = ns[how] / sum(len(text) for text, _ in first)
    expected = per_byte * sum(len(text) for text, _ in texts) * len(PASSES) / 1e9
    if expected > asked["seconds"]:
        seconds = asked["seconds"]
        return {"missing": f"it would take some {expected:.0f} s, of {seconds} at most"}
    return Timed(ways[how], how, taken(ways[how], texts))


def measure(timed: dict[str, Timed], count: int, seed: int) -> None:
    order, dice = list(timed), random.Random(seed)
    size = max(BLOCK, -(-count // BLOCKS))
    for which in PASSES:
        for begin in range(0, count, size):
            dice.shuffle(order)
            for one in (timed[name] for name in order if not timed[name].wrong):
                try:
                    one.ns[which] += once(one.way, one.texts[begin : begin + size], begin)
                except WrongIds as error:
                    one.wrong = str(error)


def main() -> int:
    asked = json.load(sys.stdin)
    first, texts = slices.read(Path(asked["warm_up"])), slices.read(Path(asked["texts"]))
    found = {engine: prepare(engine, asked, first, texts) for engine in asked["engines"]}
    timed = {engine: one for engine, one in found.items() if isinstance(one, Timed)}
    gc.collect()
    gc.disable()  # so that no call pays for what others left
    measure(timed, len(texts), asked["seed"])
    ids = len(PASSES) * sum(len(right) for _, right in texts)
    clock = clock_ns()
    for engine, one in timed.items():
        if one.wrong:
            found[engine] = {"wrong": one.wrong}
        else:
            found[engine] = {"how": one.how, "ids": ids, "clock_ns": clock}
            found[engine] |= {which: {"ns": one.ns[which]} for which in PASSES}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
