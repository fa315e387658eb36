# SPDX-License-Identifier: BSD-3-Clause
"""The client's side of the wire protocol (include/tokd/wire.h) without I/O: datagrams go in,
datagrams come out, and the caller says what time it is. `Client` and `AsyncClient` are sockets
around it.

A text is cut into numbered packets. Which of them the appliance has, its replies say: all below
`ack`, and those in `sack`. Two rules find what is lost:

- Packets overtake each other seldom: one that is missing although one sent *after* it has arrived
  is taken for lost at once (as RFC 8985 does for TCP).
- When nothing is heard of a text for the retransmission time-out (RFC 6298, doubled each time), all
  that is in flight is, and a POLL goes behind it, which is always answered. Of many texts that are
  late at once a few are tried every few milliseconds, as TCP would with one packet.

Ids that are missing are asked for by POLL, when a gap is seen and when nothing is heard.
"""

from __future__ import annotations

import heapq
import itertools
import secrets
from collections import deque
from collections.abc import Iterator

import google_crc32c
import numpy as np

from .. import wire
from ..tokenizer.batch import Ids
from ..tokenizer.tokenizer import Text
from ..wire import Reason, Rep, Req

RTO_FIRST_S = 0.020
RTO_LEAST_S = 0.005
RTO_MOST_S = 0.25  # several tries fit any sensible time limit
PROBE_MOST_S = 0.1  # while a POLL is all there is to send
TICK_S = 0.001  # granularity of timers (G in RFC 6298)
BACKOFF_MOST = 1024  # RTO_MOST_S is reached before
ACK_EVERY = 16  # reply packets with ids
AGAIN_BURST = 16  # packets sent again at once on a time-out: the appliance answers so many
TIME_OUTS_A_TICK = 16  # texts: where all are late it is one delay, and answers may be on their way
RESENDS_MAX = 8  # of one text under a new stream id
BUSY_PAUSE_S = 0.005
PACKETS_MAX = 256  # of text in flight, of all texts together
EARLY_MAX = 1024  # pieces of ids of a text that wait for one before them
TEXT_MAX = (1 << 32) - 1

SEND_AGAIN = frozenset({Reason.EXPIRED, Reason.BUSY, Reason.UNKNOWN})


class TokdError(RuntimeError):
    """The appliance refused a text or failed at it. `reason` says why, the message what to do."""

    def __init__(self, message: str, reason: Reason = Reason.NONE) -> None:
        super().__init__(message)
        self.reason = reason


Datagram = tuple[bytes, memoryview]  # header, and the text behind it


def to_bytes(text: Text) -> bytes:
    """A text as it is sent. ValueError: a str with a surrogate, or 4 GiB or more."""
    data = text.encode() if isinstance(text, str) else bytes(text)
    if len(data) > TEXT_MAX:
        raise ValueError(f"text of {len(data)} bytes: the protocol carries {TEXT_MAX} at most")
    return data


def joined(pieces: list[Ids]) -> Ids:
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint32)


class _RtoTimer:
    """The estimate of the round trip after RFC 6298, section 2, of all texts together. Seconds."""

    def __init__(self) -> None:
        self.srtt = 0.0
        self._rttvar = 0.0
        self.rto = RTO_FIRST_S

    def sample(self, rtt: float) -> None:
        if self.srtt == 0.0:
            self.srtt, self._rttvar = rtt, rtt / 2
        else:
            self._rttvar += (abs(self.srtt - rtt) - self._rttvar) / 4
            self.srtt += (rtt - self.srtt) / 8
        self.rto = max(RTO_LEAST_S, self.srtt + max(TICK_S, 4 * self._rttvar))


