# SPDX-License-Identifier: BSD-3-Clause
"""--pipeline gpu: texts whose ids no client wants go to tokd-gpu as bytes, which tokenizes them, on
the CPU here. The rows are those of libtok's ids, whoever made them."""

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from dpdk_tokd import Client, EmbeddingReader, EmbeddingStatus, RingReader, wire
from dpdk_tokd.embeddings.table import random_table
from gpu_agent import Agent
from netlab import SERVER_IP, NetLab
from raw_client import RawStream
from samples import TEXTS, documents, random_bytes, random_unicode

ROWS, DIM, SEED = 50257, 8, 3
WORD = random_table(ROWS, DIM, SEED)
TABLE = f"random:{ROWS}x{DIM}:{SEED}"
ROOM = 4096  # bytes of a slot of the tests' agents
REAL = documents()


class Agents:
    """Agents of one place, one after the other."""

    def __init__(self, folder: Path, vocab: Path) -> None:
        self._folder, self._vocab = folder, vocab
        self.now = self.start()

    def start(self) -> Agent:
        self.now = Agent(self._folder, "--text-vocab", str(self._vocab), table=TABLE)
        return self.now

    @property
    def sink(self) -> tuple[str, ...]:
        return "--sink", f"gpu=shm:{self.now.socket}", "--pipeline", "gpu"


@pytest.fixture
def agents(tmp_path: Path, gpt2_file: Path) -> Iterator[Agents]:
    folder = tmp_path / "agent"
    folder.mkdir()
    agents = Agents(folder, gpt2_file)
    yield agents
    agents.now.__exit__()


@pytest.fixture
def reader(agents: Agents) -> Iterator[EmbeddingReader]:
    with EmbeddingReader(agents.now.subscribers, timeout=10) as reader:
        yield reader


class Rows:
    """What a subscriber has, by text."""

    def __init__(self) -> None:
        self.of: dict[int, list[np.ndarray]] = {}
        self.whole: set[int] = set()
        self.shed = -1  # texts up to this one may be missing

    def take(self, reader: EmbeddingReader) -> None:
        e = next(reader)
        if e.status == EmbeddingStatus.SHED:
            self.shed = max(self.shed, e.request)
            return
        assert e.status == EmbeddingStatus.OK
        assert e.request > self.shed and e.request not in self.whole
        rows = self.of.setdefault(e.request, [])
        assert e.first == sum(map(len, rows))
        rows.append(e.array.copy())
        if e.last:
            self.whole.add(e.request)

    def check(self, reader: EmbeddingReader, request: int, ids: np.ndarray) -> None:
        """Those of one text, when they are all there."""
        while request not in self.whole:
            self.take(reader)
        have = np.concatenate(self.of[request])
        assert np.array_equal(have, WORD[np.asarray(ids, int)]), request


def send(lab: NetLab, text: bytes, cuts: list[int] | None = None) -> wire.Rep:
    """A text without ids, in packets that end at `cuts`."""
    with RawStream(lab, flags=0) as stream:
        return stream.finish(stream.packets(text, cuts))


def cuts_of(rng: random.Random, text: bytes) -> list[int]:
    """Anywhere; each packet fits a frame."""
    inside = range(1, len(text))
    some = rng.sample(inside, rng.randrange(min(len(inside), 12) + 1))
    return sorted({*some, *range(wire.PAYLOAD, len(text), wire.PAYLOAD)})


def some_texts() -> list[bytes]:
    """Of all kinds; of lengths around that of a slot."""
    rng = random.Random(11)
    texts = list(TEXTS.values())
    texts += [random_unicode(rng, rng.randrange(1, 400)).encode() for _ in range(20)]
    texts += [random_bytes(rng, rng.randrange(1, 200)) for _ in range(10)]
    texts += [REAL[at : at + n] for n in (1, 2, 3, 63, 64, 65, 1000) for at in (0, 5000)]
    return texts + [REAL[:n] for n in (ROOM - 1, ROOM, ROOM + 1, 2 * ROOM, 9 * ROOM)]


