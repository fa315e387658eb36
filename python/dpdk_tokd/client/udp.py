# SPDX-License-Identifier: BSD-3-Clause
"""The UDP socket below both clients."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .. import wire
from .engine import Engine

RECEIVE_BUFFER = 4 << 20
RECEIVE_BURST = 64  # datagrams, before what they call for is sent
# Datagrams that fit the receive buffer at most: Linux doubles it, and counts 512 bytes or more each.
UNREAD_MOST = 2 * RECEIVE_BUFFER // 512
LONGEST = wire.REP.size + wire.PAYLOAD + 1  # bytes of a datagram that are looked at

AddrInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


def peer_name(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def naming(peer: str) -> Iterator[None]:
    """An OSError becomes the same one with the appliance's address and a remedy."""
    try:
        yield
    except socket.gaierror as e:
        remedy = "give a name or an address that resolves"
        raise socket.gaierror(e.errno, f"{peer}: {e.strerror}: {remedy}") from None
    except OSError as e:
        if e.errno is None:
            raise
        remedy = "is there a route to it?"
        if e.errno == errno.ECONNREFUSED:
            remedy = "nothing listens there: is dpdk-tokd running, and its --udp-port this one?"
        raise OSError(e.errno, f"{peer}: {os.strerror(e.errno)}: {remedy}") from None


def connected(found: Iterable[AddrInfo]) -> socket.socket:
    """A socket that does not block, to the first address of getaddrinfo() that takes one."""
    error: OSError | None = None
    for family, kind, protocol, _, address in found:
        s = socket.socket(family, kind, protocol)
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            s.connect(address)
            s.setblocking(False)
        except OSError as e:
            s.close()
            error = e
        except BaseException:
            s.close()
            raise
        else:
            return s
    raise error or OSError("the name has no address")


def is_passing(error: OSError) -> bool:
    """It will do later, without anybody's doing."""
    return error.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS, errno.EINTR)


class Incoming:
    """Gives an engine what has come.

    A process that had other things to do finds answers and time-outs at once. No text may be taken
    for unanswered while its answer lies in the receive buffer, so the time is up to `Engine.tick`
    only when `drained`. Nor may a flood hold it off for ever: what has arrived since the buffer was
    last seen empty, and is more than fits it, came after whatever is to be timed out.
    """

    def __init__(self, s: socket.socket, engine: Engine) -> None:
        self.drained = True
        self._socket = s
        self._engine = engine
        self._in_a_row = 0  # datagrams without an end

    def take_burst(self) -> int:
        """Take in up to RECEIVE_BURST datagrams; how many there were. OSError: as recv()."""
        self.drained = False
        for n in range(RECEIVE_BURST):
            try:
                packet = self._socket.recv(LONGEST)
            except OSError as error:
                self._in_a_row = 0
                self.drained = True
                if not is_passing(error):
                    raise
                return n
            self._engine.take(packet, time.monotonic())
        self._in_a_row += RECEIVE_BURST
        if self._in_a_row >= UNREAD_MOST:
            self._in_a_row = 0
            self.drained = True
        return RECEIVE_BURST
