# SPDX-License-Identifier: BSD-3-Clause
"""Packets to embeddings: dpdk-tokd --sink gpu, tokd-gpu on the CPU; rows equal NumPy's."""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dpdk_tokd import Client, EmbeddingReader, EmbeddingStatus
from dpdk_tokd.embeddings.table import random_table
from gpu_agent import Agent
from netlab import SERVER_IP
from raw_client import RawStream
from samples import documents

ROWS, DIM, SEED = 50257, 96, 3
WORD = random_table(ROWS, DIM, SEED)
PIECE = 700  # bytes a packet


def real_text(size: int) -> bytes:
    text = documents()
    return (text * (size // len(text) + 1))[:size]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    folder = tmp_path / "agent"
    folder.mkdir()
    # The reader shares a thread with the client: it may come late.
    options = ("--out-bytes", "64M", "--subscriber-timeout", "60000")
    with Agent(folder, *options, table=f"random:{ROWS}x{DIM}:{SEED}") as agent:
        yield agent


@pytest.fixture
def reader(agent: Agent) -> Iterator[EmbeddingReader]:
    with EmbeddingReader(agent.subscribers, timeout=10) as reader:
        yield reader


class Rows:
    """What a subscriber has of one text."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.last = False

    @property
    def count(self) -> int:
        return sum(len(rows) for rows in self.rows)

    def take(self, reader: EmbeddingReader) -> None:
        e = next(reader)
        assert e.status == EmbeddingStatus.OK
        assert e.first == self.count
        self.rows.append(e.array.copy())
        self.last = e.last

    def equal(self, ids: np.ndarray) -> bool:
        rows = np.concatenate(self.rows) if self.rows else np.empty((0, DIM), np.float32)
        return bool(np.array_equal(rows, WORD[np.asarray(ids, int)]))


@pytest.mark.parametrize("size", [0, 1, 300, 5_000, 40_000])
def test_rows_are_those_of_the_reference_ids(start, lab, agent, reader, gpt2_reference, size):
    start("--sink", f"gpu=shm:{agent.socket}")
    text = real_text(size)
    with lab.call(lambda: Client(SERVER_IP, timeout=30)) as client:
        for _ in range(3):
            ids = client.tokenize(text)
            assert ids.tolist() == gpt2_reference.encode(text.decode(errors="replace")).ids
            whole = Rows()
            while not whole.last:
                whole.take(reader)
            assert whole.equal(ids)


def test_the_beginning_is_embedded_before_the_end_was_sent(
    start, lab, agent, reader, gpt2_reference
):
    start("--sink", f"gpu=shm:{agent.socket}")
    text = real_text(40_000)
    want = np.array(gpt2_reference.encode(text.decode(errors="replace")).ids)
    with RawStream(lab) as stream:
        packets = stream.packets(text, list(range(PIECE, len(text), PIECE)))
        beginning = Rows()
        stream.send(*packets[:10])
        # Of 7,000 bytes nothing but what later bytes could change is held back: 2,051 at most.
        while beginning.count < 500:
            beginning.take(reader)
        assert not beginning.last
        assert beginning.equal(want[: beginning.count])
        before = beginning.count
        # Only now, and packet by packet as the window has it: the rest.
        stream.finish(packets)
        while not beginning.last:
            beginning.take(reader)
        assert before < beginning.count == len(want)
        assert beginning.equal(want)
        assert stream.id_list() == want.tolist()


TEXTS = 150  # of 1 to 3 kB: many times a ring of 64 kB


def many_texts() -> list[bytes]:
    return [real_text(1000 + 20 * i) for i in range(TEXTS)]


def test_clients_do_not_wait_for_an_agent_that_is_shed(start, lab, agent, reader, gpt2):
    """All texts get their ids; each is embedded whole, or is named by a notice."""
    appliance = start(
        *("--sink", f"gpu=shm:{agent.socket}", "--sink-full", "shed", "--ring-size", "64k")
    )
    with lab.call(lambda: Client(SERVER_IP, timeout=10)) as client:
        ids = client.tokenize("before")
        before = Rows()
        before.take(reader)
        assert before.last and before.equal(ids)
        agent.process.send_signal(signal.SIGSTOP)
        for text in many_texts():
            assert client.tokenize(text).tolist() == gpt2.encode(text).tolist()
        counters = appliance.counters()
        assert counters["sink_shed"] > TEXTS / 2
        assert counters["sink_failed"] == counters["streams_failed"] == 0
        agent.process.send_signal(signal.SIGCONT)
        appliance.wait_until(lambda: appliance.telemetry("/tokd/sink")["0"]["state"] == "running")
        client.tokenize("after")
    have: dict[int, int] = {}
    whole: set[int] = set()
    shed = -1
    while TEXTS + 1 not in whole:  # serials count from 0, "before" is the first
        e = next(reader)
        if e.status == EmbeddingStatus.SHED:
            assert e.aborted and len(e) == 0
            shed = max(shed, e.request)
            continue
        assert e.status == EmbeddingStatus.OK
        assert e.request > shed, "embedded after the notice"
        assert e.first == have.get(e.request, 0)
        have[e.request] = e.first + len(e)
        if e.last:
            whole.add(e.request)
    assert shed >= 0
    assert set(range(1, TEXTS + 2)) - whole <= set(range(shed + 1))
    assert all(n in whole or n <= shed for n in have)
    # Who attaches later is told, too.
    with EmbeddingReader(agent.subscribers, timeout=10) as late:
        e = next(late)
        assert (e.status, e.request) == (EmbeddingStatus.SHED, shed)


def test_clients_wait_for_an_agent_and_are_told_why(start, lab, agent, reader):
    appliance = start("--sink", f"gpu=shm:{agent.socket}", "--ring-size", "64k")
    with lab.call(lambda: Client(SERVER_IP, timeout=1)) as client:
        agent.process.send_signal(signal.SIGSTOP)
        with pytest.raises(TimeoutError, match="token ring is full: a reader or the GPU sink"):
            for text in many_texts():
                client.tokenize(text)
        agent.process.send_signal(signal.SIGCONT)
        appliance.wait_until(lambda: appliance.telemetry("/tokd/sink")["0"]["lag_bytes"] == 0)
        client.tokenize("after")
    assert appliance.counters()["sink_shed"] == 0
