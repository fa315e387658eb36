# SPDX-License-Identifier: BSD-3-Clause
"""Kills at random moments under load: appliance, agent, reader, client, holder of embeddings. The
load gets all its ids, and no reader sees a text wrong, or twice under one name.

TESTS_KILLS=N: so many kills, instead of one of each."""

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from appliance import until
from bench.lab.beside import Beside
from bench.programs import DPDK_TOKD
from dpdk_tokd import Client, EmbeddingReader, EmbeddingStatus, RingError, TokdError
from dpdk_tokd.embeddings.table import random_table
from gpu_agent import Agent
from netlab import NO_HUGE, SERVER_IP, NetAppliance
from ring_check import RingCheck
from samples import documents

PARTS = ("appliance", "agent", "reader", "client", "holder")
KILLS = int(os.environ.get("TESTS_KILLS", len(PARTS)))
ROWS, DIM, SEED = 50257, 16, 3
BATCH, IN_FLIGHT = 40, 32
LEAST_BATCHES = 2  # between two kills

CLIENT_TEXT, CLIENT_TEXTS = b"text %d of a client that dies", 50
CLIENT = f"""
import sys
from dpdk_tokd import Client
texts = [{CLIENT_TEXT} % i for i in range({CLIENT_TEXTS})]
with Client(sys.argv[1], timeout=60) as client:
    print("up", flush=True)
    while True:
        client.tokenize_many(texts)
"""
HOLDER = """
import sys
from dpdk_tokd import EmbeddingReader
with EmbeddingReader(sys.argv[1]) as reader:
    print("up", flush=True)
    held = []
    for e in reader:
        held.append(e.hold())
        if len(held) > 8:
            held.pop(0).release()
"""


class Rows(Beside):
    """A subscriber that checks rows: those of a text's ids, in order."""

    def __init__(self, subscribers: Path, ring: RingCheck) -> None:
        super().__init__()
        self._subscribers, self._ring = subscribers, ring
        self._table = random_table(ROWS, DIM, SEED)
        keys = self._keys(self._table)
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        self._open: dict[tuple[int, int], list[int]] = {}
        self.faults: list[str] = []
        self.complete = 0

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with EmbeddingReader(self._subscribers, timeout=0.2) as reader:
                    self._read(reader)
            except (OSError, RingError):  # the agent is down
                self._stop.wait(0.01)

    def _read(self, reader: EmbeddingReader) -> None:
        while not self._stop.is_set():
            try:
                e = next(reader)
            except TimeoutError:
                continue
            except StopIteration:
                return
            if e.status != EmbeddingStatus.OK and not e.aborted:
                self.faults.append(f"text {e.request}: {e.status.name}")
            text = self._open.setdefault((e.instance, e.request), [])
            if e.first > len(text):  # it began before this reader attached
                continue
            text[e.first :] = [] if e.aborted else self._ids(e.array)
            if e.last and not e.aborted:
                self.complete += 1
                if not self._ring.is_expected(np.array(text, np.uint32)):
                    self.faults.append(f"text {e.request} has rows of other ids")
            if e.last:
                del self._open[e.instance, e.request]

    @staticmethod
    def _keys(rows: np.ndarray) -> np.ndarray:
        """Two columns of each row tell them apart."""
        return np.ascontiguousarray(rows[:, :2]).view(np.uint64)[:, 0]

    def _ids(self, rows: np.ndarray) -> list[int]:
        at = np.minimum(np.searchsorted(self._sorted, self._keys(rows)), ROWS - 1)
        ids = self._order[at]
        if not np.array_equal(self._table[ids], rows):
            self.faults.append("rows of no id")
        return ids.tolist()


class Load(Beside):
    """Texts, each another one, until told to stop; what fails is asked for again."""

    def __init__(self, lab, gpt2, ring: RingCheck) -> None:
        super().__init__()
        self._lab, self._gpt2, self._ring = lab, gpt2, ring
        self.batches = 0
        self.failures: Counter[str] = Counter()
        self.wrong: list[bytes] = []
        self.answered: list[int] = []

    def _run(self) -> None:
        rng, real = random.Random(5), documents()
        with self._lab.call(lambda: Client(SERVER_IP, timeout=10)) as client:
            while not self._stop.is_set():
                batch = []
                for i in range(BATCH):
                    size = 9000 if rng.random() < 0.02 else rng.randrange(1000)
                    at = rng.randrange(len(real) - size)
                    batch.append(b"%d %s" % (self.batches * BATCH + i, real[at : at + size]))
                self._send(client, batch)

    def _send(self, client: Client, batch: list[bytes]) -> None:
        wanted = [self._gpt2.encode(text) for text in batch]
        numbers = [self._ring.expect(ids) for ids in wanted]
        while True:
            try:
                got = client.tokenize_many(batch, in_flight=IN_FLIGHT)
                break
            except (TokdError, TimeoutError) as e:
                self.failures[getattr(getattr(e, "reason", None), "name", "timeout")] += 1
        for text, a, b in zip(batch, got, wanted, strict=True):
            if a.tolist() != b.tolist():
                self.wrong.append(text)
        self.answered += numbers
        self.batches += 1


