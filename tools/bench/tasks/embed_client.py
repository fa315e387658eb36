# SPDX-License-Identifier: BSD-3-Clause
"""A process that sends texts to dpdk-tokd, one at a time, and takes their rows as a subscriber.

Run in the client's namespace as `python -m bench.tasks.embed_client`, with what it needs as JSON on
standard input. It prints, as JSON, the time stamps of each text's last slot, and the worker's
histograms of the texts behind the warm-up. Every row is compared with NumPy's row of the random
table for the reference's id.
"""

import json
import socket
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from dpdk_tokd import EmbeddingReader, EmbeddingStatus
from dpdk_tokd.embeddings.embedding import Embedding
from dpdk_tokd.embeddings.table import random_table
from dpdk_tokd.ops.telemetry import Histogram, Telemetry

from bench.client import WRONG
from bench.texts import frames
from bench.texts.slices import read

TIMEOUT_S = 20.0
SEED = 1
HISTOGRAMS = ("tokenizer", "wire_to_ring", "posted_to_done")


class WrongRows(Exception):
    """Unlike rows that do not come, which a machine that is too busy can cause."""


def _rows(reader: EmbeddingReader, e: Embedding) -> np.ndarray:
    if reader.cuda_device is None:
        return e.array
    import torch  # rows in GPU memory; its DLPack object releases them when it is gone

    return torch.from_dlpack(e).cpu().numpy()


def _take(reader: EmbeddingReader, right: np.ndarray, before: int) -> dict[str, int]:
    """Check all rows of the text that follows request `before`; the time stamps of its last slot,
    and whether rows came again, as after a new connection of the sink. WrongRows; ValueError: they
    are not all there, in order."""
    at, again = 0, 0
    for e in reader:
        if e.request <= before:
            continue
        if e.first > at or e.aborted or e.status != EmbeddingStatus.OK:
            raise ValueError(f"{e!r} came instead of the rows from {at} on")
        if not np.array_equal(_rows(reader, e), right[e.first : e.first + len(e)]):
            raise WrongRows(f"{e!r}: rows are not the reference's")
        again |= e.first < at
        at = max(at, e.first + len(e))
        if e.last:
            if at != len(right):
                raise ValueError(f"request {e.request}: {at} rows of {len(right)}")
            return {
                "serial": e.request,
                "posted": e.t_post,
                "visible": e.visible_ns,
                "written": e.embedded_ns,
                "ready": e.t_ready_ns,
                "again": int(again),
            }
    raise ValueError("tokd-gpu has ended")


def _settled(telemetry: Telemetry) -> tuple[dict[str, Histogram], int]:
    """Once the worker has read all its slots as done: its histograms, and how many texts it has
    posted as bytes that did not come back."""
    deadline = time.monotonic() + TIMEOUT_S
    while (found := telemetry.counters())["sink_done"] != found["sink_slots"]:
        if time.monotonic() > deadline:
            raise ValueError(f"{found['sink_done']} of {found['sink_slots']} slots are done")
    as_bytes = found.get("sink_texts", 0) - found.get("sink_texts_cpu", 0)
    return {name: telemetry.histogram(name) for name in HISTOGRAMS}, as_bytes


def main() -> int:
    told = json.load(sys.stdin)
    table = random_table(told["rows"], told["dim"], SEED)
    stamps: list[dict[str, int]] = []
    before: dict[str, Histogram] = {}
    bytes_before = 0
    with (
        EmbeddingReader(told["subscribers"], timeout=TIMEOUT_S) as reader,
        Telemetry(folder=Path(told["telemetry"])) as telemetry,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        sender.connect((told["server"], told["port"]))
        for at, (text, ids) in enumerate(read(Path(told["texts"]))):
            if at == told["warm_up"]:
                before, bytes_before = _settled(telemetry)
            for packet in frames.datagrams(at + 1, text):
                sender.send(packet)
            stamps.append(_take(reader, table[ids], stamps[-1]["serial"] if stamps else -1))
        after, as_bytes = _settled(telemetry)
    found = {
        "texts": stamps[told["warm_up"] :],
        "histograms": {name: asdict(h.since(before[name])) for name, h in after.items()},
        "as_bytes": as_bytes - bytes_before,
    }
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WrongRows as error:
        print(error, file=sys.stderr)
        sys.exit(WRONG)