class _Sender:
    """The packets of one text: which are sent, in flight, arrived, lost."""

    def __init__(self, text: bytes, header: Req) -> None:
        self._text = memoryview(text)
        self._header = header
        self._crc = google_crc32c.value(text)
        self.n = max(1, -(-len(text) // wire.PAYLOAD))
        self.ack = 0  # all below have arrived
        self.next = 0  # first one never sent
        self.limit = wire.WINDOW  # none at or above may be sent
        self._sent_at: dict[int, tuple[int, float, bool]] = {}  # order, time, sent once
        self._order = 0  # of the latest packet
        self._stopped_at = 0  # _order when the appliance last gave no credit
        self._lost: set[int] = set()
        self._sacked: set[int] = set()
        self.stopped = False

    @property
    def may_send(self) -> bool:
        """Some packet is lost or new, and below the limit."""
        return self.next < min(self.n, self.limit) or any(p < self.limit for p in self._lost)

    @property
    def in_flight(self) -> int:
        """Packets sent that neither arrived nor are taken for lost."""
        return len(self._sent_at) - len(self._sacked) - len(self._lost)

    def what_may_go(self, ids_ack: int, most: int, now: float) -> Iterator[tuple[Datagram, bool]]:
        """Up to `most` packets that are lost or new; True with those sent before."""
        lost = sorted(p for p in self._lost if p < self.limit)[:most]
        for packet in lost:
            self._lost.discard(packet)
            yield self._packet(packet, ids_ack, now), True
        for packet in range(self.next, min(self.n, self.limit, self.next + most - len(lost))):
            self.next = packet + 1
            yield self._packet(packet, ids_ack, now), False

    def _packet(self, packet: int, ids_ack: int, now: float) -> Datagram:
        offset = packet * wire.PAYLOAD
        piece = self._text[offset : offset + wire.PAYLOAD]
        last = packet == self.n - 1
        header = self._header._replace(
            flags=self._header.flags
            | (wire.F_FIRST if packet == 0 else 0)
            | (wire.F_LAST if last else 0),
            packet=packet,
            length=len(piece),
            offset=offset,
            text_crc=self._crc if last else 0,
            ids_ack=ids_ack,
        )
        self._order += 1
        self._sent_at[packet] = (self._order, now, packet not in self._sent_at)
        return header.pack(), piece

    def heard(self, rep: Rep, timer: _RtoTimer, now: float) -> bool:
        """Take in what a reply says. True if packets arrived that were not known to have."""
        if rep.ack > self.next or rep.ack < self.ack:
            return False  # of another stream's past, or overtaken by a later reply
        if rep.credit == 0 and rep.ack < self.n:
            self.stopped = True
            self._stopped_at = self._order
        progress = rep.ack > self.ack
        newest = self._newest_arrival(rep)
        if progress:
            self._sample_rtt(rep.ack - 1, timer, now)
            for packet in range(self.ack, rep.ack):
                del self._sent_at[packet]
            self._lost = {p for p in self._lost if p >= rep.ack}
            self._sacked = {p for p in self._sacked if p >= rep.ack}
            self.ack = rep.ack
        progress |= self._take_sack(rep, newest)
        # A stopped appliance dropped what came meanwhile: it is sent again when it goes on.
        if rep.credit != 0 and self.stopped:
            self.stopped = False
            self._lose_all()
        self.limit = rep.ack + rep.credit
        return progress

    def _newest_arrival(self, rep: Rep) -> int:
        """Order in which the latest-sent of the packets that have arrived was sent."""
        arrived = list(range(self.ack, rep.ack)) + self._sacked_by(rep)
        return max((self._sent_at[p][0] for p in arrived if p in self._sent_at), default=0)

    def _sacked_by(self, rep: Rep) -> list[int]:
        return [rep.ack + 1 + i for i in range(rep.sack.bit_length()) if rep.sack >> i & 1]

    def _sample_rtt(self, packet: int, timer: _RtoTimer, now: float) -> None:
        order, at, once = self._sent_at[packet]
        # RFC 6298 section 3: the answer to a packet sent twice may be that to the first one. One
        # sent before the appliance stopped waited there, not on its way.
        if once and order > self._stopped_at:
            timer.sample(now - at)

    def _take_sack(self, rep: Rep, newest: int) -> bool:
        before = len(self._sacked)
        self._sacked.update(p for p in self._sacked_by(rep) if p < self.next)
        if rep.sack:
            self._lost -= self._sacked
            for packet in range(self.ack, min(self.next, rep.ack + 1 + rep.sack.bit_length())):
                if packet not in self._sacked and self._sent_at[packet][0] < newest:
                    self._lost.add(packet)
        return len(self._sacked) > before

    def _lose_all(self) -> None:
        self._lost = {p for p in range(self.ack, self.next) if p not in self._sacked}

    def lose_first(self) -> None:
        """After a time-out: the first ones that have not arrived go again."""
        flight = (p for p in range(self.ack, self.next) if p not in self._sacked)
        self._lost.update(p for p, _ in zip(flight, range(AGAIN_BURST)))

    @property
    def idle(self) -> bool:
        """Nothing to send: all has arrived, or there is no credit."""
        return self.ack == self.n or self.limit <= self.ack


class _Receiver:
    """The ids of one text: pieces that may come in any order, given out in order."""

    def __init__(self) -> None:
        self.have = 0  # all below have arrived
        self._early: dict[int, Ids] = {}
        self._crc = 0
        self.final: Rep | None = None
        self.unacked = 0  # reply packets with ids since ids were acknowledged
        self.told = 0  # `have` as the appliance was last told
        self.asked = -1  # value of `have` at which a gap was asked for at once

    def take(self, rep: Rep, ids: Ids) -> list[tuple[int, Ids]]:
        """Ids that are now in order, as (index of the first, ids)."""
        if rep.flags & wire.F_DONE and self.final is None:
            self.final = rep
        if rep.n_ids:
            self.unacked += 1
            known = self._early.get(rep.first)
            longer = known is not None and len(known) < rep.n_ids
            room = known is None and (rep.first <= self.have or len(self._early) < EARLY_MAX)
            if rep.first + rep.n_ids > self.have and (longer or room):
                self._early[rep.first] = ids
        out = []
        for first in sorted(self._early):
            if first > self.have:
                break
            piece = self._early.pop(first)[self.have - first :]
            if len(piece):
                self._crc = google_crc32c.extend(self._crc, piece.tobytes())
                out.append((self.have, piece))
                self.have += len(piece)
        return out

    @property
    def gap_end(self) -> int:
        """Ids in [have, gap_end) are known to be missing; 0: none."""
        return min(self._early, default=0)

    @property
    def complete(self) -> bool:
        return self.final is not None and self.have >= self.final.total

    @property
    def verified(self) -> bool:
        """The ids are those the appliance published. Ask when complete."""
        final = self.final
        return final is not None and (self.have, self._crc) == (final.total, final.ids_crc)

    @property
    def missing_end(self) -> int:
        """What to ask for after a time-out."""
        if self.gap_end:
            return self.gap_end
        return self.final.total if self.final is not None else 0


class Exchange:
    """One text under way. `pieces` are ids in order, as (index of the first, ids), that are the
    reader's to take away; `finished`, and `error` if it failed."""

    def __init__(self, text: bytes, flags: int) -> None:
        self.pieces: list[tuple[int, Ids]] = []
        self.finished = False
        self.error: Exception | None = None
        self.stream_id = 0
        self._text = text
        self._flags = flags
        self._given = 0  # ids given out, also by streams before this one
        self._attempts = 0
        self._moved_at: float | None = None  # when anything new was last heard; None: not begun
        self._backoff = 1
        self._pausing = False
        self._deadline = float("inf")
        self._scheduled = float("inf")  # not above _deadline
        self._known = False  # the appliance has the stream
        self._sender: _Sender
        self._receiver: _Receiver
        self._poll: int | None = None  # end of the ids to ask for; 0: none, but acknowledge
        self._text_queued = False
        self._asks = False  # that POLL goes even if there is nothing new to acknowledge

    def take(self) -> list[tuple[int, Ids]]:
        pieces, self.pieces = self.pieces, []
        return pieces

    def give(self, first: int, ids: Ids) -> None:
        """Ids of the stream, less what one before it gave out."""
        if first + len(ids) > self._given:
            self.pieces.append((self._given, ids[self._given - first :]))
            self._given = first + len(ids)


class Engine:
    """Any number of texts to one appliance. `peer` is what messages call it, `timeout` the seconds
    without progress after which a text fails. Not thread-safe."""

    def __init__(self, peer: str, *, vocab: int = 0, timeout: float = 5.0) -> None:
        self.retransmits = 0
        self.polls = 0
        self.resends = 0
        self.server_vocab = 0
        self.stream_id = secrets.randbits(32)  # of the latest stream
        self._peer = peer
        self._vocab = vocab
        self._timeout = timeout
        self._epoch = secrets.randbits(32)
        self._timer = _RtoTimer()
        self._by_id: dict[int, Exchange] = {}
        self._flight = 0
        self._texts: deque[Exchange] = deque()  # that may send
        self._polls: deque[Exchange] = deque()
        self._last_acks: deque[tuple[int, int]] = deque(maxlen=1024)
        self._news: dict[Exchange, None] = {}
        self._heap: list[tuple[float, int, Exchange]] = []
        self._count = itertools.count()

    def begin(self, text: bytes, *, stream: bool) -> Exchange:
        """Take a text on. Its time begins when its first packet goes."""
        exchange = Exchange(text, wire.F_IDS | (wire.F_STREAM if stream else 0))
        self._begin(exchange)
        return exchange

    def cancel(self, exchange: Exchange) -> None:
        """Forget a text; nothing happens if it is finished."""
        if not exchange.finished:
            self._let_go(exchange)
            exchange.finished = True

    def fail_all(self, error: Exception) -> None:
        """The network failed for all."""
        for exchange in list(self._by_id.values()):
            self._finish(exchange, error)

    def news(self) -> list[Exchange]:
        """Those that have new ids or are finished since the last call."""
        news = list(self._news)
        self._news.clear()
        return news

    def deadline(self) -> float | None:
        """When `tick` has something to do. May be early, never late."""
        while self._heap and self._heap[0][2].finished:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def tick(self, now: float) -> None:
        """Do what is due. Only when all that has come was given to `take`."""
        time_outs = 0
        while (first := self.deadline()) is not None and first <= now:
            _, _, exchange = heapq.heappop(self._heap)
            if first != exchange._scheduled:
                continue  # an earlier one took its place
            exchange._scheduled = float("inf")
            if exchange._deadline > now:
                self._schedule(exchange, exchange._deadline)
            elif exchange._pausing:
                self._let_go(exchange)
                exchange._moved_at = now
                self._begin(exchange)
                self._wait(exchange, now)
            elif exchange._moved_at is not None and now >= exchange._moved_at + self._timeout:
                self._finish(exchange, TimeoutError(self._what_is_missing(exchange)))
            elif time_outs < TIME_OUTS_A_TICK:
                time_outs += 1
                self._time_out(exchange, now)
            else:
                self._schedule(exchange, now + RTO_LEAST_S)

    def take(self, packet: bytes, now: float) -> None:
        """A datagram has come. Nothing in it is trusted."""
        rep = wire.parse_rep(packet)
        if rep is None or rep.epoch != self._epoch:
            return
        exchange = self._by_id.get(rep.stream_id)
        if exchange is None or exchange._pausing:
            return
        if rep.flags & wire.F_FAIL:
            self._failed(exchange, rep, now)
            return
        sender, receiver = exchange._sender, exchange._receiver
        if not self._consistent(exchange, rep):
            return
        if self._vocab and rep.vocab != self._vocab:
            used = f"used vocabulary {rep.vocab:#010x}, asked was {self._vocab:#010x}"
            self._finish(exchange, TokdError(f"{self._peer}: {used}", Reason.VOCAB))
            return
        self.server_vocab = rep.vocab
        exchange._known = True

        before = sender.in_flight
        moved = sender.heard(rep, self._timer, now)
        self._flight += sender.in_flight - before
        if moved or rep.first + rep.n_ids > receiver.have:
            exchange._moved_at = now
            exchange._backoff = 1
        ids = np.frombuffer(packet, np.uint32, rep.n_ids, wire.REP.size)
        for first, piece in receiver.take(rep, ids):
            exchange.give(first, piece)
            self._news[exchange] = None
        if receiver.complete:
            self._finish(exchange, None if receiver.verified else self._damaged(exchange))
            return
        self._queue_text(exchange)
        self._answer(exchange)
        self._wait(exchange, now)

    def packets(self, now: float) -> Iterator[Datagram]:
        """What is to be sent now, each as header and text."""
        while self._texts and self._flight < PACKETS_MAX:
            exchange = self._texts[0]
            sender, receiver = exchange._sender, exchange._receiver
            room = PACKETS_MAX - self._flight
            sent = list(sender.what_may_go(receiver.have, room, now))
            self._flight += len(sent)
            self.retransmits += sum(again for _, again in sent)
            if not sender.may_send:
                self._texts.popleft()
                exchange._text_queued = False
            if sent:
                receiver.told, receiver.unacked = receiver.have, 0
                if exchange._moved_at is None:
                    exchange._moved_at = now
                self._wait(exchange, now)
            for packet, _ in sent:
                yield packet
        while self._polls:
            exchange = self._polls.popleft()
            ids_end, exchange._poll = exchange._poll, None
            receiver = exchange._receiver
            if exchange._asks or receiver.told != receiver.have:
                exchange._asks = False
                receiver.told, receiver.unacked = receiver.have, 0
                yield self._poll(exchange.stream_id, receiver.have, ids_end or 0)
        while self._last_acks:
            yield self._poll(*self._last_acks.popleft(), 0)

    def _begin(self, exchange: Exchange) -> None:
        self.stream_id += 1
        exchange.stream_id = self.stream_id
        exchange._pausing = exchange._known = False
        exchange._backoff = 1
        header = self._header(wire.DATA, exchange.stream_id)._replace(flags=exchange._flags)
        exchange._sender = _Sender(exchange._text, header)
        exchange._receiver = _Receiver()
        self._by_id[exchange.stream_id] = exchange
        self._queue_text(exchange)

    def _let_go(self, exchange: Exchange) -> None:
        """The stream is over; what still comes of it is nobody's."""
        if self._by_id.pop(exchange.stream_id, None) is None:
            return
        if exchange._pausing:
            return
        self._flight -= exchange._sender.in_flight
        if exchange._text_queued:
            self._texts.remove(exchange)
        if exchange._poll is not None:
            self._polls.remove(exchange)
        exchange._text_queued = exchange._asks = False
        exchange._poll = None

    def _finish(self, exchange: Exchange, error: Exception | None) -> None:
        self._let_go(exchange)
        if error is None:  # lets the appliance let go of the ids
            self._last_acks.append((exchange.stream_id, exchange._receiver.have))
        exchange.finished = True
        exchange.error = error
        self._news[exchange] = None

    def _queue_text(self, exchange: Exchange) -> None:
        if exchange._sender.may_send and not exchange._text_queued:
            exchange._text_queued = True
            self._texts.append(exchange)

    def _queue_poll(self, exchange: Exchange, ids_end: int, *, asks: bool) -> None:
        if exchange._poll is None:
            self._polls.append(exchange)
        exchange._poll = max(exchange._poll or 0, ids_end)
        exchange._asks |= asks

    def _answer(self, exchange: Exchange) -> None:
        """What a reply calls for besides text: a question for ids, or their acknowledgement."""
        sender, receiver = exchange._sender, exchange._receiver
        gap_end = receiver.gap_end
        if gap_end and receiver.asked != receiver.have:
            receiver.asked = receiver.have
            self._queue_poll(exchange, gap_end, asks=True)
        elif receiver.unacked >= ACK_EVERY or (sender.stopped and receiver.have > receiver.told):
            # Where the appliance stopped for want of room, only this gives it some.
            self._queue_poll(exchange, 0, asks=False)

    def _time_out(self, exchange: Exchange, now: float) -> None:
        sender, receiver = exchange._sender, exchange._receiver
        exchange._backoff = min(2 * exchange._backoff, BACKOFF_MOST)
        before = sender.in_flight
        sender.lose_first()
        self._flight += sender.in_flight - before
        self._queue_text(exchange)
        self._queue_poll(exchange, receiver.missing_end, asks=True)
        self._wait(exchange, now)

    def _wait(self, exchange: Exchange, now: float) -> None:
        """Until so long a silence that something is lost, or credit is to be asked for."""
        rto = self._timer.rto
        most = PROBE_MOST_S if exchange._sender.idle else RTO_MOST_S
        wait = max(rto, min(most, rto * exchange._backoff))
        last = now if exchange._moved_at is None else exchange._moved_at
        self._schedule(exchange, min(now + wait, last + self._timeout))

    def _schedule(self, exchange: Exchange, deadline: float) -> None:
        exchange._deadline = deadline
        if deadline < exchange._scheduled:
            exchange._scheduled = deadline
            heapq.heappush(self._heap, (deadline, next(self._count), exchange))

    def _consistent(self, exchange: Exchange, rep: Rep) -> bool:
        """A reply does not contradict itself, nor what was sent."""
        if rep.credit > wire.WINDOW or (rep.n_ids and rep.first + rep.n_ids > rep.total):
            return False
        whole = rep.ack == exchange._sender.n and rep.text_end == len(exchange._text)
        return whole or not rep.flags & wire.F_DONE

    def _failed(self, exchange: Exchange, rep: Rep, now: float) -> None:
        if rep.reason == Reason.UNKNOWN and not exchange._known:
            return  # a POLL came, no packet of text did: the time-out sends them again
        try:
            reason = Reason(rep.reason)
        except ValueError:
            unknown = f"failed for reason {rep.reason}, which this package does not know"
            self._finish(exchange, TokdError(f"{self._peer}: {unknown}"))
            return
        times = ""
        if reason in SEND_AGAIN:
            self.resends += 1
            exchange._attempts += 1
            if exchange._attempts <= RESENDS_MAX:
                self._again(exchange, reason, now)
                return
            times = f" for {exchange._attempts} times"
        asked = f" (asked: {self._vocab:#010x})" if reason is Reason.VOCAB else ""
        remedy = wire.REMEDY.get(reason, "no reason given")
        message = f"{self._peer}: {reason.name}{times}{asked}: {remedy}"
        self._finish(exchange, TokdError(message, reason))

    def _again(self, exchange: Exchange, reason: Reason, now: float) -> None:
        """The stream is over, the text is not: it goes on under a new stream id."""
        self._let_go(exchange)
        exchange._moved_at = now
        if reason is Reason.BUSY:
            exchange._pausing = True
            self._by_id[exchange.stream_id] = exchange  # so that it is known to be under way
            self._schedule(exchange, now + BUSY_PAUSE_S * 2 ** (exchange._attempts - 1))
        else:
            self._begin(exchange)
            self._wait(exchange, now)

    def _poll(self, stream_id: int, ids_ack: int, ids_end: int) -> Datagram:
        self.polls += 1
        poll = self._header(wire.POLL, stream_id)._replace(ids_ack=ids_ack, ids_end=ids_end)
        return poll.pack(), memoryview(b"")

    def _header(self, type: int, stream_id: int) -> Req:
        return Req(
            magic=wire.MAGIC,
            version=wire.VERSION,
            type=type,
            flags=0,
            epoch=self._epoch,
            vocab=self._vocab,
            stream_id=stream_id,
            packet=0,
            length=0,
            offset=0,
            text_crc=0,
            ids_ack=0,
            ids_end=0,
        )

    def _damaged(self, exchange: Exchange) -> TokdError:
        return TokdError(
            f"{self._peer}: {exchange._receiver.have} ids arrived whose number or CRC32C is not "
            "what the appliance published: they were changed on their way, send the text again"
        )

    def _what_is_missing(self, exchange: Exchange) -> str:
        sender, receiver = exchange._sender, exchange._receiver
        total = receiver.final.total if receiver.final is not None else "?"
        return (
            f"{self._peer}: nothing moved for {self._timeout} s: {sender.ack} of {sender.n} packets "
            f"have arrived there, {receiver.have} of {total} ids here"
        )
