# SPDX-License-Identifier: BSD-3-Clause
"""A client of the appliance: text to ids over UDP. The protocol is engine.py's."""

from __future__ import annotations

import itertools
import math
import select
import socket
import time
from collections.abc import Iterable, Iterator

from .. import wire
from .._closing import Closing
from .udp import Incoming, connected, naming, peer_name
from ..tokenizer.batch import Ids
from .engine import Engine, Exchange, joined, to_bytes
from ..tokenizer.tokenizer import Text

IN_FLIGHT = 64
NO_IDS = joined([])


class Client(Closing):
    """Sends texts to an appliance and returns their ids. One thread at a time.

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
        """Speak to the appliance at `host`, a name or an IPv4 or IPv6 address.

        vocab: checksum of the vocabulary that shall be used (`Tokenizer.checksum`); 0: whichever
        the appliance has.
        timeout: seconds without any progress after which a text fails with TimeoutError.
        stream: ask for each id as soon as it is certain, also in `tokenize`.
        OSError: the name or address cannot be used.
        """
        self._stream = stream
        self._timeout = timeout
        self._peer = peer_name(host, port)
        self._engine = Engine(self._peer, vocab=vocab, timeout=timeout)
        with naming(self._peer):
            self._socket = connected(socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM))
        self._incoming = Incoming(self._socket, self._engine)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._socket, select.POLLIN)
        self._writable.register(self._socket, select.POLLOUT)

    @property
    def retransmits(self) -> int:
        return self._engine.retransmits

    @property
    def polls(self) -> int:
        return self._engine.polls

    @property
    def resends(self) -> int:
        return self._engine.resends

    @property
    def server_vocab(self) -> int:
        return self._engine.server_vocab

    def tokenize(self, text: Text) -> Ids:
        """Ids of `text`: uint32, shape (n,), the caller's own.

        Text is a str, or bytes of UTF-8. TokdError: the appliance refused it, or ids do not agree
        with their CRC32C; TimeoutError: nothing moved for `timeout` seconds; OSError: the host
        cannot be reached, or nothing listens there; ValueError: a str with a surrogate, or a text
        of 4 GiB or more.
        """
        return joined([ids for _, ids in self._follow(self._begin(text, self._stream))])

    def tokenize_many(self, texts: Iterable[Text], in_flight: int = IN_FLIGHT) -> list[Ids]:
        """Ids of each text, in the order of the texts, of which up to `in_flight` are under way at
        once. Errors as in `tokenize`; the first one ends it."""
        if in_flight < 1:
            raise ValueError(f"in_flight={in_flight}: give at least 1")
        results: list[Ids] = []
        flying: dict[Exchange, int] = {}  # and where its ids belong
        rest = iter(texts)
        try:
            while True:
                for text in itertools.islice(rest, in_flight - len(flying)):
                    flying[self._begin(text, self._stream)] = len(results)
                    results.append(NO_IDS)
                if not flying:
                    return results
                for exchange in self._turn():
                    if exchange.finished and exchange in flying:
                        at = flying.pop(exchange)
                        results[at] = joined([ids for _, ids in self._follow(exchange)])
        finally:
            for exchange in flying:
                self._engine.cancel(exchange)

    def tokenize_stream(self, text: Text) -> Iterator[tuple[int, Ids]]:
        """Ids of `text` in order as they arrive: (index of the first, uint32 of shape (n,)).

        Errors as in `tokenize`, also after ids have been given out.
        """
        yield from self._follow(self._begin(text, True))

    def close(self) -> None:
        self._socket.close()

    def _begin(self, text: Text, stream: bool) -> Exchange:
        return self._engine.begin(to_bytes(text), stream=stream)

    def _follow(self, exchange: Exchange) -> Iterator[tuple[int, Ids]]:
        """The ids of one text as they come. Others under way go on meanwhile."""
        try:
            while True:
                yield from exchange.take()
                if exchange.finished:
                    break
                self._turn()
            with naming(self._peer):
                self._send()  # the acknowledgement of the last ids
        finally:
            self._engine.cancel(exchange)
        if exchange.error is not None:
            raise exchange.error

    def _turn(self) -> list[Exchange]:
        """Send, and wait until something comes or is due. The texts that have news."""
        with naming(self._peer):
            self._send()
            self._receive()
        if self._incoming.drained:
            self._engine.tick(time.monotonic())
        return self._engine.news()

    def _receive(self) -> None:
        deadline = self._engine.deadline()
        if self._incoming.take_burst() == 0 and deadline is not None:
            left = deadline - time.monotonic()
            if left > 0:
                self._readable.poll(math.ceil(left * 1e3))
            self._incoming.take_burst()

    def _send(self) -> None:
        for parts in self._engine.packets(time.monotonic()):
            try:
                self._socket.sendmsg(parts)
            except BlockingIOError:
                self._writable.poll(self._timeout * 1e3)  # lost: sent again later
