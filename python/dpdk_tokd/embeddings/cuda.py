# SPDX-License-Identifier: BSD-3-Clause
"""Outputs in GPU memory of another process, by CUDA IPC.

Needs libcudart of CUDA 12 or 13 and the GPU that tokd-gpu uses. Not run on a GPU yet.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from ..ring.errors import RingError

LAZY_PEER_ACCESS = 1
EVENT_DISABLE_TIMING = 2
STREAM_NON_BLOCKING = 1
TO_DEVICE, TO_HOST = 1, 2  # enum cudaMemcpyKind
LEGACY_STREAM = 1  # the default stream, of all threads; what is recorded there follows all streams
# ... but those that were created as non-blocking
PER_THREAD_STREAM = 2  # another one in each thread
PROPERTIES_ROOM = 8192  # struct cudaDeviceProp has about 1 KB and differs between major versions,
UUID_OFFSET = 256  # ... but always begins with name and UUID


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


def _runtime() -> ctypes.CDLL:
    names = ["libcudart.so.13", "libcudart.so.12", ctypes.util.find_library("cudart")]
    for name in names:
        if name is None:
            continue
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RingError(
        "the embeddings are in GPU memory, and there is no libcudart (12 or 13) to open it with: "
        "install the CUDA runtime, as by pip install nvidia-cuda-runtime, and set LD_LIBRARY_PATH"
    )


class CudaOutputs:
    """The outputs' address in this process, until closed.

    The GPU is identified by its UUID; `device` is its number in this process, which may differ from
    tokd-gpu's by CUDA_VISIBLE_DEVICES. CUDA IPC has no read-only mapping: do not write to the rows.
    """

    def __init__(self, ipc: bytes, gpu: bytes) -> None:
        self._cuda = _runtime()
        self._cuda.cudaGetErrorString.restype = ctypes.c_char_p
        self.device = self._number_of(gpu)
        self.address = 0
        self._event: ctypes.c_void_p | None = None
        self._allocated: list[ctypes.c_void_p] = []
        self._number: ctypes.c_void_p | None = None
        self._stream: ctypes.c_void_p | None = None
        handle = _IpcHandle()
        ctypes.memmove(ctypes.addressof(handle), ipc, 64)
        pointer = ctypes.c_void_p()
        self._cuda.cudaIpcOpenMemHandle.argtypes = [
            ctypes.POINTER(ctypes.c_void_p),
            _IpcHandle,
            ctypes.c_uint,
        ]
        with self.current_device():
            self._check(
                self._cuda.cudaIpcOpenMemHandle(ctypes.byref(pointer), handle, LAZY_PEER_ACCESS),
                "cudaIpcOpenMemHandle",
            )
            self.address = int(pointer.value or 0)

    def _number_of(self, gpu: bytes) -> int:
        """The number of the GPU with this UUID in this process."""
        n = ctypes.c_int()
        self._check(self._cuda.cudaGetDeviceCount(ctypes.byref(n)), "cudaGetDeviceCount")
        properties = ctypes.create_string_buffer(PROPERTIES_ROOM)
        for i in range(n.value):
            rc = self._cuda.cudaGetDeviceProperties(properties, i)
            self._check(rc, f"cudaGetDeviceProperties({i})")
            if properties.raw[UUID_OFFSET : UUID_OFFSET + len(gpu)] == gpu:
                return i
        raise RingError(
            f"the embeddings are on GPU-{uuid.UUID(bytes=gpu)}, which is none of the {n.value} that "
            "this process sees: nvidia-smi -L lists all; does CUDA_VISIBLE_DEVICES leave it out?"
        )

    def _check(self, rc: int, what: str) -> None:
        if rc != 0:
            text = self._cuda.cudaGetErrorString(rc).decode()
            raise RingError(f"{what}: {text}")

    @contextlib.contextmanager
    def current_device(self) -> Iterator[None]:
        """Make the outputs' GPU the calling thread's current device; restores it afterwards."""
        before = ctypes.c_int()
        self._check(self._cuda.cudaGetDevice(ctypes.byref(before)), "cudaGetDevice")
        self._check(self._cuda.cudaSetDevice(self.device), f"cudaSetDevice({self.device})")
        try:
            yield
        finally:
            self._check(self._cuda.cudaSetDevice(before.value), f"cudaSetDevice({before.value})")

    def read(self, offset: int, size: int) -> bytes:
        """A copy of some of the outputs, in host memory."""
        to = ctypes.create_string_buffer(size)
        self._copy(to, ctypes.c_void_p(self.address + offset), size, TO_HOST)
        return to.raw

    def upload(self, number: int) -> int:
        """The address of a number in GPU memory, until the next call; it is there now."""
        if self._number is None:
            self._number = ctypes.c_void_p(self.zeros(8))
        self._copy(self._number, ctypes.byref(ctypes.c_uint64(number)), 8, TO_DEVICE)
        return int(self._number.value or 0)

    def zeros(self, size: int) -> int:
        """The address of `size` bytes of new GPU memory, all zero, until closed."""
        to = ctypes.c_void_p()
        with self.current_device():
            rc = self._cuda.cudaMalloc(ctypes.byref(to), ctypes.c_size_t(size))
            self._check(rc, "cudaMalloc")
        self._allocated.append(to)
        self._copy(to, ctypes.create_string_buffer(size), size, TO_DEVICE)
        return int(to.value or 0)

    @property
    def stream(self) -> int:
        """A stream of its own: what is done on it waits for nothing else of this process."""
        if self._stream is None:
            stream = ctypes.c_void_p()
            with self.current_device():
                rc = self._cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), STREAM_NON_BLOCKING)
                self._check(rc, "cudaStreamCreateWithFlags")
            self._stream = stream
        return int(self._stream.value or 0)

    def _copy(self, to: Any, source: Any, size: int, kind: int) -> None:
        stream = ctypes.c_void_p(self.stream)
        with self.current_device():
            rc = self._cuda.cudaMemcpyAsync(to, source, ctypes.c_size_t(size), kind, stream)
            self._check(rc, "cudaMemcpyAsync")
            self._check(self._cuda.cudaStreamSynchronize(stream), "cudaStreamSynchronize")

    def wait(self, streams: Iterable[int]) -> None:
        """Wait until what was launched on these streams before has ended.

        By an event on each, so that nothing else of this process is waited for. A per-thread
        default stream cannot be named from another thread: for it the whole GPU is waited for. One
        thread at a time.
        """
        with self.current_device():
            for stream in streams:
                if stream == PER_THREAD_STREAM:
                    self._check(self._cuda.cudaDeviceSynchronize(), "cudaDeviceSynchronize")
                    continue
                event = self._the_event()
                rc = self._cuda.cudaEventRecord(event, ctypes.c_void_p(stream))
                self._check(rc, "cudaEventRecord")
                self._check(self._cuda.cudaEventSynchronize(event), "cudaEventSynchronize")

    def _the_event(self) -> ctypes.c_void_p:
        if self._event is None:
            event = ctypes.c_void_p()
            rc = self._cuda.cudaEventCreateWithFlags(ctypes.byref(event), EVENT_DISABLE_TIMING)
            self._check(rc, "cudaEventCreateWithFlags")
            self._event = event
        return self._event

    def close(self) -> None:
        address, self.address = self.address, 0
        if address:
            with self.current_device():
                if self._event is not None:
                    self._cuda.cudaEventDestroy(self._event)
                    self._event = None
                if self._stream is not None:
                    self._cuda.cudaStreamDestroy(self._stream)
                    self._stream = None
                for memory in self._allocated:
                    self._cuda.cudaFree(memory)
                self._allocated.clear()
                self._number = None
                self._cuda.cudaIpcCloseMemHandle(ctypes.c_void_p(address))
