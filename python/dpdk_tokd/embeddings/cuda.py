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

from ..ring.errors import RingError

LAZY_PEER_ACCESS = 1
EVENT_DISABLE_TIMING = 2
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
        handle = _IpcHandle()
        ctypes.memmove(ctypes.addressof(handle), ipc, 64)
        pointer = ctypes.c_void_p()
        self._cuda.cudaIpcOpenMemHandle.argtypes = [
            ctypes.POINTER(ctypes.c_void_p),
            _IpcHandle,
            ctypes.c_uint,
        ]
        with self._current_device():
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
    def _current_device(self) -> Iterator[None]:
        """Make the outputs' GPU the calling thread's current device; restores it afterwards."""
        before = ctypes.c_int()
        self._check(self._cuda.cudaGetDevice(ctypes.byref(before)), "cudaGetDevice")
        self._check(self._cuda.cudaSetDevice(self.device), f"cudaSetDevice({self.device})")
        try:
            yield
        finally:
            self._check(self._cuda.cudaSetDevice(before.value), f"cudaSetDevice({before.value})")

    def wait(self, streams: Iterable[int]) -> None:
        """Wait until what was launched on these streams before has ended.

        By an event on each, so that nothing else of this process is waited for. A per-thread
        default stream cannot be named from another thread: for it the whole GPU is waited for. One
        thread at a time.
        """
        with self._current_device():
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
            with self._current_device():
                if self._event is not None:
                    self._cuda.cudaEventDestroy(self._event)
                    self._event = None
                self._cuda.cudaIpcCloseMemHandle(ctypes.c_void_p(address))
