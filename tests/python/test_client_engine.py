# SPDX-License-Identifier: BSD-3-Clause
"""The client's engine against a server that a test scripts, on a clock of its own."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import google_crc32c
import numpy as np
import pytest
from dpdk_tokd import Reason, TokdError, wire
from dpdk_tokd.client.engine import (
    PACKETS_MAX,
    RTO_FIRST_S,
    RTO_LEAST_S,
    TIME_OUTS_A_TICK,
    Engine,
    Exchange,
    joined,
)

DELAY = 20e-6
IDS_A_PACKET = 344


def ids_of(text: bytes) -> np.ndarray:
    """The server's ids: a byte is an id."""
    return np.frombuffer(text, np.uint8).astype("<u4")


class Stream:
    def __init__(self) -> None:
        self.packets: dict[int, bytes] = {}
        self.last = -1
        self.ack = 0
        self.told = False  # its ids were sent
        self.ids = ids_of(b"")

    @property
    def done(self) -> bool:
        return 0 <= self.last < self.ack

    @property
    def text(self) -> bytes:
        return b"".join(self.packets[i] for i in range(self.ack))


class World:
    """An engine, a wire and a server. `spoil` may change a reply, `refuse` may refuse DATA."""

    def __init__(self, *, seed: int = 1, lose: float = 0, reorder: float = 0, twice: float = 0):
        self.engine = Engine("server:9000")
        self.now = 0.0
        self.credit = wire.WINDOW
        self.refuse: Callable[[int], Reason | int] = lambda _: Reason.NONE
        self.spoil: Callable[[wire.Rep, bytes], bytes] = lambda rep, ids: pack(rep) + ids
        self.streams: dict[int, Stream] = {}
        self.n_data = self.n_polls = self.most_flight = 0
        self._dice = random.Random(seed)
        self._faults = (lose, reorder, twice)
        self._wire: list[tuple[float, int, bytes, bool]] = []
        self._count = 0

    def carry(self, packet: bytes, forth: bool) -> None:
        lose, reorder, twice = self._faults
        for _ in range(2 if self._dice.random() < twice else 1):
            if self._dice.random() < lose:
                continue
            self._count += 1
            due = self.now + DELAY * (5 if self._dice.random() < reorder else 1)
            heapq.heappush(self._wire, (due, self._count, packet, forth))

    def step(self) -> None:
        self.engine.tick(self.now)
        if packets := list(self.engine.packets(self.now)):
            for header, text in packets:
                self.carry(header + bytes(text), True)
            flight = sum(forth and len(p) > wire.REQ.size for _, _, p, forth in self._wire)
            self.most_flight = max(self.most_flight, flight)
        deadline = self.engine.deadline()
        if self._wire and (deadline is None or self._wire[0][0] <= deadline):
            due, _, packet, forth = heapq.heappop(self._wire)
            self.now = max(self.now, due)
            if forth:
                self.serve(packet)
            else:
                self.engine.take(packet, self.now)
        elif deadline is not None:
            self.now = max(self.now, deadline)
        else:
            assert not self.engine._by_id, "nothing will ever happen"

    def run(self, *exchanges: Exchange) -> None:
        for _ in range(1_000_000):
            if all(exchange.finished for exchange in exchanges):
                return
            self.step()
        raise AssertionError("it does not end")

    def tokenize(self, text: bytes) -> Exchange:
        exchange = self.engine.begin(text, stream=False)
        self.run(exchange)
        return exchange

    def serve(self, packet: bytes) -> None:
        req = wire.Req._make(wire.REQ.unpack_from(packet))
        self.n_polls += req.type == wire.POLL
        if req.type == wire.DATA:
            self.n_data += 1
            if reason := self.refuse(self.n_data):
                self.reply(req, Stream(), flags=wire.F_FAIL, reason=int(reason))
                return
        elif req.stream_id not in self.streams:
            self.reply(req, Stream(), flags=wire.F_FAIL, reason=Reason.UNKNOWN)
            return
        stream = self.streams.setdefault(req.stream_id, Stream())
        if req.type == wire.DATA and self.credit:
            assert req.packet < stream.ack + wire.WINDOW
            stream.packets[req.packet] = packet[wire.REQ.size :]
            if req.flags & wire.F_LAST:
                stream.last = req.packet
            while stream.ack in stream.packets:
                stream.ack += 1
            if stream.done and req.flags & wire.F_LAST:
                assert google_crc32c.value(stream.text) == req.text_crc
            if stream.done and not len(stream.ids):
                stream.ids = ids_of(stream.text)
        first, end = 0, 0
        if stream.done and not stream.told:
            stream.told, end = True, len(stream.ids)
        elif stream.done and req.type == wire.POLL:
            first, end = req.ids_ack, min(req.ids_end, len(stream.ids))
        for at in range(first, end, IDS_A_PACKET) or (first,):
            self.reply(req, stream, at, min(end, at + IDS_A_PACKET))

    def reply(
        self,
        req: wire.Req,
        stream: Stream,
        first: int = 0,
        end: int = 0,
        flags: int = 0,
        reason: int = 0,
    ) -> None:
        every = stream.ids
        ids = every[first:end]
        sack = sum(1 << n - stream.ack - 1 for n in stream.packets if n > stream.ack)
        rep = wire.Rep(
            *(wire.MAGIC, wire.VERSION, wire.REPLY, flags | (wire.F_DONE if stream.done else 0)),
            *(req.epoch, 5, req.stream_id, stream.ack, self.credit, sack, first, len(ids)),
            *(len(every), google_crc32c.value(every.tobytes()), reason, len(every)),
        )
        self.carry(self.spoil(rep, ids.tobytes()), False)