def spawned(*command: str | Path, says: str = "stdout") -> subprocess.Popen[str]:
    """Once it has said its first line."""
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, says: subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **streams)
    assert (process.stdout or process.stderr).readline() != ""
    return process


class Parts:
    """All that may be killed, and how it is started."""

    def __init__(
        self, folder: Path, namespace: str, appliance: Callable[..., NetAppliance]
    ) -> None:
        self._folder = folder / "agent"
        self._folder.mkdir()
        self._make_appliance = appliance
        self._inside = ["ip", "netns", "exec", namespace]
        self.running: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.start("agent")
        self.start("appliance")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.running:
            self.kill(name)

    def start(self, name: str) -> None:
        table = f"random:{ROWS}x{DIM}:{SEED}"
        if name == "agent":
            one: Any = Agent(self._folder, "--out-bytes", "64M", table=table)
        elif name == "appliance":
            one = self._make_appliance(f"gpu=shm:{self._folder / 'ring'}")
            one.wait_ready(60)
        elif name == "reader":
            tail = DPDK_TOKD.with_name("tokd-tail")
            one = spawned(tail, "--socket", self.running["appliance"].socket, says="stderr")
        elif name == "client":
            one = spawned(*self._inside, sys.executable, "-c", CLIENT, SERVER_IP)
        else:
            one = spawned(sys.executable, "-c", HOLDER, self.running["agent"].subscribers)
        self.running[name] = one

    def is_alive(self, name: str) -> bool:
        one = self.running.get(name)
        if isinstance(one, NetAppliance):
            return one.running
        return one is not None and getattr(one, "process", one).poll() is None

    def kill(self, name: str) -> None:
        one = getattr(self.running[name], "process", self.running[name])
        one.send_signal(signal.SIGKILL)
        one.wait(10)
        if isinstance(one, NetAppliance):
            one.__exit__()  # removes its files

    def restart(self) -> None:
        """Whoever has gone: also with the one who was killed."""
        for name in PARTS:
            if not self.is_alive(name):
                self.start(name)


def test_whoever_is_killed_nothing_is_lost_wrong_or_twice(lab, huge, gpt2_file, gpt2, tmp_path):
    def appliance(sink: str) -> NetAppliance:
        args = ("--sink", sink, "--wait-readers", "2")  # all see all records
        # Killed, it cannot remove files of huge pages.
        memory = NO_HUGE if huge is None else [*huge, "--in-memory"]
        return NetAppliance(
            lab, gpt2_file, tmp_path, driver="net_af_packet", memory=memory, args=args
        )

    rng = random.Random(3)
    victims = list(PARTS) * (KILLS // len(PARTS))
    rng.shuffle(victims)
    ready_s: dict[str, list[float]] = {name: [] for name in PARTS}
    with (
        Parts(tmp_path, lab.namespace, appliance) as parts,
        RingCheck(parts.running["appliance"].socket) as ring,
        Rows(parts.running["agent"].subscribers, ring) as rows,
        Load(lab, gpt2, ring) as load,
    ):
        for i in range(CLIENT_TEXTS):
            ring.expect(gpt2.encode(CLIENT_TEXT % i))
        parts.restart()
        for name in victims:
            before = load.batches
            until(lambda before=before: load.batches >= before + LEAST_BATCHES)
            time.sleep(rng.random() * 0.2)
            at = time.monotonic()
            parts.kill(name)
            parts.restart()
            ready_s[name].append(time.monotonic() - at)
        load.stop()
        missing = set(load.answered)
        with contextlib.suppress(AssertionError):
            until(lambda: missing <= ring.complete.keys() or bool(ring.faults), 20)
        missing -= ring.complete.keys()
        assert rows.complete > 0
    print(
        f"{len(victims)} kills, {len(load.answered)} requests of the load, asked again after "
        f"{dict(load.failures)}; {sum(ring.complete.values())} texts complete in {ring.restarts + 1} "
        f"rings, {rows.complete} embedded; ready again, median s: ",
        {name: round(statistics.median(s), 2) for name, s in ready_s.items()},
    )
    assert missing == set() and load.wrong == [] and ring.faults == [] and rows.faults == []
    assert ring.restarts == victims.count("appliance")
