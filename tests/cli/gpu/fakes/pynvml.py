# SPDX-License-Identifier: BSD-3-Clause
"""nvidia-ml-py for tokd-diag, without a GPU. FAKE has letters for what goes wrong."""

import os
from types import SimpleNamespace


class NVMLError(Exception):
    pass


def refuse(letter: str) -> None:
    if letter in os.environ.get("FAKE", ""):
        raise NVMLError("Driver Not Loaded")


def nvmlInit() -> None:
    refuse("n")


def nvmlShutdown() -> None:
    pass


def nvmlDeviceGetHandleByPciBusId(address: str) -> str:
    refuse("h")
    assert address == "0000:19:00.0"
    return address


def nvmlDeviceGetName(device: str) -> str:
    refuse("l")
    return "NVIDIA H100 PCIe \xff"


def nvmlDeviceGetCudaComputeCapability(device: str) -> tuple[int, int]:
    refuse("c")
    return 9, 0


def nvmlDeviceGetBAR1MemoryInfo(device: str) -> SimpleNamespace:
    refuse("b")
    return SimpleNamespace(bar1Total=256 << 20, bar1Free=250 << 20)
