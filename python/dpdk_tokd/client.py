# SPDX-License-Identifier: BSD-3-Clause
"""A client of the appliance: text to ids over UDP, by the protocol of include/tokd/wire.h.

A text is cut into numbered packets. Which of them the appliance has, its replies say: all below
`ack`, and those in `sack`. Two rules find what is lost:

- Packets overtake each other seldom: one that is missing although one sent *after* it has arrived
  is taken for lost at once (as RFC 8985 does for TCP).
- When nothing is heard for the retransmission time-out (RFC 6298, doubled each time), all that is
  in flight is, and a POLL goes behind it, which is always answered.

Ids that are missing are asked for by POLL, when a gap is seen and when nothing is heard.
"""

from __future__ import annotations

import math
import secrets
import select
import socket
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

import google_crc32c
import numpy as np

from . import wire
from .tokenizer import Ids, Text
from .wire import Reason, Rep, Req

RTO_FIRST_S = 0.020
RTO_LEAST_S = 0.005
RTO_MOST_S = 0.25  # several tries fit any sensible time limit
PROBE_MOST_S = 0.1  # while a POLL is all there is to send
TICK_S = 0.001  # granularity of timers (G in RFC 6298)
ACK_EVERY = 16  # reply packets with ids
AGAIN_BURST = 16  # packets sent again at once on a time-out: the appliance answers so many
RESENDS_MAX = 8  # of one text under a new stream id
BUSY_PAUSE_S = 0.005
RECEIVE_BUFFER = 4 << 20
TEXT_MAX = (1 << 32) - 1

SEND_AGAIN = frozenset({Reason.EXPIRED, Reason.BUSY, Reason.UNKNOWN})


class TokdError(RuntimeError):
    """The appliance refused a text or failed at it. `reason` says why, the message what to do."""

    def __init__(self, message: str, reason: Reason = Reason.NONE) -> None:
        super().__init__(message)
        self.reason = reason


