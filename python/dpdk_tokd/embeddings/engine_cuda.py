# SPDX-License-Identifier: BSD-3-Clause
"""Lanes in GPU memory, by libtokd-engine-cuda: what an engine does with them on a stream.

Not run on a GPU yet.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..ring.errors import RingError
from .cuda import PER_THREAD_STREAM, CudaOutputs
from .layout import EngineReply, LaneEnd

LIBRARY = "libtokd-engine-cuda.so.0"
MADE_BYTES = 16  # struct tokd_lane_made
LOOK_BYTES = 12  # struct tokd_lane_look


class _Memory(ctypes.Structure):
    """struct tokd_engine."""

    _fields_ = [
        ("shown", ctypes.c_void_p),
        ("made", ctypes.c_void_p),
        ("own", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("lanes", ctypes.c_uint32),
        ("room", ctypes.c_uint32),
    ]


def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as e:
        raise RingError(
            f"the lanes are in GPU memory, and {LIBRARY} cannot be loaded: {e}: it is built where "
            "nvcc is; set LD_LIBRARY_PATH to its folder"
        ) from None


def _pointer(array: Any, bytes_each: int, n: int, what: str) -> ctypes.c_void_p:
    """Of `n` elements in GPU memory, without gaps."""
    if not hasattr(array, "__cuda_array_interface__"):
        raise TypeError(f"{what}: not an array in GPU memory: {type(array).__name__}")
    a = array.__cuda_array_interface__
    size = int(np.prod(a["shape"], dtype=np.int64))
    kind = np.dtype(a["typestr"])
    if size != n or kind.itemsize != bytes_each or kind.kind not in "iub" or a.get("strides"):
        raise ValueError(
            f"{what}: {size} elements of {kind}: must be {n} integers of {bytes_each} bytes, "
            "without gaps"
        )
    return ctypes.c_void_p(a["data"][0])


def _number_of(lanes: Any) -> int:
    if not hasattr(lanes, "__cuda_array_interface__"):
        raise TypeError(f"lanes: not an array in GPU memory: {type(lanes).__name__}")
    return int(np.prod(lanes.__cuda_array_interface__["shape"], dtype=np.int64))


class CudaLanes:
    """`Engine.cuda`: put, look and end as kernels on a stream, for arrays in GPU memory.

    Arrays have `__cuda_array_interface__`, as torch's tensors and cupy's have, on the GPU that
    tokd-gpu uses. `stream` is a cudaStream_t as a number (torch.cuda.current_stream().cuda_stream).
    Nothing is waited for or allocated: calls can be captured in a CUDA graph. A call has each lane
    at most once.
    """

    def __init__(self, outputs: CudaOutputs, e: EngineReply) -> None:
        self._outputs = outputs
        self._library = _library()
        self._look = outputs.zeros(LOOK_BYTES)
        made = outputs.address + e.made_off
        of_made = MADE_BYTES * e.lanes
        self._memory: _Memory | None = _Memory(
            outputs.address + e.shown_off,
            made,
            outputs.zeros(of_made),
            made + of_made,
            e.lanes,
            e.room,
        )

    def put(self, lanes: Any, ids: Any, taken: Any, stream: int = 0) -> None:
        """Put an id into each lane; taken[i] becomes 1 if it was put, else 0.

        lanes: Prompt.lane, int64 or uint64. ids: int32 or uint32. taken: int8, uint8 or bool.
        """
        n = _number_of(lanes)
        self._launch(
            "put",
            _pointer(lanes, 8, n, "lanes"),
            _pointer(ids, 4, n, "ids"),
            ctypes.c_uint32(n),
            _pointer(taken, 1, n, "taken"),
            ctypes.c_void_p(stream),
        )

    def look(self, lanes: Any, looks: Any, stream: int = 0) -> None:
        """looks[i]: of a lane the ids made and granted, and its LaneEnd. int32 or uint32[n, 3].

        Look at each lane until it has ended, also after `end`.
        """
        n = _number_of(lanes)
        self._launch(
            "look",
            _pointer(lanes, 8, n, "lanes"),
            ctypes.c_uint32(n),
            _pointer(looks, 4, 3 * n, "looks"),
            ctypes.c_void_p(stream),
        )

    def end(self, lanes: Any, how: LaneEnd = LaneEnd.STOP, stream: int = 0) -> None:
        """The texts of these lanes are complete."""
        n = _number_of(lanes)
        self._launch(
            "end",
            _pointer(lanes, 8, n, "lanes"),
            ctypes.c_uint32(n),
            ctypes.c_uint32(how),
            ctypes.c_void_p(stream),
        )

    def end_one(self, lane: int, how: LaneEnd) -> None:
        """The same for one lane, by its number. No other stream is waited for."""
        self._launch(
            "end",
            ctypes.c_void_p(self._outputs.upload(lane)),
            ctypes.c_uint32(1),
            ctypes.c_uint32(how),
            ctypes.c_void_p(self._outputs.stream),
        )

    def open_one(self, lane: int) -> bool:
        """Look at one lane, by its number: it has not ended. Waits for that alone."""
        self._launch(
            "look",
            ctypes.c_void_p(self._outputs.upload(lane)),
            ctypes.c_uint32(1),
            ctypes.c_void_p(self._look),
            ctypes.c_void_p(self._outputs.stream),
        )
        look = self._outputs.read(self._look - self._outputs.address, LOOK_BYTES)
        return bool(np.frombuffer(look, "<u4")[2] == LaneEnd.OPEN)

    def close(self) -> None:
        """Wait for what was launched: its memory goes. That may be in graphs, on any stream."""
        memory, self._memory = self._memory, None
        if memory is not None:
            self._outputs.wait([PER_THREAD_STREAM])

    def _launch(self, what: str, *arguments: Any) -> None:
        if self._memory is None:
            raise RingError("the engine is closed")
        call = getattr(self._library, f"tokd_engine_{what}_cuda")
        with self._outputs.current_device():
            rc = call(ctypes.byref(self._memory), *arguments)
        if rc != 0:
            raise RingError(f"tokd_engine_{what}_cuda: CUDA error {rc}")
