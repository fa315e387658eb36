# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd --sink gpu on captures that its workers replay: no network and no client, so that the
ring to the consumer is what is measured, and rows and ids that are looked at one by one."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from bench.appliance import HUGE, NO_HUGE, READY_S, ring_bytes
from bench.lab.host_measures import ENDS_WITH_US
from bench.process import NotReady, Process
from bench.programs import DPDK_TOKD
from bench.task import WrongIds
from bench.texts import reference
from bench.texts.slices import Cursor, EndOfCorpus
from dpdk_tokd import EmbeddingReader, EmbeddingStatus, RingReader
from dpdk_tokd.ops.telemetry import Histogram, Telemetry

RECORD_BYTES = 128  # of a record beside its ids, at most
LOOK_S = 0.005  # between two looks at what is done
LIMIT_S = 120.0


class Replay(Process):
    """A dpdk-tokd each of whose workers replays `capture`, worker i on cpus[i]."""

    def __init__(
        self,
        capture: Path,
        ids: Sequence[np.ndarray],
        vocab: Path,
        sink: str,
        cpus: Sequence[int],
        huge: bool,
        *more: str,
    ) -> None:
        folder = capture.parent
        self.socket = folder / "tokd.sock"
        self.telemetry = folder / "dpdk"
        self.ids, self.workers = ids, len(cpus)
        lcores = ",".join(f"{i}@{cpu}" for i, cpu in enumerate(cpus))
        device = ",".join(["net_pcap0", *(f"rx_pcap={capture}" for _ in cpus)])
        eal = ["--lcores", lcores, "--no-pci", f"--vdev={device}", *(HUGE if huge else NO_HUGE)]
        # All of it has room in the token ring: whoever reads it then is in nobody's way.
        ring = ring_bytes(sum(4 * len(one) + RECORD_BYTES for one in ids))
        own = ["--ip", "10.0.0.1", "--vocab", str(vocab), "--socket", str(self.socket)]
        own += ["--ring-size", str(ring), "--sink", sink, *more]
        command = [*ENDS_WITH_US, str(DPDK_TOKD), *eal, "--", *own]
        log = folder / "dpdk-tokd.log"
        super().__init__("dpdk-tokd", command, log, RUNTIME_DIRECTORY=str(folder))
        try:
            self.wait_for("ready:", READY_S)
        except BaseException:
            self.stop()
            raise


class InOrder:
    """What comes of each worker: texts in the order of the capture, each without gaps."""

    def __init__(self, ids: Sequence[np.ndarray], workers: int) -> None:
        self.ids = ids
        self._text, self._at = [0] * workers, [0] * workers
        self.left = workers * len(ids)
        self.checked = 0

    def take(self, worker: int, first: int, count: int, last: bool) -> np.ndarray:
        """The reference's ids of what came now; WrongIds where it is out of place."""
        text, at = self._text[worker], self._at[worker]
        if text == len(self.ids):
            raise WrongIds(f"worker {worker}: more than was sent")
        right = self.ids[text][at : at + count]
        is_whole = at + count == len(self.ids[text])
        if first != at or len(right) != count or (last and not is_whole):
            raise WrongIds(f"worker {worker}, text {text}: {count} ids from {first} on, {last=}")
        self._text[worker], self._at[worker] = (text + 1, 0) if last else (text, at + count)
        self.left -= last
        self.checked += count
        return right


def check_rows(replay: Replay, holder: EmbeddingReader, table: np.ndarray) -> int:
    """All rows of all texts against `table`'s of the reference's ids; how many ids these were."""
    due = InOrder(replay.ids, replay.workers)
    while due.left:
        e = next(holder)
        right = due.take(e.worker, e.first, len(e), e.last)
        if e.status != EmbeddingStatus.OK or e.aborted or not np.array_equal(e.array, table[right]):
            raise WrongIds(f"worker {e.worker}: embeddings are not those of the reference's ids")
    return due.checked


@dataclass(frozen=True)
class Embedded:
    seconds: float  # from the first packet that a worker might take until all rows were written
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
    """Lets a Replay with --wait-readers 1 go. Every id is compared once all times are taken."""
    due = InOrder(replay.ids, replay.workers)
    with Telemetry(folder=replay.telemetry) as telemetry, ExitStack() as stack:
        begin = time.monotonic()
        reader = stack.enter_context(RingReader(str(replay.socket)))
        counters = _wait(telemetry, replay.workers * sum(map(len, replay.ids)))
        seconds = time.monotonic() - begin
        times = telemetry.histogram("posted_to_done")
        while due.left:
            given = reader.poll()
            if given is None:
                raise WrongIds(f"{due.left} texts are not in the token ring")
            right = due.take(given.worker, given.first, len(given), given.last)
            if given.aborted or not np.array_equal(given.tokens, right):
                raise WrongIds(f"worker {given.worker}: ids are not the reference's")
    return Embedded(seconds, counters, times, due.checked)


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


def texts(
    ranks: Path, corpora: Sequence[Path], size: int, count: int
) -> list[tuple[bytes, np.ndarray]]:
    """About `count` texts of `size` bytes, a packet each, with the reference's ids, on some of
    which tiktoken has agreed; the corpora take turns. ReferenceMismatch."""
    each = -(-count // len(corpora))
    with ProcessPoolExecutor(2) as pool:
        parts = list(pool.map(partial(_cut, ranks, size, each), corpora))
    found = [one for some in zip(*parts, strict=False) for one in some]
    some = (text.decode() for text, _ in reference.some(found))
    reference.verify(reference.load_gpt2(ranks), ranks, some)
    return found
