# SPDX-License-Identifier: BSD-3-Clause
"""A range of one stream's ids in a token ring, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._native import libtokd as native
from ..tokenizer.batch import Ids, NDArray
from ..wire import Reason
from .errors import RingError

LLM_D = 0  # enum tokb_scheme, whose keys are numbers


class TokenRange(native.Range):
    """Ids [first, first + len(tokens)) of one stream.

    `tokens` is the ring's own memory, read-only, uint32 of shape (n,). It is valid until the range
    is released: when the reader continues, unless `hold()` was called, or by `release()`. An array
    kept beyond that may show other data.

    Times are TSC ticks of the appliance; those in ns have an arbitrary origin, so only differences
    are meaningful.
    """

    __slots__ = ()

    @property
    def tokens(self) -> Ids:
        """A view of the ring. Raises RingError after release."""
        return np.frombuffer(self._memory(), np.uint32, len(self))

    @property
    def keys(self) -> NDArray[Any]:
        """Keys of the blocks that end in this range, a view of the ring like `tokens`.

        As those of `Tokenizer.block_keys`: the first one is that of block `first_block`, which
        begins at id `first_block * block_size` of the stream. Often there is none. Raises
        RingError after release, and if the appliance runs without --block-keys.
        """
        if self.block_size == 0:
            raise RingError("the appliance publishes no keys of blocks: start it with --block-keys")
        start, n, each, scheme = self._keys
        if scheme == LLM_D:
            return np.frombuffer(self._memory(), np.uint64, n, start)
        return np.frombuffer(self._memory(), np.uint8, n * each, start).reshape(n, each)

    def _memory(self) -> memoryview:
        if self._released:
            raise RingError("the range was released: its ids may be overwritten; hold() it")
        return memoryview(self)

    @property
    def reason(self) -> Reason:
        """Why the stream was aborted. Raises RingError for an unknown reason."""
        try:
            return Reason(self._reason)
        except ValueError:
            raise RingError(f"token ring {self.worker}: unknown reason {self._reason}") from None

    def __repr__(self) -> str:
        end = f", aborted: {self._reason}" if self.aborted else ", last" if self.last else ""
        return (
            f"TokenRange(stream_id={self.stream_id}, ids [{self.first}, "
            f"{self.first + len(self)}){end}, worker {self.worker})"
        )