class _SendAgain(Exception):
    """The stream is over, the text is not: it goes on under a new stream id."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


class _RtoTimer:
    """Retransmission time-out after RFC 6298, sections 2 and 5. Seconds."""

    def __init__(self) -> None:
        self.srtt = 0.0
        self._rttvar = 0.0
        self._rto = RTO_FIRST_S
        self._backoff = 1

    def sample(self, rtt: float) -> None:
        if self.srtt == 0.0:
            self.srtt, self._rttvar = rtt, rtt / 2
        else:
            self._rttvar += (abs(self.srtt - rtt) - self._rttvar) / 4
            self.srtt += (rtt - self.srtt) / 8
        self._rto = max(RTO_LEAST_S, self.srtt + max(TICK_S, 4 * self._rttvar))
        self._backoff = 1

    def expired(self) -> None:
        self._backoff *= 2

    def progressed(self) -> None:
        self._backoff = 1

    def rto(self, most: float) -> float:
        """Seconds of silence; backed off up to `most`."""
        return max(self._rto, min(most, self._rto * self._backoff))


class _Sender:
    """The packets of one text: which are sent, in flight, arrived, lost."""

    def __init__(self, text: bytes, header: Req, client: Client) -> None:
        self._text = memoryview(text)
        self._client = client
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
        self._stopped = False

    def send_what_may_go(self, ids_ack: int) -> bool:
        """Send what is lost or new, up to the limit. True if anything was."""
        order = self._order
        for packet in sorted(self._lost):
            if packet < self.limit:
                self._lost.discard(packet)
                self._client.retransmits += 1
                self._send(packet, ids_ack)
        while self.next < min(self.n, self.limit):
            self._send(self.next, ids_ack)
            self.next += 1
        return self._order > order

    def _send(self, packet: int, ids_ack: int) -> None:
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
        self._sent_at[packet] = (self._order, time.monotonic(), packet not in self._sent_at)
        self._client._send([header.pack(), piece])

    def heard(self, rep: Rep, timer: _RtoTimer) -> bool:
        """Take in what a reply says. True if packets arrived that were not known to have."""
        if rep.ack > self.next or rep.ack < self.ack:
            return False  # of another stream's past, or overtaken by a later reply
        if rep.credit == 0 and rep.ack < self.n:
            self._stopped = True
            self._stopped_at = self._order
        progress = rep.ack > self.ack
        newest = self._newest_arrival(rep)
        if progress:
            self._sample_rtt(rep.ack - 1, timer)
            for packet in range(self.ack, rep.ack):
                del self._sent_at[packet]
            self._lost = {p for p in self._lost if p >= rep.ack}
            self._sacked = {p for p in self._sacked if p >= rep.ack}
            self.ack = rep.ack
        progress |= self._take_sack(rep, newest)
        # A stopped appliance dropped what came meanwhile: it is sent again when it goes on.
        if rep.credit != 0 and self._stopped:
            self._stopped = False
            self._lose_all()
        self.limit = rep.ack + rep.credit
        return progress

    def _newest_arrival(self, rep: Rep) -> int:
        """Order in which the latest-sent of the packets that have arrived was sent."""
        arrived = list(range(self.ack, rep.ack)) + self._sacked_by(rep)
        return max((self._sent_at[p][0] for p in arrived if p in self._sent_at), default=0)

    def _sacked_by(self, rep: Rep) -> list[int]:
        return [rep.ack + 1 + i for i in range(rep.sack.bit_length()) if rep.sack >> i & 1]

    def _sample_rtt(self, packet: int, timer: _RtoTimer) -> None:
        order, at, once = self._sent_at[packet]
        # RFC 6298 section 3: the answer to a packet sent twice may be that to the first one. One
        # sent before the appliance stopped waited there, not on its way.
        if once and order > self._stopped_at:
            timer.sample(time.monotonic() - at)

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
        self.asked = -1  # value of `have` at which a gap was asked for at once

    def take(self, rep: Rep, ids: Ids) -> list[tuple[int, Ids]]:
        """Ids that are now in order, as (index of the first, ids)."""
        if rep.flags & wire.F_DONE and self.final is None:
            self.final = rep
        if rep.n_ids:
            self.unacked += 1
            known = self._early.get(rep.first)
            if rep.first + rep.n_ids > self.have and (known is None or len(known) < rep.n_ids):
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

    def verify(self) -> None:
        """The ids are those the appliance published. Call when complete."""
        assert self.final is not None
        if self.have != self.final.total or self._crc != self.final.ids_crc:
            raise TokdError(
                f"{self.have} ids with CRC32C {self._crc:#010x} arrived, the appliance published "
                f"{self.final.total} with {self.final.ids_crc:#010x}: they were changed on their "
                "way, send the text again"
            )


class Client:
    """Sends texts to an appliance and returns their ids. One text at a time; one thread at a time.

    `retransmits` counts packets of text sent again, `polls` packets without text, `resends` texts
    that had to be begun again. `server_vocab` is the checksum of the vocabulary that was used,
    0 before the first reply.
    """

    def __init__(
        self,
        host: str,
        port: int = wire.PORT,
        *,
        vocab: int = 0,
        timeout: float = 5.0,
        stream: bool = False,
    ) -> None:
        """Speak to the appliance at `host` (IPv4).

        vocab: checksum of the vocabulary that shall be used (`Tokenizer.checksum`); 0: whichever
        the appliance has.
        timeout: seconds without any progress after which a text fails with TimeoutError.
        stream: ask for each id as soon as it is certain, also in `tokenize`.
        OSError: the name or address cannot be used.
        """
        self.retransmits = 0
        self.polls = 0
        self.resends = 0
        self.server_vocab = 0
        self._vocab = vocab
        self._timeout = timeout
        self._stream = stream
        self._epoch = secrets.randbits(32)
        self._stream_id = secrets.randbits(32)
        self._timer = _RtoTimer()
        self._peer = f"{host}:{port}"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            self._socket.connect((host, port))
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._socket, select.POLLIN)
        self._writable.register(self._socket, select.POLLOUT)

    def tokenize(self, text: Text) -> Ids:
        """Ids of `text`: uint32, shape (n,), the caller's own.

        Text is a str, or bytes of UTF-8. TokdError: the appliance refused it, or ids do not agree
        with their CRC32C; TimeoutError: nothing moved for `timeout` seconds; OSError: the host
        cannot be reached, or nothing listens there; ValueError: a str with a surrogate, or a text
        of 4 GiB or more.
        """
        pieces = [ids for _, ids in self._run(text, self._stream)]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint32)

    def tokenize_many(self, texts: Iterable[Text]) -> list[Ids]:
        """Ids of each text, one text after the other. Errors as in `tokenize`."""
        return [self.tokenize(text) for text in texts]

    def tokenize_stream(self, text: Text) -> Iterator[tuple[int, Ids]]:
        """Ids of `text` in order as they arrive: (index of the first, uint32 of shape (n,)).

        Errors as in `tokenize`, also after ids have been given out.
        """
        return self._run(text, True)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, text: Text, stream: bool) -> Iterator[tuple[int, Ids]]:
        data = text.encode() if isinstance(text, str) else bytes(text)
        if len(data) > TEXT_MAX:
            raise ValueError(f"text of {len(data)} bytes: the protocol carries {TEXT_MAX} at most")
        given = 0
        for attempt in range(RESENDS_MAX + 1):
            try:
                for first, ids in self._run_once(data, stream):
                    if first + len(ids) <= given:
                        continue  # given out by an earlier attempt
                    ids = ids[max(0, given - first) :]
                    yield given, ids
                    given += len(ids)
                return
            except _SendAgain as again:
                reason = again.reason
            self.resends += 1
            if reason is Reason.BUSY:
                time.sleep(BUSY_PAUSE_S * 2**attempt)
        raise TokdError(
            f"{self._peer}: {reason.name} for {RESENDS_MAX + 1} times: {wire.REMEDY[reason]}",
            reason,
        )

    def _run_once(self, text: bytes, stream: bool) -> Iterator[tuple[int, Ids]]:
        """One stream. _SendAgain if the text shall be sent under another id."""
        self._stream_id += 1
        flags = wire.F_IDS | (wire.F_STREAM if stream else 0)
        sender = _Sender(text, self._header(wire.DATA, flags), self)
        receiver = _Receiver()
        known = False  # the appliance has the stream
        waited = 0.0  # seconds without progress
        wait = self._next_wait(sender)
        sender.send_what_may_go(0)

        while not receiver.complete:
            got = self._receive(wait)
            if got is None:
                waited += wait
                if waited >= self._timeout:
                    raise TimeoutError(self._what_is_missing(sender, receiver))
                self._timer.expired()
                sender.lose_first()
                sender.send_what_may_go(receiver.have)
                self._poll(receiver, self._missing_end(receiver))
                wait = self._next_wait(sender)
                continue
            rep, ids = got
            if rep.flags & wire.F_FAIL:
                if rep.reason == Reason.UNKNOWN and not known:
                    continue  # a POLL came, no packet of text did: the time-out sends them again
                self._raise(rep)
            known = True
            if sender.heard(rep, self._timer) or rep.first + rep.n_ids > receiver.have:
                waited = 0.0
                self._timer.progressed()
            yield from receiver.take(rep, ids)
            if receiver.complete:
                break
            if sender.send_what_may_go(receiver.have):
                receiver.unacked = 0  # each packet of text acknowledges ids
            self._answer(receiver)
            wait = self._next_wait(sender)
        receiver.verify()
        self._poll(receiver, 0)  # lets the appliance let go of them

    def _next_wait(self, sender: _Sender) -> float:
        """Seconds of silence after which something is lost, or credit is asked for."""
        return self._timer.rto(PROBE_MOST_S if sender.idle else RTO_MOST_S)

    def _answer(self, receiver: _Receiver) -> None:
        """What a reply calls for besides text: a question for ids, or their acknowledgement."""
        gap_end = receiver.gap_end
        if gap_end and receiver.asked != receiver.have:
            receiver.asked = receiver.have
            self._poll(receiver, gap_end)
        elif receiver.unacked >= ACK_EVERY:
            self._poll(receiver, 0)

    def _missing_end(self, receiver: _Receiver) -> int:
        """What to ask for after a time-out."""
        if receiver.gap_end:
            return receiver.gap_end
        return receiver.final.total if receiver.final is not None else 0

    def _poll(self, receiver: _Receiver, ids_end: int) -> None:
        receiver.unacked = 0
        self.polls += 1
        poll = self._header(wire.POLL, 0)._replace(ids_ack=receiver.have, ids_end=ids_end)
        self._send([poll.pack()])

    def _header(self, type: int, flags: int) -> Req:
        return Req(
            magic=wire.MAGIC,
            version=wire.VERSION,
            type=type,
            flags=flags,
            epoch=self._epoch,
            vocab=self._vocab,
            stream_id=self._stream_id,
            packet=0,
            length=0,
            offset=0,
            text_crc=0,
            ids_ack=0,
            ids_end=0,
        )

    def _send(self, parts: list[bytes | memoryview]) -> None:
        try:
            self._socket.sendmsg(parts)
        except BlockingIOError:
            self._writable.poll(self._timeout * 1e3)  # lost if that fails: sent again later

    def _receive(self, wait: float) -> tuple[Rep, Ids] | None:
        """The next reply of this stream, or None if there is none for `wait` seconds."""
        deadline = time.monotonic() + wait
        while True:
            try:
                packet = self._socket.recv(wire.REP.size + wire.PAYLOAD + 1)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._readable.poll(math.ceil(left * 1e3))
                continue
            rep = wire.parse_rep(packet)
            if rep is None or rep.epoch != self._epoch or rep.stream_id != self._stream_id:
                continue
            self._check_vocab(rep)
            return rep, np.frombuffer(packet, np.uint32, rep.n_ids, wire.REP.size)

    def _check_vocab(self, rep: Rep) -> None:
        if rep.flags & wire.F_FAIL:
            return
        if self._vocab and rep.vocab != self._vocab:
            raise TokdError(
                f"{self._peer}: used vocabulary {rep.vocab:#010x}, asked was {self._vocab:#010x}",
                Reason.VOCAB,
            )
        self.server_vocab = rep.vocab

    def _raise(self, rep: Rep) -> None:
        try:
            reason = Reason(rep.reason)
        except ValueError:
            raise TokdError(
                f"{self._peer}: failed for reason {rep.reason}, which this package does not know"
            ) from None
        if reason in SEND_AGAIN:
            raise _SendAgain(reason)
        asked = f" (asked: {self._vocab:#010x})" if reason is Reason.VOCAB else ""
        raise TokdError(
            f"{self._peer}: {reason.name}{asked}: {wire.REMEDY.get(reason, 'no reason given')}",
            reason,
        )

    def _what_is_missing(self, sender: _Sender, receiver: _Receiver) -> str:
        total = receiver.final.total if receiver.final is not None else "?"
        return (
            f"{self._peer}: nothing moved for {self._timeout} s: {sender.ack} of {sender.n} packets "
            f"have arrived there, {receiver.have} of {total} ids here"
        )