def test_rows_are_those_of_the_reference_ids(start, lab, agents, reader, gpt2_reference):
    appliance = start(*agents.sink)
    rows, rng = Rows(), random.Random(7)
    texts = some_texts()
    for i, text in enumerate(texts):
        ids = gpt2_reference.encode(text.decode(errors="replace")).ids
        rep = send(lab, text, cuts_of(rng, text))
        rows.check(reader, i, np.array(ids, int))
        as_bytes = 0 < len(text) <= ROOM
        assert bool(rep.flags & wire.F_UNCOUNTED) == as_bytes
        assert rep.total == (0 if as_bytes else len(ids))
    n_bytes = sum(0 < len(text) <= ROOM for text in texts)
    counters = appliance.counters()
    assert counters["sink_texts"] == n_bytes
    assert 10 < counters["sink_texts_cpu"] < n_bytes / 2  # TEXTS are meant to be difficult
    assert counters["pipeline_here"] == sum(len(text) > ROOM for text in texts)
    assert counters["sink_failed"] == counters["streams_failed"] == 0
    assert counters["streams_done"] == len(texts)


def test_packets_that_come_in_any_order_and_twice_are_one_text(start, lab, agents, reader, gpt2):
    start(*agents.sink)
    rows, rng = Rows(), random.Random(8)
    for i in range(20):
        text = REAL[i * 997 :][: rng.randrange(2, ROOM + 200)]
        with RawStream(lab, flags=0) as stream:
            packets = stream.packets(text, cuts_of(rng, text))
            mixed = [*packets, *rng.choices(packets, k=3)]
            rng.shuffle(mixed)
            stream.send(*mixed)
            stream.finish(packets)
        rows.check(reader, i, gpt2.encode(text))


def test_who_wants_ids_gets_them_and_a_reader_of_the_ring_skips_bytes(
    start, lab, agents, reader, gpt2
):
    appliance = start(*agents.sink)
    rows = Rows()
    texts = [b"%d %s" % (i, REAL[i * 100 :][:300]) for i in range(40)]
    with (
        RingReader(appliance.socket, timeout=10) as ring,
        lab.call(lambda: Client(SERVER_IP, timeout=10)) as client,
    ):
        for i, text in enumerate(texts):
            if i % 2:
                assert client.tokenize(text).tolist() == gpt2.encode(text).tolist()
                assert (next(ring).serial, i % 2) == (i, 1)
            else:
                send(lab, text)
        for i, text in enumerate(texts):
            rows.check(reader, i, gpt2.encode(text))
    assert appliance.counters()["sink_texts"] == len(texts) / 2


def test_texts_of_the_cpu_reach_the_ring_with_the_same_name(start, lab, agents, reader, gpt2):
    appliance = start(*agents.sink)
    text = b"not UTF-8 \xff, so the CPU tokenizes it"
    with RingReader(appliance.socket, timeout=10) as ring:
        with RawStream(lab, flags=0) as stream:
            stream.finish(stream.packets(text))
            record = next(ring)
            assert (record.serial, record.stream_id) == (0, stream.stream_id)
        assert record.last and record.tokens.tolist() == gpt2.encode(text).tolist()
    Rows().check(reader, 0, gpt2.encode(text))


def test_a_text_that_fails_has_no_rows(start, lab, agents, reader, gpt2):
    appliance = start(*agents.sink)
    with RawStream(lab, flags=0) as stream:
        packets = stream.packets(b"a text with a wrong checksum", [7])
        last = bytearray(packets[1])
        last[36] ^= 1  # text_crc
        stream.send(packets[0], bytes(last))
        while not (rep := stream.reply()).flags & wire.F_FAIL:
            pass
        assert rep.reason == wire.Reason.TEXT_CRC
    text = b"the next one"
    send(lab, text)
    rows = Rows()
    e = next(reader)
    assert e.aborted and len(e) == 0
    rows.check(reader, 1, gpt2.encode(text))
    assert appliance.counters()["sink_texts"] == 1


def half_for_the_cpu(n: int) -> list[bytes]:
    return [b"%d %s%s" % (i, REAL[50 * i :][:400], b"\xff" * (i % 2)) for i in range(n)]


