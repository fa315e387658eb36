# SPDX-License-Identifier: BSD-3-Clause
"""Outputs in GPU memory of another process, by CUDA IPC.

Needs libcudart of CUDA 12 or 13 and the GPU that tokd-gpu uses. Not run where this was written:
no machine of the project's has a GPU.
"""

from __future__ import annotations

import ctypes
import ctypes.util

from .ring_errors import RingError

LAZY_PEER_ACCESS = 1


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

    The GPU is named by its number, as tokd-gpu counts. CUDA IPC has no read-only mapping: whoever
    holds can write the rows of others, and must not.
    """

    def __init__(self, ipc: bytes, device: int) -> None:
        self._cuda = _runtime()
        self._cuda.cudaGetErrorString.restype = ctypes.c_char_p
        self.device = device
        self.address = 0
        handle = _IpcHandle()
        ctypes.memmove(ctypes.addressof(handle), ipc, 64)
        pointer = ctypes.c_void_p()
        self._check(self._cuda.cudaSetDevice(device), f"cudaSetDevice({device})")
        self._cuda.cudaIpcOpenMemHandle.argtypes = [
            ctypes.POINTER(ctypes.c_void_p),
            _IpcHandle,
            ctypes.c_uint,
        ]
        self._check(
            self._cuda.cudaIpcOpenMemHandle(ctypes.byref(pointer), handle, LAZY_PEER_ACCESS),
            "cudaIpcOpenMemHandle",
        )
        self.address = int(pointer.value or 0)

    def _check(self, rc: int, what: str) -> None:
        if rc != 0:
            text = self._cuda.cudaGetErrorString(rc).decode()
            raise RingError(
                f"{what}: {text}: does this process see the GPU of tokd-gpu, by the same number? "
                "CUDA_VISIBLE_DEVICES must be the same for both"
            )

    def synchronize(self) -> None:
        """Kernels of this process that read rows have ended."""
        self._check(self._cuda.cudaDeviceSynchronize(), "cudaDeviceSynchronize")

    def close(self) -> None:
        if self.address:
            self._cuda.cudaIpcCloseMemHandle(ctypes.c_void_p(self.address))
            self.address = 0
