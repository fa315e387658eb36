# SPDX-License-Identifier: BSD-3-Clause
"""Prompts to answers: dpdk-tokd --sink gpu and tokd-gpu --lanes on the CPU, whose engine follows a
rule (lib/gpu_sink/kernel/engine_rule.h): each id of each answer is known."""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from bench.texts.answers import by_rule
from dpdk_tokd import wire
from faulty_wire import Faults, FaultyWire
from gpu_agent import Agent
from netlab import SERVER_IP, NetLab
from samples import documents

ROWS = 50257
LANES = 2
F_GENERATE, F_CANCEL = 1 << 10, 1 << 11
STOP, LENGTH, CANCELLED = 1, 2, 3
END = 2**32 - 1
LIMIT_AT = 56  # in a request
LANES_REASON = 20  # no lane is free
SEND_AGAIN_S = 0.01


class Answer:
    """One stream: its packets, and what came of its answer."""

    def __init__(self, text: bytes, limit: int, *, piece: int = 300, flags: int = 0) -> None:
        self.text = text
        self.limit = limit
        self.flags = wire.F_IDS | F_GENERATE | flags
        self.stream_id = secrets.randbits(64)
        self.cuts = list(range(0, len(text), piece))
        self.ack = 0
        self.bytes = bytearray()
        self.early: dict[int, bytes] = {}
        self.last: wire.Rep | None = None  # with DONE or FAIL
        self.reasons: set[int] = set()
        self.piece = piece

    def packet(self, n: int, **fields: int) -> bytes:
        at = self.cuts[n]
        payload = self.text[at : at + self.piece]
        last = n == len(self.cuts) - 1
        flags = self.flags | (wire.F_FIRST if n == 0 else 0) | (wire.F_LAST if last else 0)
        crc = google_crc32c.value(self.text) if last else 0
        header = wire.Req(
            *(wire.MAGIC, wire.VERSION, wire.DATA, flags, fields["epoch"], 0, self.stream_id),
            *(n, len(payload), at, crc, 0, 0, fields["cookie"]),
        ).pack()
        limit = struct.pack("<I", self.limit if last else 0)
        return header[:LIMIT_AT] + limit + header[LIMIT_AT + 4 :] + payload

    def poll(self, flags: int = 0, **fields: int) -> bytes:
        """Acknowledges what is there, and asks for what is missing."""
        have, end = len(self.bytes), 0
        if self.early:
            end = min(self.early)
        elif self.last is not None and self.last.total > have:
            end = self.last.total
        return wire.Req(
            *(wire.MAGIC, wire.VERSION, wire.POLL, flags, fields["epoch"], 0, self.stream_id),
            *(0, 0, 0, 0, have, end, fields["cookie"]),
        ).pack()

    def take(self, rep: wire.Rep, payload: bytes) -> None:
        self.ack = max(self.ack, rep.ack)
        self.reasons.add(rep.reason)
        if rep.flags & (wire.F_DONE | wire.F_FAIL):
            self.last = rep
        if rep.n_ids > 0:
            assert rep.flags & F_GENERATE
            self.early[rep.first] = payload
        while (at := min(self.early, default=END)) <= len(self.bytes):
            self.bytes += self.early.pop(at)[len(self.bytes) - at :]

    @property
    def over(self) -> bool:
        if self.last is None:
            return False
        return bool(self.last.flags & wire.F_FAIL) or len(self.bytes) == self.last.total

    def items(self) -> tuple[list[int], bytes, int]:
        """Ids, their text, and the end: 0 if there is none."""
        at, ids, text = 0, [], b""
        while at < len(self.bytes):
            made, n, end = struct.unpack_from("<IHH", self.bytes, at)
            at += 8 + n
            text += self.bytes[at - n : at]
            if end != 0:
                assert made == END and at == len(self.bytes)
                return ids, text, end
            ids.append(made)
        return ids, text, 0


