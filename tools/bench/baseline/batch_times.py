# SPDX-License-Identifier: BSD-3-Clause
"""A process of its own, in which tokenizers' Python libraries encode many texts by one call, or one
long text, beside each other.

Run as `python -m bench.baseline.batch_times` with a JSON object on standard input: `engines`, the
vocabulary's `name`, `file` and `json`, `texts` (bench.texts.slices), `form` (native: ids as the
library gives them; lists: as Python's lists), `threads` at most, `rounds`, and a `seed`. A round is
a call of each engine, in random order. Prints, by engine: ids compared and the ns of each
round; or why it was not timed: `missing` or `wrong`. Ids are compared after each call's time is
taken.
"""

import gc
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.baseline import engines
from bench.texts import slices

Work = tuple[Callable[[], Any], Callable[[Any], bytes]]  # the call; all ids of what it gives


def work(engine: engines.Engine, texts: list[bytes], form: str, threads: int) -> Work:
    """CannotLoad: it has no such call. One text is encoded by the call for one, but to lists."""
    if len(texts) == 1 and (form == "native" or engine.lists is None):
        way = next(iter(engine.ways.values()))
        text, encode_one = way.text(memoryview(texts[0])), way.encode
        if form == "native" or way.as_bytes is engines.from_list:
            return lambda: encode_one(text), way.as_bytes
        return lambda: encode_one(text).tolist(), engines.from_list
    batch = engine.lists if form == "lists" else engine.batch or engine.lists
    if batch is None:
        raise engines.CannotLoad("it has no call for many texts with such a result")
    several, encode = [text.decode() for text in texts], batch.encode
    return lambda: encode(several, threads), batch.as_bytes


def main() -> int:
    asked = json.load(sys.stdin)
    pieces = slices.read(Path(asked["texts"]))
    right = b"".join(ids.tobytes() for _, ids in pieces)
    files = engines.Files(asked["name"], Path(asked["file"]), Path(asked["json"]))
    found: dict[str, Any] = {}
    calls: dict[str, Work] = {}
    for name in asked["engines"]:
        try:
            own = engines.load(name, files)
            calls[name] = work(own, [text for text, _ in pieces], asked["form"], asked["threads"])
            found[name] = {"ids": 0, "ns": []}
        except engines.CannotLoad as error:
            found[name] = {"missing": str(error)}
    order, dice = list(calls), random.Random(asked["seed"])
    gc.collect()
    gc.disable()
    for _ in range(asked["rounds"]):
        dice.shuffle(order)
        for name in (name for name in order if "wrong" not in found[name]):
            call, as_bytes = calls[name]
            begin = time.perf_counter_ns()
            result = call()
            found[name]["ns"].append(time.perf_counter_ns() - begin)
            if as_bytes(result) != right:
                found[name] = {"wrong": "the ids of all texts together are wrong"}
            else:
                found[name]["ids"] += len(right) // 4
            del result
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
