# SPDX-License-Identifier: BSD-3-Clause
"""One embedding: rows where the consumer wrote them, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from .._native import libtok
from ..ring.errors import RingError
from .cuda import LEGACY_STREAM, PER_THREAD_STREAM
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
    """Keeps an embedding and its mapping while another library uses the rows."""

    __slots__ = ("_embedding", "_memory")

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._memory = embedding._reader._memory()
        # A set: __del__ may run in any thread at any time, and counting is not atomic.
        embedding._leases.add(id(self))

    def __del__(self) -> None:
        self._embedding._leases.discard(id(self))
        self._embedding._reader._advance()


class Embedding:
    """Rows [first, first + len(self)) of one text.

    `array` is the consumer's own memory, read-only, of shape (rows, dimension). It is valid until
    the embedding is released: when the reader continues, unless `hold()` was called, or by
    `release()`. An array kept beyond that may show other data.

    Other libraries take the rows by DLPack, as in `torch.from_dlpack(embedding)`. Their object
    keeps the embedding until it is deleted. Do not write to it.

    `instance`, `worker` and `request` identify a text. After a restart of the agent or the
    appliance rows of a text may come again, with the same identity and the same `first`.

    With `status` SHED it is a notice without rows, of an appliance that did not wait for the agent
    (--sink-full=shed): every text of its `instance` and `worker` up to its `request` that was not
    complete (`last`) before it is shed. Drop what came of them; nothing more will.
    """

    __slots__ = (
        "_array",
        "_entry",
        "_held",
        "_leases",
        "_position",
        "_reader",
        "_released",
        "_streams",
    )

    def __init__(self, reader: EmbeddingReader, position: int, entry: Entry) -> None:
        self._reader = reader
        self._position = position
        self._entry = entry
        self._held = False
        self._released = False
        self._leases: set[int] = set()
        self._streams: set[int] = set()  # on which kernels read the rows
        self._array: npt.NDArray[Any] | None = None

    @property
    def array(self) -> npt.NDArray[Any]:
        """A view of the outputs: float32, float16, or for bfloat16, which NumPy lacks, its bits as
        uint16. Raises RingError after release, and if the rows are in GPU memory."""
        if self._array is None:
            self._check_not_released()
            self._array = self._reader._view(self._entry)
        return self._array

    @property
    def instance(self) -> int:
        """The run of dpdk-tokd that the text came from."""
        return self._entry.instance

    @property
    def request(self) -> int:
        """The text: the serial of its records in the token ring of `worker`."""
        return self._entry.request

    @property
    def worker(self) -> int:
        """Number of the appliance's worker that the text came from."""
        return self._entry.worker

    @property
    def producer(self) -> int:
        """Number of the producer in the GPU ring."""
        return self._entry.producer

    @property
    def epoch(self) -> int:
        """Changes when another producer takes that number."""
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
        """The text failed: no more comes, and this has no rows."""
        return bool(self._entry.flags & ABORT)

    @property
    def status(self) -> EmbeddingStatus:
        """What became of the text, as the agent says it."""
        return EmbeddingStatus(self._entry.status)

    @property
    def t_post(self) -> int:
        """TSC ticks of the appliance when the ids were posted."""
        return self._entry.t_post

    @property
    def visible_ns(self) -> int:
        """The consumer's clock when it saw the ids."""
        return self._entry.visible

    @property
    def embedded_ns(self) -> int:
        """The consumer's clock when the rows were written. Only differences are meaningful."""
        return self._entry.embedded

    @property
    def t_ready_ns(self) -> int:
        """CLOCK_MONOTONIC when the agent handed them out."""
        return self._entry.t_ready

    @property
    def intact(self) -> bool:
        """Whether everything read so far was valid. True until the agent drops this subscriber."""
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
        """The rows for another library, whose kernels read them on `stream` (None: the default
        one). It need not wait: they were written before this embedding was handed out.

        The rows are released when the library's object is gone and the stream has done what was
        launched on it by then. If kernels on another stream read them, let `stream` wait for that
        one before, or name it to `release()`.
        """
        self._check_not_released()
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("rows are given in place: copy them afterwards")
        dtype = self._reader.dtype
        if stream == -1:  # the library says nothing of its streams: the whole GPU is waited for
            stream = PER_THREAD_STREAM
        self._streams.add(stream or LEGACY_STREAM)
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
        """Version 3 (numba's). bfloat16, which it lacks, is its bits as uint16.

        Reading this attribute holds the embedding, because the user's end is not reported. Call
        `release()` after the last kernel was launched; it waits for those on the default stream,
        and on one that it is given. DLPack does that by itself.
        """
        if self._reader.cuda_device is None:
            raise AttributeError("the rows are in host memory: see array")
        self._check_not_released()
        self.hold()
        self._streams.add(LEGACY_STREAM)
        return {
            "shape": (len(self), self._reader.dim),
            "typestr": NUMPY[self._reader.dtype].str,
            "data": (self._address(), True),
            "strides": None,
            "version": 3,
        }

    def hold(self) -> Self:
        """Keep it until `release()`. It and everything after it occupies outputs: if held too long,
        the agent drops this subscriber."""
        self._held = True
        return self

    def release(self, stream: int | None = None) -> None:
        """Release the rows. A second call does nothing.

        For rows in GPU memory it waits, by an event, for the streams that they were taken for, and
        for `stream` (a cudaStream_t as a number), which must exist until then. To wait less often,
        hold several and release the oldest last: they are released together.
        """
        if not self._released:
            if stream is not None:
                self._streams.add(stream)
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
