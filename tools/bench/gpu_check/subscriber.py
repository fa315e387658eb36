# SPDX-License-Identifier: BSD-3-Clause
"""A subscriber of tokd-gpu in its own process: subscriber.py SOCKET ROWSxDIM:SEED COUNT GPU.

Takes COUNT embeddings, compares their rows with the random table's, and prints one JSON object. The
ids of request r are ids_of(r). Rows in GPU memory are opened by CUDA IPC; if that cannot be done,
it says NO_IPC and why. If PyTorch is installed, it compares them while its own kernels run. Needs
NumPy and x86-64, whose loads and stores keep their order.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import mmap
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

TOKENS = 100
WAIT_S = 60
NO_IPC = "no CUDA IPC"  # also what tokd-gpu answers where it has no handle
EMBEDDINGS = Path(__file__).resolve().parents[3] / "python/dpdk_tokd/embeddings"


def ids_of(request: int, rows: int) -> list[int]:
    return [(request * 7919 + k * 104729) % rows for k in range(TOKENS)]


def module(name: str) -> Any:
    """A module of dpdk_tokd.embeddings, without the package, whose libraries are not built here."""
    spec = importlib.util.spec_from_file_location(name, EMBEDDINGS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


class Ipc(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


# CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED
REFUSED = (304, 800, 801)


class NoIpc(Exception):
    """Processes cannot share memory of the GPU here."""


class Gpu:
    """Outputs of another process in GPU memory, by the driver alone."""

    def __init__(self, index: int, ipc: bytes) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.address = ctypes.c_uint64()
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        handle = Ipc()
        ctypes.memmove(ctypes.byref(handle), ipc, 64)
        self.cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, Ipc, ctypes.c_uint]
        self.call("cuIpcOpenMemHandle_v2", ctypes.byref(self.address), handle, 1)

    def call(self, name: str, *arguments: Any) -> None:
        rc = getattr(self.cuda, name)(*arguments)
        if rc != 0:
            raise (NoIpc if rc in REFUSED else OSError)(f"{name}: the driver's error {rc}")

    def copy(self, to: Any, offset: int) -> None:
        """Into a numpy array."""
        source = ctypes.c_uint64(self.address.value + offset)
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(to.ctypes.data), source, ctypes.c_size_t(to.nbytes)
        )


class Rows:
    """An address on the GPU as PyTorch takes it."""

    def __init__(self, address: int, shape: tuple[int, int]) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": "<f4", "data": (address, False), "version": 2,
        }  # fmt: skip


class Busy(threading.Thread):
    """PyTorch's kernels, one after the other."""

    def __init__(self, torch: Any, index: int) -> None:
        super().__init__(daemon=True)
        self.torch, self.index, self.products, self.end = torch, index, 0, False
        self.going = threading.Event()

    def run(self) -> None:
        a = self.torch.randn(4096, 4096, device=f"cuda:{self.index}", dtype=self.torch.bfloat16)
        while not self.end:
            for _ in range(8):
                a = (a @ a) * 1e-3
            self.torch.cuda.synchronize(self.index)
            self.products += 8
            self.going.set()


