# SPDX-License-Identifier: BSD-3-Clause
"""The UDP socket below both clients."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from . import wire

RECEIVE_BUFFER = 4 << 20
LONGEST = wire.REP.size + wire.PAYLOAD + 1  # bytes of a datagram that are looked at

AddrInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


def peer_name(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