def pack(rep: wire.Rep) -> bytes:
    return wire.REP.pack(*rep)


def result(exchange: Exchange) -> list[int]:
    if exchange.error is not None:
        raise exchange.error
    return joined([ids for _, ids in exchange.take()]).tolist()


@pytest.mark.parametrize("size", [0, 1, 1376, 1377, 64 * 1376 + 1, 200_000])
def test_no_packet_too_many_on_a_good_wire(size):
    world, text = World(), bytes(range(256)) * 1000
    assert result(world.tokenize(text[:size])) == list(text[:size])
    assert world.engine.retransmits == 0
    assert world.n_polls <= size // IDS_A_PACKET // 16 + 1


FAULTS = {"good": {}, "usual": {"lose": 0.02, "reorder": 0.02, "twice": 0.01}}
FAULTS["bad"] = {"lose": 0.2, "reorder": 0.2, "twice": 0.1}


@pytest.mark.parametrize("name", FAULTS)
def test_hundreds_at_once(name):
    world, dice = World(**FAULTS[name]), random.Random(2)
    texts = [dice.randbytes(dice.randrange(4000)) for _ in range(290)]
    texts += [dice.randbytes(100_000) for _ in range(10)]
    exchanges = [world.engine.begin(text, stream=False) for text in texts]
    world.run(*exchanges)
    assert [result(exchange) for exchange in exchanges] == [list(text) for text in texts]
    assert world.most_flight <= PACKETS_MAX * (2 if FAULTS[name] else 1)
    assert (world.engine.retransmits > 0) == (name != "good")


def test_of_many_texts_that_are_late_at_once_a_few_are_tried():
    engine = Engine("server:9000")
    for _ in range(PACKETS_MAX):
        engine.begin(b"text", stream=False)
    assert len(list(engine.packets(0.0))) == PACKETS_MAX
    engine.tick(RTO_FIRST_S)
    assert len(list(engine.packets(RTO_FIRST_S))) == 2 * TIME_OUTS_A_TICK  # each with a POLL
    now = engine.deadline()
    assert now is not None and now >= RTO_FIRST_S + RTO_LEAST_S
    while engine.retransmits < PACKETS_MAX:
        now = engine.deadline()
        engine.tick(now)
        list(engine.packets(now))
    assert now < 0.25
    engine.tick(5.0)
    assert not engine._by_id  # the limit of time is for all at once


def test_without_credit_it_waits_and_asks():
    world = World()
    world.credit = 0
    exchange = world.engine.begin(b"x" * 20_000, stream=False)
    while world.now < 0.3:
        world.step()
    assert not exchange.finished and 3 <= world.n_polls <= 40
    world.credit = 4
    world.run(exchange)
    assert len(result(exchange)) == 20_000 and world.now < 0.5


def test_a_server_that_stopped_hears_of_its_ids_at_once():
    """They fill its reply window: only their acknowledgement can give it room (rule 9)."""
    world = World()
    world.engine.begin(b"x" * 28_000, stream=False)
    packets = list(world.engine.packets(0))
    req = wire.Req._make(wire.REQ.unpack(packets[0][0]))
    rep = wire.Rep(
        *(wire.MAGIC, wire.VERSION, wire.REPLY, 0, req.epoch, 5, req.stream_id, 10, 0, 0),
        *(0, 100, 100, 0, 0, 0),
    )
    world.engine.take(pack(rep) + bytes(400), 0.001)
    (poll,) = (wire.Req._make(wire.REQ.unpack(p)) for p, _ in world.engine.packets(0.001))
    assert (poll.type, poll.ids_ack, poll.ids_end) == (wire.POLL, 100, 0)


