# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd --sink gpu on captures that its workers replay, without network and client, so that
only the ring to the consumer is measured. Every row and id is checked."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from dpdk_tokd import EmbeddingReader, EmbeddingStatus, RingReader
from dpdk_tokd.ops.telemetry import Histogram, Telemetry

from bench.appliance import CAPTURE_IP, Appliance, on_captures
from bench.captures import InOrder, Texts, check_ring
from bench.process import NotReady
from bench.samples import Samples
from bench.task import WrongIds
from bench.texts import reference
from bench.texts.slices import Cursor, EndOfCorpus

LOOK_S = 0.005  # between two looks at what is done
LIMIT_S = 120.0


class Replay(Appliance):
    """A dpdk-tokd each of whose workers replays `capture`, worker i on cpus[i]."""

    def __init__(
        self,
        capture: Path,
        texts: Texts,
        vocab: Path,
        sink: str,
        cpus: Sequence[int],
        huge: bool,
        *more: str,
    ) -> None:
        self.ids = texts.ids
        # The token ring has room for everything, so a slow reader blocks nobody.
        own = ["--ring-size", str(texts.ring_bytes), "--sink", sink, *more]
        device = on_captures([capture] * len(cpus))
        super().__init__(device, CAPTURE_IP, vocab, capture.parent, cpus, huge, *own)


def check_rows(replay: Replay, subscriber: EmbeddingReader, table: np.ndarray) -> int:
    """Compare all rows with `table`'s rows of the reference's ids; returns the number of ids."""
    due = InOrder(replay.ids, replay.workers)
    while due.left:
        e = next(subscriber)
        right = due.take(e.worker, e.request, e.first, len(e), e.last)
        if e.status != EmbeddingStatus.OK or e.aborted or not np.array_equal(e.array, table[right]):
            raise WrongIds(f"worker {e.worker}: embeddings are not those of the reference's ids")
    return due.checked


@dataclass(frozen=True)
class Embedded:
    seconds: float  # from the first packet that a worker could take to all rows written
    counters: dict[str, int]
    posted_to_done: Histogram
    ids_checked: int


def _wait(telemetry: Telemetry, wanted: int) -> dict[str, int]:
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = telemetry.counters()
        if found["sink_tokens"] == wanted and found["sink_done"] == found["sink_slots"]:
            return found
        if time.monotonic() > deadline:
            told = ", ".join(f"{name} {n:,}" for name, n in found.items() if n)
            raise NotReady(f"not all of {wanted:,} ids were embedded in {LIMIT_S:.0f} s: {told}")
        time.sleep(LOOK_S)


def embed_all(replay: Replay) -> Embedded:
    """Start a Replay that waits for a reader (--wait-readers 1); compare every id after timing."""
    with Telemetry(folder=replay.telemetry) as telemetry, ExitStack() as stack:
        begin = time.monotonic()
        reader = stack.enter_context(RingReader(str(replay.socket)))
        counters = _wait(telemetry, replay.workers * sum(map(len, replay.ids)))
        seconds = time.monotonic() - begin
        times = telemetry.histogram("posted_to_done")
        checked = check_ring(reader, replay.ids, replay.workers)
    return Embedded(seconds, counters, times, checked)


def samples_of(times: Histogram) -> Samples:
    """Upper ends of the worker's buckets, which are at most 6% wide."""
    samples = Samples()
    for i, count in enumerate(times.counts):
        if count:
            samples.add(round(times.bound(i) * 1e9), count)
    return samples


# ---- texts ----


def _cut(ranks: Path, size: int, count: int, corpus: Path) -> list[tuple[bytes, np.ndarray]]:
    tokenizer = reference.load_gpt2(ranks)
    cursor = Cursor(corpus.read_text(encoding="utf-8"))
    found: list[tuple[bytes, np.ndarray]] = []
    try:
        while len(found) < count:
            text = cursor.bytes(size)
            found.append((text.encode(), np.array(reference.ids(tokenizer, text), np.uint32)))
    except EndOfCorpus:
        pass
    return found


def texts(ranks: Path, corpora: Sequence[Path], size: int, count: int) -> Texts:
    """About `count` texts of `size` bytes, one per packet, of all corpora interleaved, with the
    reference's ids; tiktoken agrees on a sample. Raises ReferenceMismatch."""
    each = -(-count // len(corpora))
    with ProcessPoolExecutor(2) as pool:
        parts = list(pool.map(partial(_cut, ranks, size, each), corpora))
    found = [one for some in zip(*parts, strict=False) for one in some]
    some = (text.decode() for text, _ in reference.some(found))
    agreed = reference.verify(reference.load_gpt2(ranks), ranks, some)
    return Texts([text for text, _ in found], [ids for _, ids in found], agreed)