class Subscriber:
    def __init__(self, path: str, table: str, gpu: int) -> None:
        import numpy as np

        self.np, self.layout = np, module("layout")
        sizes, seed = table.split(":")
        self.rows, self.dim = map(int, sizes.split("x"))
        self.table = module("table").random_table(self.rows, self.dim, int(seed))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(path)
        self.reply, fds = self.attach()
        self.cursor = ctypes.c_uint64.from_buffer(mmap.mmap(fds[0], self.layout.CURSOR_BYTES))
        self.ring = mmap.mmap(fds[1], 0, prot=mmap.PROT_READ)
        self.words = np.frombuffer(self.ring, np.uint64)
        self.entries = int(self.layout.HDR.unpack_from(self.ring)[2])
        self.gpu: Gpu | None = None
        self.busy: Busy | None = None
        self.torch: Any = None
        if self.reply.outputs == self.layout.Outputs.CUDA_IPC:
            self.begin_gpu(gpu)
        else:
            self.outputs = mmap.mmap(fds[2], 0, prot=mmap.PROT_READ)

    def attach(self) -> tuple[Any, list[int]]:
        layout = self.layout
        self.socket.send(layout.REQ.pack(layout.HOLD_MAGIC, layout.VERSION, 0, 0))
        data, fds, _, _ = socket.recv_fds(self.socket, layout.REP.size, 3)
        reply = layout.Reply._make(layout.REP.unpack(data))
        if reply.outputs == 0:
            refused = NoIpc if NO_IPC in reply.reason else OSError
            raise refused(f"refused: {reply.reason}")
        return reply, list(fds)

    def begin_gpu(self, index: int) -> None:
        if importlib.util.find_spec("torch") is not None:
            import torch

            self.torch = torch
            torch.cuda.set_device(index)
            self.on_gpu = torch.from_numpy(self.table).cuda()
            self.unequal(self.on_gpu[:1], [0])  # its kernels are loaded when they are first used
            self.busy = Busy(torch, index)
        self.gpu = Gpu(index, self.reply.ipc)
        if self.busy is not None:
            self.busy.start()
            if not self.busy.going.wait(WAIT_S):
                raise TimeoutError(f"PyTorch's kernels do not run after {WAIT_S} s")

    def unequal(self, rows: Any, ids: list[int]) -> int:
        """Elements of rows on the GPU that are not the table's, by PyTorch."""
        expected = self.on_gpu[self.torch.tensor(ids, device="cuda")]
        return int((rows != expected).sum().item())

    def wrong(self, entry: Any) -> int:
        """Elements of an entry's rows that are not the table's."""
        ids = ids_of(entry.request, self.rows)[entry.first : entry.first + entry.tokens]
        shape = (entry.tokens, self.dim)
        if self.torch is not None and self.gpu is not None:
            rows = self.torch.as_tensor(
                Rows(self.gpu.address.value + entry.offset, shape), device="cuda"
            )
            return self.unequal(rows, ids)
        if self.gpu is not None:
            rows = self.np.empty(shape, self.np.float32)
            self.gpu.copy(rows, entry.offset)
        else:
            count = entry.tokens * self.dim
            rows = self.np.frombuffer(self.outputs, self.np.float32, count, entry.offset).reshape(
                shape
            )
        return int((rows != self.table[ids]).sum())

    def take(self, count: int) -> dict[str, Any]:
        layout, at, wrong = self.layout, self.reply.start, 0
        embedded: list[int] = []
        handed: list[int] = []
        until = time.monotonic() + WAIT_S
        while len(embedded) < count:
            if int(self.words[layout.HEAD_OFFSET // 8]) == at:
                if time.monotonic() > until:
                    raise TimeoutError(f"{len(embedded)} of {count} embeddings came in {WAIT_S} s")
                continue
            handed_ns = time.monotonic_ns()
            where = layout.DATA_OFFSET + (at & (self.entries - 1)) * layout.ENTRY.size
            entry = layout.Entry._make(layout.ENTRY.unpack_from(self.ring, where))
            wrong += self.wrong(entry)
            embedded.append(max(0, entry.embedded - entry.visible))
            handed.append(handed_ns - entry.t_ready)
            at += 1
            self.cursor.value = at
        if self.busy is not None:
            self.busy.end = True
            self.busy.join()
        with_torch = "" if self.torch is None else f"PyTorch {self.torch.__version__}"
        return {
            "taken": len(embedded),
            "wrong": wrong,
            "embedded_ns": embedded,
            "handed_ns": handed,
            "torch": with_torch,
            "products": 0 if self.busy is None else self.busy.products,
            "outputs": "CUDA IPC" if self.gpu is not None else "memfd",
        }


def main(arguments: list[str]) -> int:
    path, table, count, gpu = arguments
    try:
        subscriber = Subscriber(path, table, int(gpu))
    except NoIpc as why:
        print(f"{NO_IPC}: {why}", flush=True)
        return 1
    print("attached", flush=True)
    print(json.dumps(subscriber.take(int(count))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
