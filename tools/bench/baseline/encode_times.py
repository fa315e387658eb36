# SPDX-License-Identifier: BSD-3-Clause
"""A process of its own, in which one tokenizer's Python library is timed.

Run as `python -m bench.baseline.encode_times ENGINE VOCAB JSON WARM_UP TEXTS first|again SECONDS`: by the fastest of
the library's calls on the texts of WARM_UP, each of TEXTS once; with `again` it has had all of them
before. Prints the ns of each, and how it was done; ends with WRONG where ids are not the
right ones, and with LONG where it would take longer than SECONDS.
"""

import gc
import json
import sys
import time
from pathlib import Path

from bench.baseline import engines
from bench.texts import slices

WRONG, LONG = 3, 4  # exit codes; the first is tok bench's as well
CLOCK_READS = 10_000


def _once(call: engines.Call, texts: list[tuple[memoryview, bytes]]) -> list[int]:
    """ns of each."""
    clock = time.perf_counter_ns
    took = []
    for index, (text, right) in enumerate(texts):
        begin = clock()
        ids = call(text)
        took.append(clock() - begin)
        if ids != right:
            print(f"text {index}: wrong ids", file=sys.stderr)
            sys.exit(WRONG)
    return took


def _read(path: str) -> list[tuple[memoryview, bytes]]:
    return [(memoryview(text), ids.tobytes()) for text, ids in slices.read(Path(path))]


def _clock_ns() -> float:
    clock = time.perf_counter_ns
    reads = [clock() for _ in range(CLOCK_READS + 1)]
    return (reads[-1] - reads[0]) / CLOCK_READS


def main() -> int:
    engine, vocab, tokenizer_json, warm_up, path, passes, seconds = sys.argv[1:]
    calls = engines.LOADERS[engine](Path(vocab), Path(tokenizer_json))
    first, texts = _read(warm_up), _read(path)
    for call in calls.values():
        _once(call, first)
    how, ns = engines.fastest(calls, [text for text, _ in first])
    rounds = 2 if passes == "again" else 1
    expected = ns[how] * sum(len(text) for text, _ in texts) * rounds / 1e9
    if expected > float(seconds):
        print(f"it would take some {expected:.0f} s, of {seconds} at most", file=sys.stderr)
        return LONG
    gc.collect()
    gc.disable()  # so that no call pays for what others left
    for _ in range(rounds):
        took = _once(calls[how], texts)
    ids = rounds * sum(len(right) // 4 for _, right in texts)
    print(json.dumps({"how": how, "ids": ids, "clock_ns": _clock_ns(), "ns": took}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
