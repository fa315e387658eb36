# SPDX-License-Identifier: BSD-3-Clause
"""Block keys in an answer, where a request asks for them."""

from __future__ import annotations

from http import HTTPStatus

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ..tokenizer.block_keys import Scheme, block_keys
from .errors import Refused, bad_request
from .models import Model


class BlockKeys(Struct, forbid_unknown_fields=True):
    """The field `block_keys` of a request: arguments of Tokenizer.block_keys.

    model: None: the name under which the gateway serves it. cache_salt: None: that of the request,
    if it has one.
    """

    scheme: Scheme
    block_size: int = 16
    seed: str | None = None
    model: str | None = None
    cache_salt: str | None = None


def json_keys(
    asked: BlockKeys | None, model: Model, ids: npt.NDArray[np.uint32], salt: str | None = None
) -> bytes:
    """A field of JSON after others, each key in hexadecimal; empty if it is not asked for.
    Refused: an argument is out of range. salt: of the request."""
    if asked is None:
        return b""
    name = model.name if asked.model is None else asked.model
    salt = salt if asked.cache_salt is None else asked.cache_salt
    try:
        keys = block_keys(ids, asked.scheme, asked.block_size, asked.seed, name, salt)
    except ValueError as error:
        raise bad_request(f"block_keys: {error}", "block_keys") from None
    except ImportError as error:
        raise Refused(HTTPStatus.NOT_IMPLEMENTED, str(error), param="block_keys") from None
    if len(keys) == 0:
        return b',"block_keys":[]'
    size = keys.itemsize if keys.ndim == 1 else keys.shape[1]
    raw = keys.astype(keys.dtype.newbyteorder(">")).tobytes()
    return b',"block_keys":["%b"]' % raw.hex(",", size).replace(",", '","').encode()