class Asker:
    """One client: several answers over one socket."""

    def __init__(self, lab: NetLab, address: tuple[str, int]) -> None:
        self._socket = lab.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._socket.connect(address)
        self._socket.settimeout(SEND_AGAIN_S)
        self.epoch = secrets.randbits(32)
        self.cookie = 0

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _send(self, a: Answer) -> None:
        fields = {"epoch": self.epoch, "cookie": self.cookie}
        if a.ack == len(a.cuts):
            self._socket.send(a.poll(**fields))
        for n in range(a.ack, min(len(a.cuts), a.ack + 8)):
            self._socket.send(a.packet(n, **fields))

    def cancel(self, a: Answer) -> None:
        self._socket.send(a.poll(F_CANCEL, epoch=self.epoch, cookie=self.cookie))

    def _receive(self, answers: dict[int, Answer]) -> None:
        """All that is there, for a moment."""
        until = time.monotonic() + SEND_AGAIN_S
        while time.monotonic() < until:
            try:
                packet = self._socket.recv(4096)
            except TimeoutError:
                return
            rep = wire.Rep._make(wire.REP.unpack_from(packet))
            if rep.reason == wire.Reason.VALIDATE:
                self.cookie = rep.sack
            elif (a := answers.get(rep.stream_id)) is not None:
                a.take(rep, packet[wire.REP.size :])

    def step(self, *answers: Answer) -> None:
        for a in answers:
            if not a.over:
                self._send(a)
        self._receive({a.stream_id: a for a in answers})

    def finish(self, *answers: Answer, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not all(a.over for a in answers):
            assert time.monotonic() < deadline, [(a.ack, len(a.bytes), a.last) for a in answers]
            self.step(*answers)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    folder = tmp_path / "agent"
    folder.mkdir()
    with Agent(folder, "--lanes", str(LANES), table=f"random:{ROWS}x64:3") as agent:
        yield agent


def test_ids_and_text_come_back_over_a_faulty_wire(start, lab, agent, gpt2, gpt2_reference):
    """More prompts than lanes, of one packet and of several, with all ids at once and as made."""
    appliance = start("--sink", f"gpu=shm:{agent.socket}")
    text = documents()
    sizes = [1, 40, 299, 300, 301, 1500, 4000]
    answers = [
        Answer(text[1000 * i : 1000 * i + n], 100 * i + 1, flags=wire.F_STREAM * (i % 2))
        for i, n in enumerate(sizes)
    ]
    with (
        FaultyWire(lab, Faults(drop=0.1, double=0.1, reorder=0.2), seed=7) as faulty,
        Asker(lab, ("127.0.0.1", faulty.port)) as asker,
    ):
        asker.finish(*answers)
        assert faulty.dropped > 10 and faulty.reordered > 10 and faulty.doubled > 0
    for a in answers:
        assert a.last is not None and a.last.flags & wire.F_DONE, a.last
        assert a.last.ids_crc == google_crc32c.value(bytes(a.bytes))
        assert a.last.text_end == len(a.text)
        ids, said, end = a.items()
        assert end == LENGTH
        assert ids == by_rule(gpt2.encode(a.text).tolist(), a.limit, ROWS)
        assert said.decode(errors="replace") == gpt2.decode(np.array(ids, np.uint32))
        assert said.decode(errors="replace") == gpt2_reference.decode(
            ids, skip_special_tokens=False
        )
    assert any(LANES_REASON in a.reasons for a in answers)
    counters = appliance.counters()
    assert counters["streams_generated"] == counters["streams_done"] == len(answers)
    assert counters["tokens_made"] == sum(a.limit for a in answers)
    assert counters["streams_failed"] == counters["generate_cancelled"] == 0
    sink = appliance.telemetry("/tokd/sink")["0"]
    assert (sink["lanes"], sink["lanes_used"]) == (LANES, 0)


def test_special_tokens_give_no_text_if_so_asked(start, lab, agent, gpt2):
    special, n = gpt2.special_tokens["<|endoftext|>"], 400
    texts = (f"prompt {i}".encode() for i in range(10_000))
    text = next(t for t in texts if special in by_rule(gpt2.encode(t).tolist(), n, ROWS))
    start("--sink", f"gpu=shm:{agent.socket}")
    plain, without = Answer(text, n), Answer(text, n, flags=wire.F_SKIP_SPECIAL)
    with Asker(lab, (SERVER_IP, wire.PORT)) as asker:
        asker.finish(plain, without)
    for a, skip in ((plain, False), (without, True)):
        ids, said, _ = a.items()
        assert ids == by_rule(gpt2.encode(text).tolist(), n, ROWS)
        wanted = gpt2.decode(np.array(ids, np.uint32), skip_special_tokens=skip)
        assert said.decode(errors="replace") == wanted
        assert ("<|endoftext|>" in wanted) is not skip


def test_an_answer_ends_when_its_client_asks(start, lab, agent, gpt2):
    appliance = start("--sink", f"gpu=shm:{agent.socket}")
    a, other = Answer(b"for ever", 1 << 20, flags=wire.F_STREAM), Answer(b"after", 50)
    with Asker(lab, (SERVER_IP, wire.PORT)) as asker:
        while len(a.bytes) < 10_000:
            asker.step(a)
        while a.last is None:
            asker.cancel(a)
            asker.step(a)
        asker.finish(a)
        ids, _, end = a.items()
        assert end == CANCELLED
        assert ids == by_rule(gpt2.encode(a.text).tolist(), len(ids), ROWS)
        # The lane is free again.
        appliance.wait_until(lambda: appliance.telemetry("/tokd/sink")["0"]["lanes_used"] == 0)
        asker.finish(other)
        assert other.items()[2] == LENGTH
    assert appliance.counters()["generate_cancelled"] == 1


def test_an_answer_fails_with_its_agent(start, lab, agent, gpt2):
    appliance = start("--sink", f"gpu=shm:{agent.socket}")
    a, late = Answer(b"for ever", 1 << 20, flags=wire.F_STREAM), Answer(b"too late", 1)
    with Asker(lab, (SERVER_IP, wire.PORT)) as asker:
        while len(a.bytes) < 10_000:
            asker.step(a)
        agent.process.kill()
        asker.finish(a)
        assert a.last is not None and a.last.reason == wire.Reason.SINK
        ids, _, end = a.items()
        assert end == 0
        assert ids == by_rule(gpt2.encode(a.text).tolist(), len(ids), ROWS)
        appliance.wait_until(lambda: appliance.telemetry("/tokd/sink")["0"]["state"] == "no agent")
        asker.finish(late)
        assert late.last is not None and late.last.reason == wire.Reason.SINK
    assert appliance.counters()["drop_sink"] > 0
