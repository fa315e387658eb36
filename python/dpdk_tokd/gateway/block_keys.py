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

    model: None: the name under which the gateway serves it.
    """

    scheme: Scheme
    block_size: int = 16
    seed: str | None = None
    model: str | None = None
    cache_salt: str | None = None


def json_keys(asked: BlockKeys, model: Model, ids: npt.NDArray[np.uint32]) -> bytes:
    """An array of JSON, each key in hexadecimal; Refused where an argument is out of range."""
    name = model.name if asked.model is None else asked.model
    try:
        keys = block_keys(ids, asked.scheme, asked.block_size, asked.seed, name, asked.cache_salt)
    except ValueError as error:
        raise bad_request(f"block_keys: {error}", "block_keys") from None
    except ImportError as error:
        raise Refused(HTTPStatus.NOT_IMPLEMENTED, str(error), param="block_keys") from None
    if len(keys) == 0:
        return b"[]"
    size = keys.itemsize if keys.ndim == 1 else keys.shape[1]
    raw = keys.astype(keys.dtype.newbyteorder(">")).tobytes()
    return b'["%b"]' % raw.hex(",", size).replace(",", '","').encode()
