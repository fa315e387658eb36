# SPDX-License-Identifier: BSD-3-Clause
"""Unix sockets to listen at."""

from __future__ import annotations

import errno
import os
import socket
import stat

SERVED = (0, errno.EAGAIN, errno.EPROTOTYPE)  # it accepts, its backlog is full, or of another type


def check_free(path: str) -> None:
    """Remove a socket that is left over. OSError: another server listens at it."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        error = client.connect_ex(path)
    if error in SERVED:
        raise OSError("another server listens there: stop it, or give another path")
    if error != errno.ECONNREFUSED:
        raise OSError(error, f"a socket that may be served: {os.strerror(error)}")
    os.remove(path)


def listen(path: str) -> socket.socket:
    """In place of a socket that is left over. uvicorn would let everybody connect, whatever the
    umask is. OSError."""
    check_free(path)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    return listening
