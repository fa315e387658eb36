# SPDX-License-Identifier: BSD-3-Clause
"""One embedding as a holder has it: rows where the consumer wrote them, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from .._native import libtok
from ..ring.errors import RingError
from .layout import ABORT, FIRST, LAST, Dtype, EmbeddingStatus, Entry

if TYPE_CHECKING:
    from .reader import EmbeddingReader

NUMPY: dict[Dtype, np.dtype[Any]] = {
    Dtype.F32: np.dtype("<f4"),
    Dtype.F16: np.dtype("<f2"),
    Dtype.BF16: np.dtype("<u2"),
}
DL_CODE = {Dtype.F32: 2, Dtype.F16: 2, Dtype.BF16: 4}  # kDLFloat, kDLBfloat
DL_CPU, DL_CUDA = 1, 2


class _Lease:
    """Keeps an embedding from being given back, and its memory mapped, while another library has
    its rows."""

    __slots__ = ("_embedding", "_memory")

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._memory = embedding._reader._memory()
        # A set: it dies in any thread, or in the middle of anything, and counting is not atomic.
        embedding._leases.add(id(self))

    def __del__(self) -> None:
        self._embedding._leases.discard(id(self))
        self._embedding._reader._advance()


class Embedding:
    """Rows [first, first + len(self)) of one text.

    `array` is the consumer's own memory, read-only, of shape (rows, dimension). It stands until
    the embedding is released: by the reader when it goes on to the next one, unless `hold()` was
    called, or by `release()`. Reading an array kept beyond that shows whatever came to lie there.

    Other libraries take the rows by DLPack, as in `torch.from_dlpack(embedding)`: what they make
    of them keeps the embedding from being given back until it is gone. It must not be written to.

    A text is named by `instance`, `worker` and `request`. After an agent or an appliance was
    restarted, rows of a text may come again: with the same names, and the same `first`.
    """

    __slots__ = ("_array", "_entry", "_held", "_leases", "_position", "_reader", "_released")

    def __init__(self, reader: EmbeddingReader, position: int, entry: Entry) -> None:
        self._reader = reader
        self._position = position
        self._entry = entry
        self._held = False
        self._released = False
        self._leases: set[int] = set()
        self._array: npt.NDArray[Any] | None = None

    @property
    def array(self) -> npt.NDArray[Any]:
        """A view of the outputs: float32, float16, or for bfloat16, which numpy has not, its bits
        as uint16. RingError once released, and when the rows are in GPU memory."""
        if self._array is None:
            self._check_not_released()
            self._array = self._reader._view(self._entry)
        return self._array

    @property
    def instance(self) -> int:
        """Which start of dpdk-tokd the text came from."""
        return self._entry.instance

    @property
    def request(self) -> int:
        """The text: the serial of its records in the token ring of `worker`."""
        return self._entry.request

    @property
    def worker(self) -> int:
        return self._entry.worker

    @property
    def producer(self) -> int:
        """Place in the GPU ring that the text came by."""
        return self._entry.producer

    @property
    def epoch(self) -> int:
        """Of the place: another after its producer was another."""
        return self._entry.epoch

    @property
    def first(self) -> int:
        """Index of the first row within its text."""
        return self._entry.first

    @property
    def starts(self) -> bool:
        """The first rows of the text."""
        return bool(self._entry.flags & FIRST)

    @property
    def last(self) -> bool:
        """The text is complete with these rows, or has failed."""
        return bool(self._entry.flags & (LAST | ABORT))

    @property
    def aborted(self) -> bool:
        """The text failed: no more of it comes, and these are no rows of it."""
        return bool(self._entry.flags & ABORT)

    @property
    def status(self) -> EmbeddingStatus:
        return EmbeddingStatus(self._entry.status)

    @property
    def t_post(self) -> int:
        """TSC ticks of the appliance when the ids were posted."""
        return self._entry.t_post

    @property
    def visible_ns(self) -> int:
        """The consumer's clock when it saw the ids, and"""
        return self._entry.visible

    @property
    def embedded_ns(self) -> int:
        """... when the rows were written. Only their difference means something."""
        return self._entry.embedded

    @property
    def t_ready_ns(self) -> int:
        """CLOCK_MONOTONIC when the agent handed them out."""
        return self._entry.t_ready

    @property
    def intact(self) -> bool:
        """Whether all that was read up to now is what was written. It is, until the agent drops
        this holder."""
        return self._reader._is_valid(self._position)

    def _check_not_released(self) -> None:
        if self._released:
            raise RingError("the embedding was released: its rows may be overwritten; hold() it")

    def _address(self) -> int:
        return self._reader._base() + self._entry.offset

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._reader.cuda_device
        return (DL_CPU, 0) if device is None else (DL_CUDA, device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """The rows for another library. `stream` needs nothing: they were written before this
        embedding was handed out."""
        self._check_not_released()
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("rows are given where they are: copy them after that")
        dtype = self._reader.dtype
        return libtok.dlpack(
            _Lease(self),
            self._address(),
            len(self),
            self._reader.dim,
            DL_CODE[dtype],
            32 if dtype == Dtype.F32 else 16,
            *self.__dlpack_device__(),
            max_version is not None and max_version[0] >= 1,
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Version 3 (numba's). bfloat16, which it has not, is the bits as uint16.

        Asking for it holds the embedding: nobody says when what is made of it is gone, and kernels
        read on while the reader goes on. `release()` it when the last of them was launched; it
        waits for them. DLPack, where a library has it, does that by itself.
        """
        if self._reader.cuda_device is None:
            raise AttributeError("the rows are in host memory: see array")
        self._check_not_released()
        self.hold()
        return {
            "shape": (len(self), self._reader.dim),
            "typestr": NUMPY[self._reader.dtype].str,
            "data": (self._address(), True),
            "strides": None,
            "version": 3,
        }

    def hold(self) -> Self:
        """Keep it until `release()`. What is held, and all after it, takes outputs: hold for too
        long and the agent drops this holder."""
        self._held = True
        return self

    def release(self) -> None:
        """Let go of the rows. A second call does nothing.

        Rows in GPU memory are given back when all that this process has launched on that GPU has
        ended (cudaDeviceSynchronize): with kernels in flight it waits for them. To wait less often,
        hold several and release the oldest last: they are given back together.
        """
        if not self._released:
            self._released = True
            self._array = None
            self._reader._advance()

    def __enter__(self) -> Self:
        return self.hold()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __len__(self) -> int:
        return self._entry.tokens

    def __repr__(self) -> str:
        end = ", aborted" if self.aborted else ", last" if self.last else ""
        return (
            f"Embedding(request={self.request}, rows [{self.first}, {self.first + len(self)})"
            f"{end}, {self.status.name}, worker {self.worker})"
        )
