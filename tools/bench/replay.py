# SPDX-License-Identifier: BSD-3-Clause
"""Workers of one dpdk-tokd side by side, without clients: each tokenizes a capture of its own."""

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.appliance import READY_S, ring_bytes
from bench.process import NotReady, Process
from bench.programs import DPDK_TOKD
from bench.texts import frames, reference
from dpdk_tokd import RingReader
from dpdk_tokd.ops.telemetry import Telemetry

PACKET = 1200  # bytes of text in a packet
MOST_S = 120.0
IP = "10.0.0.1"
RECORD = 64  # bytes before a record's ids
MEMORY, MEMORY_EACH = 384, 128  # MB: of an appliance, and of each of its workers


class WrongReplay(Exception):
    """Ids in a token ring are not the reference's."""


@dataclass(frozen=True)
class Texts:
    """What each worker tokenizes, a text a packet, and what it must give."""

    texts: list[bytes]
    ids: list[np.ndarray]
    agreed: int  # bytes of text on which a second reference was asked, and agreed

    @property
    def ring_bytes(self) -> int:
        """Of a token ring that holds all of it, whatever the worst case that is reserved."""
        every = sum(RECORD + 4 * len(one) for one in self.ids) + 64 * PACKET
        return ring_bytes(every)


@dataclass(frozen=True)
class Replay:
    mb_per_s: list[float]  # of each worker: text by its busy time
    ids: int  # compared, of all


def texts(vocab: Path, corpora: dict[str, Path], most: int) -> Texts:
    """The first `most` bytes of each corpus, with the reference's ids."""
    whole = [path.read_bytes()[:most] for path in corpora.values()]
    cut = [c[i : i + PACKET] for c in whole for i in range(0, len(c), PACKET)]
    tokenizer = reference.load_gpt2(vocab)
    told = [text.decode("utf-8", "replace") for text in cut]
    agreed = reference.verify(tokenizer, vocab, reference.some(told))
    ids = [np.array(reference.ids(tokenizer, text), dtype=np.uint32) for text in told]
    return Texts(cut, ids, agreed)


def captures(folder: Path, given: Texts, workers: int) -> list[Path]:
    """The same for each, in files of their own, for none to have the better texts."""
    packets = [frames.text_frame(n, text, ids=False) for n, text in enumerate(given.texts)]
    paths = [folder / f"{worker}.pcap" for worker in range(workers)]
    for path in paths:
        frames.write_pcap(path, packets)
    return paths


def appliance(
    device: str,
    cpus: Sequence[int],
    own: list[str],
    folder: Path,
    prefix: str,
    before: Sequence[str] = (),
) -> Process:
    """dpdk-tokd with a worker on each of `cpus`, by the command `before` it."""
    lcores = ",".join(f"{i}@{cpu}" for i, cpu in enumerate(cpus))
    eal = ["--lcores", lcores, "--no-pci", f"--vdev={device}", "--file-prefix", prefix]
    # Telemetry says who had which stream: so not all that tools/demo has without huge pages.
    eal += ["--no-huge", "-m", str(MEMORY + MEMORY_EACH * len(cpus))]
    app = ["--socket", str(folder / f"{prefix}.sock"), *own]
    log = folder / f"{prefix}.log"
    return Process("dpdk-tokd", [*before, str(DPDK_TOKD), *eal, "--", *app], log)


def _compare(reader: RingReader, given: Texts, workers: int) -> int:
    """Each text must be there from each worker, whole and right. How many ids that are."""
    at = np.zeros((workers, len(given.texts)), dtype=np.int64)
    while (found := reader.poll()) is not None:
        whose = found.worker, found.stream_id
        right = given.ids[found.stream_id][found.first : found.first + len(found)]
        if found.aborted or found.first != at[whose] or not np.array_equal(found.tokens, right):
            raise WrongReplay(f"worker {whose[0]}, text {whose[1]}: not the reference's ids")
        at[whose] += len(found)
    short = np.argwhere(at != [len(right) for right in given.ids])
    if len(short):
        worker, text = short[0]
        raise WrongReplay(f"worker {worker}, text {text}: {at[worker, text]} ids, not all")
    return int(at.sum())


def replay(
    cpus: Sequence[int],
    vocab: Path,
    given: Texts,
    paths: Sequence[Path],
    folder: Path,
    before: Sequence[str] = (),
) -> Replay:
    """With a worker on each of `cpus`, each with its own of `paths`. WrongReplay: ids were wrong.

    The ids are compared when all workers are done: until then nobody else has work.
    """
    prefix = f"tokd-replay-{os.getpid()}"
    workers = range(len(cpus))
    device = ",".join(["net_pcap0", *(f"rx_pcap={path}" for path in paths[: len(cpus)])])
    own = ["--ip", IP, "--vocab", str(vocab), "--streams", "1024", "--wait-readers", "1"]
    own += ["--ring-size", str(given.ring_bytes)]
    with appliance(device, cpus, own, folder, prefix, before) as server, ExitStack() as stack:
        server.wait_for("ready:", READY_S)
        t = stack.enter_context(Telemetry(prefix))
        reader = stack.enter_context(RingReader(folder / f"{prefix}.sock"))
        deadline = time.monotonic() + MOST_S
        while sum(t.counters(w)["streams_done"] for w in workers) < len(cpus) * len(given.texts):
            if time.monotonic() > deadline:
                raise NotReady(f"the captures were not over after {MOST_S:.0f} s")
            time.sleep(0.05)
        hz = t.info()["tsc_hz"]
        counters = [t.counters(w) for w in workers]
        compared = _compare(reader, given, len(cpus))
    return Replay([c["text_bytes"] / c["cycles_busy"] * hz / 1e6 for c in counters], compared)
