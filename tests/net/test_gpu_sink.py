# SPDX-License-Identifier: BSD-3-Clause
"""Packets to embeddings: dpdk-tokd --sink gpu, tokd-gpu on the CPU; rows equal NumPy's."""

from __future__ import annotations

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
    with Agent(folder, "--out-bytes", "64M", table=f"random:{ROWS}x{DIM}:{SEED}") as agent:
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
