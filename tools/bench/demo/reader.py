# SPDX-License-Identifier: BSD-3-Clause
"""A process that reads the token ring without a copy and checks every id.

Run as `python -m bench.demo.reader SOCKET SLICES PROGRESS RESULT CPU`: stream n of the ring is
slice n - 1 of SLICES. PROGRESS gets the number of complete streams. Ends when all are complete, or
with dpdk-tokd.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from dpdk_tokd import RingReader, TokenRange

from bench.texts.slices import read


class Checker:
    def __init__(self, expected: list[np.ndarray]) -> None:
        self.expected = expected
        self.arrived = [0] * len(expected)
        self.ids = 0
        self.ranges = 0
        self.complete = 0
        self.wrong = 0
        self.copies = 0  # ranges that were not views of read-only ring memory

    def take(self, given: TokenRange) -> None:
        index = given.stream_id - 1
        right = self.expected[index]
        end = given.first + len(given)
        in_order = given.first == self.arrived[index] and not given.aborted
        if not in_order or not np.array_equal(given.tokens, right[given.first : end]):
            self.wrong += 1
        if given.tokens.flags.owndata or given.tokens.flags.writeable:
            self.copies += 1
        self.arrived[index] = end
        self.ids += len(given)
        self.ranges += 1
        if given.last:
            self.complete += 1
            self.wrong += end != len(right)

    def result(self) -> dict[str, int]:
        return {
            "streams": self.complete,
            "ranges": self.ranges,
            "ids": self.ids,
            "wrong": self.wrong,
            "copies": self.copies,
        }


def main() -> int:
    socket, slices, progress, result, cpu = sys.argv[1:]
    os.sched_setaffinity(0, {int(cpu)})
    checker = Checker([ids for _, ids in read(Path(slices))])
    written = os.open(progress, os.O_WRONLY | os.O_CREAT, 0o600)
    with RingReader(socket) as reader:
        print("attached", flush=True)
        for given in reader:
            checker.take(given)
            if given.last:
                os.pwrite(written, b"%010d" % checker.complete, 0)
                if checker.complete == len(checker.expected):
                    break
    Path(result).write_text(json.dumps(checker.result()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
