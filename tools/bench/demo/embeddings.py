# SPDX-License-Identifier: BSD-3-Clause
"""A process that gets ids from dpdk-tokd, one text at a time, and reads their embeddings.

Run in the client's namespace as `python -m bench.demo.embeddings SERVER PORT SUBSCRIBERS SLICES
TABLE RESULT CPU`. Every id is compared with the reference's, every row with NumPy's row of the
random table for the reference's id.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from dpdk_tokd import Client, EmbeddingReader, EmbeddingStatus
from dpdk_tokd.embeddings.table import random_table

from bench.texts.slices import read

TIMEOUT_S = 20.0


class Checker:
    def __init__(self, table: str) -> None:
        shape, seed = table.removeprefix("random:").split(":")
        rows, dim = (int(n) for n in shape.split("x"))
        self.table = random_table(rows, dim, int(seed))
        self.wrong_ids = 0
        self.wrong_rows = 0
        self.rows = 0
        self.embed_ns: list[int] = []  # a slot: visible to embedded
        self.hand_out_ns: list[int] = []  # embedded to handed out

    def take(self, reader: EmbeddingReader, right: np.ndarray) -> None:
        """Check all rows of a text."""
        at = 0
        request = None
        for e in reader:
            rows = self.table[right[e.first : e.first + len(e)]]
            request = e.request if request is None else request
            in_order = e.first == at and e.request == request and not e.aborted
            if not in_order or e.status != EmbeddingStatus.OK or not np.array_equal(e.array, rows):
                self.wrong_rows += 1
            at += len(e)
            self.rows += len(e)
            self.embed_ns.append(e.embedded_ns - e.visible_ns)
            self.hand_out_ns.append(e.t_ready_ns - e.embedded_ns)
            if e.last:
                self.wrong_rows += at != len(right)
                return
        self.wrong_rows += 1  # the agent has ended


def main() -> int:
    server, port, subscribers, slices, table, result, cpu = sys.argv[1:]
    os.sched_setaffinity(0, {int(cpu)})
    checker = Checker(table)
    texts = read(Path(slices))
    ids_ns: list[int] = []
    whole_ns: list[int] = []
    with (
        EmbeddingReader(subscribers, timeout=TIMEOUT_S) as reader,
        Client(server, int(port)) as client,
    ):
        for text, right in texts:
            start = time.monotonic_ns()
            ids = client.tokenize(text)
            ids_ns.append(time.monotonic_ns() - start)
            checker.take(reader, right)
            whole_ns.append(time.monotonic_ns() - start)
            checker.wrong_ids += not np.array_equal(ids, right)
    found = {name: value for name, value in vars(checker).items() if name != "table"}
    Path(result).write_text(json.dumps(found | {"ids_ns": ids_ns, "whole_ns": whole_ns}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
