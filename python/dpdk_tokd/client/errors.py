# SPDX-License-Identifier: BSD-3-Clause
"""What both clients make of the library's results: errors as Python exceptions, arrays, text."""

from __future__ import annotations

import math
import socket

import numpy as np

from .._arguments import check_number, check_seconds, check_type
from .._native import libtokd as native
from ..tokenizer.batch import ID_MAX, Uint32Ids
from ..wire import Reason

TIMEOUT_MAX_S = 86400
PORT_MAX = MTU_MAX = 65535


class TokdError(RuntimeError):
    """The appliance refused a text, or the text failed. `reason` says why; the message has the
    remedy."""

    def __init__(self, message: str, reason: Reason = Reason.NONE) -> None:
        super().__init__(message)
        self.reason = reason


def check_options(host: str, port: int, vocab: int, timeout: float, mtu: int) -> float:
    """The timeout as a float. ValueError: one is out of range; TypeError: the host is no str."""
    check_type("host", host, str, "a str")
    check_number("port", port, PORT_MAX, least=1)
    check_number("vocab", vocab, ID_MAX)
    check_number("mtu", mtu, MTU_MAX)
    return check_seconds("timeout", timeout, TIMEOUT_MAX_S, positive=True)


def opened(
    host: str, port: int, vocab: int, timeout: float, requests: int, mtu: int
) -> native.Client:
    """The library's client, of checked options. OSError; ValueError: the host is none."""
    try:
        return native.Client(host, port, vocab, math.ceil(timeout * 1e3), requests, mtu)
    except OSError as e:
        if e.errno is not None and e.errno < 0:
            raise socket.gaierror(e.errno, e.strerror) from None
        raise


def check(request: native.Request) -> None:
    """Raise the error of a finished request, if it failed."""
    status, why = request.status, request.error_text or "the client was closed"
    if status == native.OK:
        return
    if status == native.E_TIMEOUT:
        raise TimeoutError(why)
    if status == native.E_NET:
        raise OSError(request.error, why)
    if status == native.E_CANCELLED:
        raise ConnectionAbortedError(why)
    known = status == native.E_REFUSED and request.reason in Reason._value2member_map_
    raise TokdError(why, Reason(request.reason) if known else Reason.NONE)


def decoding(skip_special_tokens: bool) -> int:
    """Flags of a request whose text is ids."""
    return native.DECODE | (native.SKIP_SPECIAL if skip_special_tokens else 0)


def text_of(text: bytearray) -> str:
    """Whole characters: the appliance cuts nowhere else."""
    return text.decode("utf-8", "replace")


def array_of(ids: bytearray) -> Uint32Ids:
    return np.frombuffer(ids, np.uint32)
