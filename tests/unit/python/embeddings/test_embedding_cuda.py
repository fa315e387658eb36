# SPDX-License-Identifier: BSD-3-Clause
"""Which GPU a subscriber opens. A simulated CUDA runtime stands in for the GPU."""

import ctypes
import threading
from typing import Any

import pytest
from dpdk_tokd import RingError
from dpdk_tokd.embeddings import cuda as embedding_cuda

GPUS = [bytes([i]) * 16 for i in (1, 2, 3)]


class Runtime:
    """libcudart of a process that sees these GPUs, in this order. Each thread has its current
    device, 0 at first, and what it calls is done on that one."""

    def __init__(self, gpus: list[bytes]) -> None:
        self.gpus = gpus
        self.thread = threading.local()
        self.done: list[tuple[str, int]] = []

        def open_handle(to: Any, handle: Any, flags: int) -> int:
            to._obj.value = 0x7000 + len(handle.reserved)
            self.done.append(("open", self.current))
            return 0

        def error(rc: int) -> bytes:
            return b"error %d" % rc

        self.cudaIpcOpenMemHandle = open_handle
        self.cudaGetErrorString = error

    def cudaGetDeviceCount(self, n: Any) -> int:
        n._obj.value = len(self.gpus)
        return 0 if self.gpus else 100

    def cudaGetDeviceProperties(self, to: Any, i: int) -> int:
        ctypes.memmove(ctypes.addressof(to) + 256, self.gpus[i], 16)
        return 0

    @property
    def current(self) -> int:
        return getattr(self.thread, "current", 0)

    def cudaGetDevice(self, to: Any) -> int:
        to._obj.value = self.current
        return 0

    def cudaSetDevice(self, i: int) -> int:
        if not 0 <= i < len(self.gpus):
            return 101
        self.thread.current = i
        return 0

    def cudaDeviceSynchronize(self) -> int:
        self.done.append(("synchronize", self.current))
        return 0

    def cudaEventCreateWithFlags(self, to: Any, flags: int) -> int:
        to._obj.value = 0x77
        self.done.append(("create", self.current))
        return 0

    def cudaEventRecord(self, event: Any, stream: Any) -> int:
        assert event.value == 0x77
        self.done.append((f"record on {stream.value}", self.current))
        return 0

    def cudaEventSynchronize(self, event: Any) -> int:
        self.done.append(("wait", self.current))
        return 0

    def cudaEventDestroy(self, event: Any) -> int:
        self.done.append(("destroy", self.current))
        return 0

    def cudaIpcCloseMemHandle(self, address: ctypes.c_void_p) -> int:
        self.done.append(("close", self.current))
        return 0


def opened(monkeypatch: pytest.MonkeyPatch, seen: list[bytes], gpu: bytes) -> tuple[Runtime, Any]:
    runtime = Runtime(seen)
    monkeypatch.setattr(embedding_cuda, "_runtime", lambda: runtime)
    return runtime, embedding_cuda.CudaOutputs(b"h" * 64, gpu)


@pytest.mark.parametrize("seen", [GPUS, GPUS[::-1], GPUS[1:]])
def test_a_gpu_is_found_by_its_uuid_whatever_its_number(
    monkeypatch: pytest.MonkeyPatch, seen: list[bytes]
) -> None:
    runtime, outputs = opened(monkeypatch, seen, GPUS[2])
    assert outputs.device == seen.index(GPUS[2])
    assert runtime.done == [("open", outputs.device)]
    assert outputs.address == 0x7000 + 64


def test_a_gpu_that_this_process_does_not_see_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        RingError, match="GPU-03030303-0303-0303-0303-030303030303.* none of the 2 "
    ):
        opened(monkeypatch, GPUS[:2], GPUS[2])


def test_a_runtime_without_any_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RingError, match="cudaGetDeviceCount: error 100"):
        opened(monkeypatch, [], GPUS[0])


def test_any_thread_waits_for_the_right_gpu_and_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime, outputs = opened(monkeypatch, GPUS, GPUS[2])
    kept = [runtime.current]

    def other() -> None:
        runtime.cudaSetDevice(1)
        outputs.wait([5])
        outputs.close()
        outputs.close()
        kept.append(runtime.current)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    outputs.wait([])
    kept.append(runtime.current)
    done = ["open", "create", "record on 5", "wait", "destroy", "close"]
    assert runtime.done == [(what, 2) for what in done]
    assert kept == [0, 1, 0]


def test_streams_are_waited_for_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, outputs = opened(monkeypatch, GPUS, GPUS[0])
    outputs.wait([])
    assert runtime.done == [("open", 0)]
    outputs.wait([embedding_cuda.LEGACY_STREAM])
    outputs.wait([0x5000])
    done = ["create", "record on 1", "wait", "record on 20480", "wait"]
    assert runtime.done[1:] == [(what, 0) for what in done]
    outputs.wait([embedding_cuda.PER_THREAD_STREAM])  # of whichever thread
    assert runtime.done[-1] == ("synchronize", 0)


def test_the_current_device_is_what_it_was_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, outputs = opened(monkeypatch, GPUS, GPUS[2])
    monkeypatch.setattr(runtime, "cudaEventSynchronize", lambda event: 700)
    with pytest.raises(RingError, match="cudaEventSynchronize: error 700"):
        outputs.wait([1])
    assert runtime.current == 0
