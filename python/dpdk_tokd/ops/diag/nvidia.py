# SPDX-License-Identifier: BSD-3-Clause
"""Properties of the GPUs from NVIDIA's driver: by nvidia-ml-py, and by libcuda what NVML lacks."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from .files import clean
from .machine import Gpu, Machine, Note

# enum CUdevice_attribute
GPU_DIRECT_RDMA_SUPPORTED = 116
GPU_DIRECT_RDMA_WRITES_ORDERING = 118
DMA_BUF_SUPPORTED = 124
# enum CUGPUDirectRDMAWritesOrdering
ORDER_OWNER = 100
ORDER_ALL_DEVICES = 200


def _ask_nvml_device(gpu: Gpu, answer: Callable[..., Any]) -> None:
    device = answer("nvmlDeviceGetHandleByPciBusId", gpu.pci.address)
    if device is None:
        return
    name = answer("nvmlDeviceGetName", device)
    if isinstance(name, bytes):  # before version 11.515
        name = name.decode("latin-1")
    if name:
        gpu.name = clean(name)
    if capability := answer("nvmlDeviceGetCudaComputeCapability", device):
        gpu.major, gpu.minor = capability
    if bar1 := answer("nvmlDeviceGetBAR1MemoryInfo", device):
        gpu.bar1, gpu.bar1_free, gpu.bar1_from = bar1.bar1Total, bar1.bar1Free, "nvml"


def _ask_nvml(machine: Machine) -> None:
    """Names, compute capability, and BAR1 with how much of it is free."""
    try:
        import pynvml as nvml
    except ImportError:
        machine.nvml_note = Note(
            "free BAR1 and compute capability were not asked: "
            f"nvidia-ml-py is not installed for {sys.executable}",
            "pip install nvidia-ml-py, or apt-get install python3-pynvml",
        )
        return

    def answer(question: str, *arguments: Any) -> Any:
        try:
            return getattr(nvml, question)(*arguments)
        except (nvml.NVMLError, AttributeError, UnicodeError):  # or this version lacks it
            return None

    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        machine.nvml_note = Note(
            f"nvmlInit: {clean(str(error))}", "install the NVIDIA driver's libraries"
        )
        return
    for gpu in machine.gpus:
        _ask_nvml_device(gpu, answer)
    answer("nvmlShutdown")


def load_cuda() -> Any:
    """libcuda with argument types set. Raises OSError, or AttributeError if it is too old."""
    cuda = ctypes.CDLL("libcuda.so.1")
    number = ctypes.POINTER(ctypes.c_int)
    cuda.cuInit.argtypes = [ctypes.c_uint]
    cuda.cuDriverGetVersion.argtypes = [number]
    cuda.cuDeviceGetByPCIBusId.argtypes = [number, ctypes.c_char_p]
    cuda.cuDeviceGetAttribute.argtypes = [number, ctypes.c_int, ctypes.c_int]
    return cuda  # each returns an int, as ctypes assumes


def _attribute(cuda: Any, device: int, attribute: int) -> int | None:
    value = ctypes.c_int()
    failed = cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    return None if failed else value.value


def _yes_or_no(cuda: Any, device: int, attribute: int) -> bool | None:
    value = _attribute(cuda, device, attribute)
    return None if value is None else value != 0


def _order_text(order: int | None) -> str:
    if order is None or order < 0:
        return "not known"
    if order < ORDER_OWNER:
        return "none"
    return "owner" if order < ORDER_ALL_DEVICES else "all devices"


def _ask_cuda(machine: Machine) -> None:
    try:
        cuda = load_cuda()
    except (OSError, AttributeError):
        machine.cuda_note = Note(
            "libcuda.so.1 does not load", "install the NVIDIA driver's libraries"
        )
        return
    if failed := cuda.cuInit(0):
        machine.cuda_note = Note(
            f"cuInit fails with error {failed}",
            "is the nvidia module loaded, and may this user open /dev/nvidia*?",
        )
        return
    number = ctypes.c_int()
    if not cuda.cuDriverGetVersion(ctypes.byref(number)):
        machine.cuda_version = number.value or None
    for gpu in machine.gpus:
        if cuda.cuDeviceGetByPCIBusId(ctypes.byref(number), gpu.pci.address.encode()):
            continue  # hidden, by CUDA_VISIBLE_DEVICES or a container
        device = number.value
        gpu.asked = True
        gpu.write_order = _order_text(_attribute(cuda, device, GPU_DIRECT_RDMA_WRITES_ORDERING))
        gpu.gpudirect_rdma = _yes_or_no(cuda, device, GPU_DIRECT_RDMA_SUPPORTED)
        gpu.dmabuf = _yes_or_no(cuda, device, DMA_BUF_SUPPORTED)


def ask(machine: Machine) -> None:
    """This machine only."""
    if machine.gpus:
        _ask_nvml(machine)
        _ask_cuda(machine)
