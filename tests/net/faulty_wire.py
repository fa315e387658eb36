# SPDX-License-Identifier: BSD-3-Clause
"""A wire that loses, doubles and reorders datagrams, between a client and the appliance.

It listens on a UDP port of its own and passes what comes to the appliance and back, by the dice
of a seed. A datagram that is held back goes after some later ones, or after a moment of silence.
"""

import random
import select
import socket
from dataclasses import dataclass

from bench.lab.beside import Beside
from netlab import SERVER_IP, NetLab

HELD_BACK_S = 0.002


@dataclass(frozen=True)
class Faults:
    """Shares of the datagrams, in either direction; of replies other ones may be dropped."""

    drop: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    drop_replies: float | None = None


class FaultyWire(Beside):
    def __init__(self, lab: NetLab, faults: Faults, seed: int, port: int = 9000) -> None:
        super().__init__()
        self.dropped = self.doubled = self.reordered = 0
        self._faults = faults
        self._rng = random.Random(seed)
        self._client: tuple[str, int] | None = None
        self._near, self._far = lab.call(self._sockets)
        self._far.connect((SERVER_IP, port))
        self.port = self._near.getsockname()[1]
        self._held: dict[bool, list[bytes]] = {True: [], False: []}

    def _sockets(self) -> tuple[socket.socket, socket.socket]:
        pair = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for s in pair:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        pair[0].bind(("127.0.0.1", 0))
        return pair[0], pair[1]

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._near.close()
        self._far.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            ready, _, _ = select.select([self._near, self._far], [], [], HELD_BACK_S)
            for s in ready:
                forth = s is self._near
                datagram, peer = s.recvfrom(4096)
                if forth:
                    self._client = peer
                self._take(datagram, forth)
            if not ready:
                self._let_go(True)
                self._let_go(False)

    def _take(self, datagram: bytes, forth: bool) -> None:
        f, dice = self._faults, self._rng.random
        drop = f.drop if forth or f.drop_replies is None else f.drop_replies
        if dice() < drop:
            self.dropped += 1
            return
        if dice() < f.reorder:
            self.reordered += 1
            self._held[forth].append(datagram)
            return
        self._pass(datagram, forth)
        if dice() < f.double:
            self.doubled += 1
            self._pass(datagram, forth)
        if self._held[forth] and dice() < 0.3:
            self._let_go(forth)

    def _let_go(self, forth: bool) -> None:
        held = self._held[forth]
        self._rng.shuffle(held)
        while held:
            self._pass(held.pop(), forth)

    def _pass(self, datagram: bytes, forth: bool) -> None:
        if forth:
            self._far.send(datagram)
        elif self._client is not None:
            self._near.sendto(datagram, self._client)
