# SPDX-License-Identifier: BSD-3-Clause
"""A request's body as one of the shapes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from .errors import bad_request

Shape = TypeVar("Shape", bound=msgspec.Struct)


def read(body: bytes, shape: type[Shape]) -> Shape:
    """A request's body as one of the shapes; Refused names the field."""
    try:
        return msgspec.json.decode(body, type=shape, strict=False)
    except msgspec.ValidationError as error:
        message, at, path = str(error).partition(" - at `$.")
        missing = "required field `"
        field = path.rstrip("`") if at else message.partition(missing)[2].rstrip("`")
        raise bad_request(str(error), field or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not JSON: {error}") from None