def test_busy_is_tried_again_after_a_pause():
    world = World()
    world.refuse = lambda n: Reason.BUSY if n <= 3 else Reason.NONE
    assert result(world.tokenize(b"text")) == list(b"text")
    assert world.engine.resends == 3 and world.now > 0.035


def test_a_text_may_be_cancelled_while_it_pauses():
    world = World()
    world.refuse = lambda n: Reason.BUSY if n == 1 else Reason.NONE
    exchange = world.engine.begin(b"text", stream=False)
    while not world.engine.resends:
        world.step()
    world.engine.cancel(exchange)
    assert result(world.tokenize(b"other")) == list(b"other")
    assert world.engine._flight == 0 and not world.engine._by_id


@pytest.mark.parametrize("reason", [1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13, 99])
def test_a_refusal_ends_it_with_its_reason(reason):
    world = World()
    world.refuse = lambda _: reason
    with pytest.raises(TokdError) as caught:
        result(world.tokenize(b"text"))
    assert caught.value.reason == (reason if reason < 99 else 0)
    assert world.engine.resends == (9 if reason in (8, 12) else 0)


def test_what_expires_goes_on_where_it_was():
    world, seen = World(), set()

    def expire(rep: wire.Rep, ids: bytes) -> bytes:
        seen.add(rep.stream_id)
        if rep.first == IDS_A_PACKET and len(seen) == 1:
            return pack(rep._replace(flags=wire.F_FAIL, reason=Reason.EXPIRED, n_ids=0))
        return pack(rep) + ids

    world.spoil = expire
    exchange = world.tokenize(b"y" * 1000)
    firsts = [(first, len(ids)) for first, ids in exchange.pieces]
    assert result(exchange) == list(b"y" * 1000)
    assert world.engine.resends == 1
    assert firsts == [(0, 344), (344, 344), (688, 312)]


def test_silence_ends_at_the_time_limit():
    world = World(lose=1)
    with pytest.raises(TimeoutError, match="nothing moved for 5.0 s: 0 of 8 packets"):
        result(world.tokenize(b"z" * 10_000))
    assert 5 <= world.now < 5.01


def test_replies_without_progress_do_not_hold_off_the_time_limit():
    world = World()
    world.credit = 0
    with pytest.raises(TimeoutError):
        result(world.tokenize(b"z"))
    assert 5 <= world.now < 5.01


LIES = {
    "ids beyond the total": {"first": 10},
    "first id beyond all": {"first": (1 << 32) - 1},
    "more credit than a window": {"credit": 65},
    "done but not acknowledged": {"ack": 0},
    "done with another end": {"text_end": 3},
    "of another version": {"version": 2},
    "of another client": {"epoch": 0},
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_not_believed(lie):
    world = World()

    def tell(rep: wire.Rep, ids: bytes) -> bytes:
        world.engine.take(pack(rep._replace(**LIES[lie])) + ids, world.now)
        world.engine.take(pack(rep._replace(n_ids=rep.n_ids + 1)) + ids, world.now)
        world.engine.take(pack(rep)[:-1], world.now)
        return pack(rep) + ids

    world.spoil = tell
    assert result(world.tokenize(b"some text")) == list(b"some text")


def test_ids_that_were_changed_are_found():
    world = World()
    world.spoil = lambda rep, ids: pack(rep) + bytes(len(ids))
    with pytest.raises(TokdError, match="were changed on their way"):
        result(world.tokenize(b"some text"))


def test_noise_harms_nobody():
    world, dice = World(lose=0.05), random.Random(3)
    fields = ("ack", "credit", "sack", "first", "total", "ids_crc", "reason", "text_end", "flags")

    def noise(rep: wire.Rep, ids: bytes) -> bytes:
        changes = {f: dice.choice((0, dice.randrange(100), 0xFFFF)) for f in dice.sample(fields, 2)}
        return pack(rep._replace(**changes)) + ids

    world.spoil = noise
    exchanges = [world.engine.begin(dice.randbytes(3000), stream=False) for _ in range(50)]
    world.run(*exchanges)
    assert world.engine._flight == 0 and not world.engine._by_id
