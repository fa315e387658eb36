# SPDX-License-Identifier: BSD-3-Clause
"""The paths of ids into the memory of the consumer, best first, and what prevents each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .gids import Chosen, NoneChosen
from .machine import Gpu, Machine, bytes_text

DMABUF_KERNEL = (5, 12)  # the first kernel whose ib_uverbs takes dma-bufs
CUDA_MAPS = 13030  # the first CUDA whose driver lets the CPU map a dma-buf of GPU memory
QUEUES_BYTES = 1 << 20  # queue pairs, completion queues, and what the driver keeps for memory

MEMLOCK_REMEDY = "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited before it starts"
BAR1_REMEDY = (
    "fewer or smaller slots in tokd-gpu; Resizable BAR and Above 4G Decoding in the firmware's "
    "set-up, if the GPU has them"
)


@dataclass
class Reason:
    """A thing, its value, and the remedy."""

    thing: str
    value: str
    remedy: str = ""


@dataclass
class Sizes:
    """Sizes of registered memory, in bytes."""

    ring: int  # token rings of one dpdk-tokd
    region: int  # the GPU ring


@dataclass
class TransferPath:
    """A path for ids."""

    path: str
    kind: str  # of --want
    against: list[Reason] = field(default_factory=list)
    not_known: list[Reason] = field(default_factory=list)

    @property
    def works(self) -> str:
        """yes, no, or not known: nothing known prevents it."""
        return "no" if self.against else "not known" if self.not_known else "yes"


@dataclass
class GpuPaths:
    """The paths to one GPU, or without a GPU."""

    gpu: Gpu | None
    paths: list[TransferPath]

    @property
    def taken(self) -> int:
        """The first that works or may work. shm always works."""
        return next(i for i, path in enumerate(self.paths) if path.works != "no")


def memlock_is_low(m: Machine, size: int) -> bool:
    s = m.system
    return isinstance(s.memlock, int) and not s.memlock_free and s.memlock < size + QUEUES_BYTES


@dataclass
class _Judge:
    """Adds to a path what it lacks."""

    m: Machine
    chosen: Chosen | NoneChosen
    sizes: Sizes

    def rdma(self, w: TransferPath) -> None:
        if isinstance(self.chosen, NoneChosen):
            remedy = "see the findings"
            if not self.m.rdma:
                remedy = (
                    "put in a NIC with RDMA (ConnectX, BlueField) and load its driver (mlx5_ib); "
                    "or, to try it in software: rdma link add rxe0 type rxe netdev NETDEV"
                )
            w.against.append(Reason("RDMA", self.chosen.why, remedy))

    def memlock(self, w: TransferPath, what: str, size: int) -> None:
        limit = self.m.system.memlock
        if isinstance(limit, int) and memlock_is_low(self.m, size):
            value = f"limit {bytes_text(limit)}, {what} needs {bytes_text(size)}"
            w.against.append(Reason("locked memory", value, MEMLOCK_REMEDY))
        elif limit is None:
            w.not_known.append(Reason("locked memory", "the limit cannot be read"))

    def driver(self, w: TransferPath) -> None:
        note = self.m.cuda_note
        if not self.m.system.nvidia:
            value = "the module nvidia is not loaded"
            w.against.append(Reason("GPU driver", value, "modprobe nvidia"))
        elif note:
            w.against.append(Reason("CUDA", note.value, note.remedy))

    def bar1(self, w: TransferPath, gpu: Gpu) -> None:
        """The driver uses part of BAR1. If the free part is not known, the whole is the limit."""
        free, region = gpu.bar1_free, self.sizes.region
        room = gpu.bar1 if free is None else free
        if room is None:
            w.not_known.append(Reason("BAR1", "its size cannot be read"))
        elif room < region:
            value = (
                f"{'all' if free is None else 'free'} of {gpu.name}: {bytes_text(room)}, "
                f"the GPU ring needs {bytes_text(region)}"
            )
            w.against.append(Reason("BAR1", value, BAR1_REMEDY))

    def dmabuf_of_nic(self, w: TransferPath) -> None:
        version = re.match(r"([0-9]{1,5})\.([0-9]{1,5})", self.m.system.kernel or "")
        if version and (int(version[1]), int(version[2])) < DMABUF_KERNEL:
            value, remedy = f"kernel {self.m.system.kernel}", "a kernel from 5.12 on, or MLNX_OFED"
            w.against.append(Reason("dma-buf", value, remedy))
            return
        if isinstance(self.chosen, NoneChosen):
            return
        d = self.chosen.rdma
        if d.dmabuf is False:
            value = f"{d.name} refuses it ({d.dmabuf_why})"
            remedy = "a newer kernel or rdma-core, or another NIC"
            w.against.append(Reason("dma-buf", value, remedy))
        elif d.dmabuf is None:
            value = f"whether the driver of {d.name} takes it: the device was not asked"
            w.not_known.append(Reason("dma-buf", value))

    def dmabuf_of_gpu(self, w: TransferPath, gpu: Gpu) -> None:
        s = self.m.system
        thing = "dma-buf of the GPU"
        remedy = "the NVIDIA driver's open kernel modules (515 or later), with CUDA 11.7 or later"
        if gpu.dmabuf is False:
            w.against.append(Reason(thing, f"CUDA says that {gpu.name} has none", remedy))
        elif gpu.dmabuf is None and s.nvidia_version and not s.nvidia_open:
            w.against.append(Reason(thing, f'driver "{s.nvidia_version}"', remedy))
        elif gpu.dmabuf is None:
            w.not_known.append(Reason(thing, "CUDA was not asked"))

    # ---- the paths

    def producer(self, w: TransferPath, gpu: Gpu | None) -> None:
        self.rdma(w)
        self.memlock(w, "the token rings", self.sizes.ring)
        if isinstance(self.chosen, Chosen):
            value = "its GPU, driver and registration cannot be seen from here"
            w.not_known.append(Reason("the agent's end", value, "run tokd-diag there as well"))

    def verbs_dmabuf(self, w: TransferPath, gpu: Gpu) -> None:
        self.rdma(w)
        self.driver(w)
        self.dmabuf_of_nic(w)
        self.dmabuf_of_gpu(w, gpu)
        self.bar1(w, gpu)

    def verbs_peer_memory(self, w: TransferPath, gpu: Gpu) -> None:
        self.rdma(w)
        self.driver(w)
        if not self.m.system.peer_memory:
            value = "neither nvidia_peermem nor nv_peer_mem is loaded"
            remedy = "modprobe nvidia_peermem (it needs the ib_core of MLNX_OFED or DOCA)"
            w.against.append(Reason("peer memory", value, remedy))
        if gpu.gpudirect_rdma is False:
            value = f"CUDA says that {gpu.name} has none"
            w.against.append(Reason("GPUDirect RDMA", value, "a data-center or workstation GPU"))
        self.bar1(w, gpu)

    def verbs_host(self, w: TransferPath, gpu: Gpu | None) -> None:
        """Into host memory; the consumer is threads of the CPU."""
        self.rdma(w)
        self.memlock(w, "the GPU ring", self.sizes.region)

    def verbs_ring_host(self, w: TransferPath, gpu: Gpu) -> None:
        """Into host memory that the GPU reads."""
        self.verbs_host(w, gpu)
        self.driver(w)

    def cuda_dmabuf(self, w: TransferPath, gpu: Gpu | None) -> None:
        """The agent's dma-buf, mapped. gdrcopy is no path: it pins memory of its own process only,
        and this memory is the agent's."""
        if gpu is None:
            remedy = "an NVIDIA GPU in this machine; a GPU in another machine is reached by verbs"
            w.against.append(Reason("GPU", "no NVIDIA GPU on the PCI bus", remedy))
            return
        self.driver(w)
        self.dmabuf_of_gpu(w, gpu)
        cuda, thing = self.m.cuda_version, "mapping GPU memory"
        if not cuda:
            w.not_known.append(Reason(thing, "which CUDA the driver has"))
        elif cuda < CUDA_MAPS:
            value = f"the driver's CUDA is {cuda // 1000}.{cuda % 1000 // 10}"
            w.against.append(Reason(thing, value, "the driver of CUDA 13.3 or later"))
        self.bar1(w, gpu)

    def all(self, role: str, gpu: Gpu | None) -> GpuPaths:
        def path(
            name: str, kind: str, look: Callable[[TransferPath, Gpu], None] | None = None
        ) -> TransferPath:
            w = TransferPath(name, kind)
            if look:
                look(w, gpu)  # type: ignore[arg-type]  # those that need a GPU are given one
            return w

        if role == "producer":
            paths = [path("verbs", "verbs", self.producer)]
        elif gpu is not None:
            paths = [
                path("verbs with dma-buf", "verbs", self.verbs_dmabuf),
                path("verbs with peer memory", "verbs", self.verbs_peer_memory),
                path("verbs with --ring host", "verbs", self.verbs_ring_host),
            ]
        else:
            paths = [path("verbs into host memory", "verbs", self.verbs_host)]
        paths += [path("cuda with dma-buf", "cuda", self.cuda_dmabuf), path("shm", "shm")]
        return GpuPaths(gpu, paths)


def judge_paths(m: Machine, chosen: Chosen | NoneChosen, sizes: Sizes, role: str) -> list[GpuPaths]:
    """In the order of the GPUs; one at least."""
    look = _Judge(m, chosen, sizes)
    gpus: list[Gpu | None] = [*m.gpus] or [None]
    return [look.all(role, gpu) for gpu in gpus]
