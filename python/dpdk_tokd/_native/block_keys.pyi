# SPDX-License-Identifier: BSD-3-Clause
"""Types of the C extension. Its user is dpdk_tokd.tokenizer.block_keys; see block_keys.c."""

from typing import Any

import numpy as np
import numpy.typing as npt

def keys(
    ids: npt.NDArray[np.uint32],
    scheme: str,
    block_size: int,
    seed: str | None,
    model: str,
    cache_salt: str | None,
    /,
) -> npt.NDArray[Any]: ...