def test_texts_in_flight_outlive_an_agent_and_a_reload(start, lab, agents, gpt2):
    appliance = start(*agents.sink)
    texts = half_for_the_cpu(24)
    agents.now.process.send_signal(signal.SIGSTOP)
    for text in texts:
        send(lab, text)
    appliance.send_signal(signal.SIGHUP)
    appliance.wait_for("reload: done")
    # What waits for an agent does not keep the vocabularies of before.
    appliance.wait_until(lambda: appliance.telemetry("/tokd/info")["old_texts"] == 0)
    agents.now.stop(signal.SIGKILL)
    appliance.wait_for("no agent")
    agents.start()
    with EmbeddingReader(agents.now.subscribers, timeout=10) as reader:
        # Those that the reader has missed, it gets from one agent more.
        appliance.wait_counters(lambda c: c["sink_texts_cpu"] >= len(texts) / 2)
        more = half_for_the_cpu(30)[24:]
        for text in more:
            send(lab, text)
        rows = Rows()
        for i, text in enumerate(more):
            rows.check(reader, len(texts) + i, gpt2.encode(text))
        for i in rows.whole & set(range(len(texts))):
            rows.check(reader, i, gpt2.encode(texts[i]))
    counters = appliance.counters()
    assert counters["sink_failed"] == 0
    assert counters["sink_texts_cpu"] >= (len(texts) + len(more)) / 2


def test_texts_wait_for_an_agent_that_is_slow_or_are_tokenized_here(
    start, lab, agents, reader, gpt2
):
    """No place is free any more, and the ring goes round: nothing is lost."""
    appliance = start(*agents.sink, "--ring-size", "256k")
    texts = half_for_the_cpu(120)
    agents.now.process.send_signal(signal.SIGSTOP)
    with ExitStack() as stack:
        for text in texts:
            stream = stack.enter_context(RawStream(lab, flags=0))
            stream.finish(stream.packets(text))
        assert appliance.counters()["pipeline_here"] > 0
        agents.now.process.send_signal(signal.SIGCONT)
        rows = Rows()
        for i, text in enumerate(texts):
            rows.check(reader, i, gpt2.encode(text))
    assert appliance.counters()["sink_failed"] == 0


def test_texts_that_are_shed_are_whole_or_named(start, lab, agents, reader, gpt2):
    appliance = start(*agents.sink, "--sink-full", "shed", "--ring-size", "64k")
    texts = half_for_the_cpu(300)
    agents.now.process.send_signal(signal.SIGSTOP)
    for text in texts:
        send(lab, text)
    assert appliance.counters()["sink_shed"] > 0
    agents.now.process.send_signal(signal.SIGCONT)
    appliance.wait_until(lambda: appliance.telemetry("/tokd/sink")["0"]["state"] == "running")
    here = appliance.counters()["pipeline_here"]
    rows = Rows()
    for i, text in enumerate(half_for_the_cpu(340)[300:]):  # more than there are places
        send(lab, text)
        rows.check(reader, len(texts) + i, gpt2.encode(text))
    assert rows.shed >= 0
    assert set(range(len(texts))) - rows.whole <= set(range(rows.shed + 1))
    for i in rows.whole & set(range(len(texts))):
        rows.check(reader, i, gpt2.encode(texts[i]))
    counters = appliance.counters()
    assert counters["pipeline_here"] == here  # what was shed has given back its place
    assert counters["sink_failed"] == counters["streams_failed"] == 0


def test_texts_that_are_open_are_few_and_each_ends(start, lab, agents, reader, gpt2):
    appliance = start(*agents.sink, "--stream-timeout", "500")
    places = 32  # four for each of eight slots; a source has a quarter of them
    here = places * 3 // 4 + 5
    with ExitStack() as stack:
        for i in range(places + 5):
            stream = stack.enter_context(RawStream(lab, flags=0))
            stream.send(stream.packets(b"begun, %d" % i + b" and left" * 3, [12])[0])
        appliance.wait_counters(lambda c: c["pipeline_here"] == here)
        appliance.wait_counters(lambda c: c["streams_failed"] == places + 5)
    send(lab, b"and the places are free")
    rep = send(lab, b"again")
    assert rep.flags & wire.F_UNCOUNTED
    assert appliance.counters()["pipeline_here"] == here


def test_an_agent_without_the_vocabulary_is_named_after_one_that_died(
    start, lab, agents, tmp_path, gpt2
):
    appliance = start(*agents.sink)
    agents.now.stop(signal.SIGKILL)
    appliance.wait_for("no agent")
    with Agent(tmp_path / "agent", table=TABLE):
        appliance.wait_for("--text-vocab")
