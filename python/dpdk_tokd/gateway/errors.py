# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a request, in the shape of vLLM's errors or of TEI's."""

from __future__ import annotations

from http import HTTPStatus

import msgspec


class Refused(Exception):
    """The request's fault, or the gateway's state: answered by `status` and `body`.

    kind: vLLM's "type"; by default the phrase of the status. param: the field it is about.
    headers: more for the answer, such as Retry-After.
    """

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        *,
        kind: str | None = None,
        param: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers
        self.body = msgspec.json.encode(
            {
                "error": {
                    "message": message,
                    "type": kind or status.phrase,
                    "param": param,
                    "code": status.value,
                }
            }
        )


class TeiRefused(Refused):
    """Likewise, in TEI's shape. kind: TEI's "error_type"."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        kind: str,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(status, message, headers=headers)
        self.body = msgspec.json.encode({"error": message, "error_type": kind})


def busy(why: str, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE) -> Refused:
    return Refused(status, f"{why}: send it again", headers=((b"retry-after", b"1"),))


def bad_request(message: str, param: str | None = None) -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, message, param=param)


def as_tei(refused: Refused) -> TeiRefused:
    """The same in TEI's shape; TEI says 429 where the gateway is busy."""
    if isinstance(refused, TeiRefused):
        return refused
    status, kind = refused.status, "Validation"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        status, kind = HTTPStatus.TOO_MANY_REQUESTS, "Overloaded"
    elif status == HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = "Backend"
    return TeiRefused(status, refused.message, kind, refused.headers)


def unacceptable(message: str, param: str | None = None, value: object = None) -> Refused:
    """What is of the right type, but not to be done; vLLM adds where and what it is."""
    more = [f"parameter={param}"] * (param is not None) + [f"value={value}"] * (value is not None)
    return Refused(
        HTTPStatus.BAD_REQUEST,
        f"{message} ({', '.join(more)})" if more else message,
        kind="BadRequestError",
        param=param,
    )


def not_implemented(what: str, param: str | None = None) -> Refused:
    return Refused(
        HTTPStatus.NOT_IMPLEMENTED,
        f"{what}: the gateway does not have it",
        kind="NotImplementedError",
        param=param,
    )
