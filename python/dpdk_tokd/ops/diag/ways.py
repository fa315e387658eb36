# SPDX-License-Identifier: BSD-3-Clause
"""The paths of ids into the memory that is embedded from, best first, and what is against each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .gids import Chosen, NoneChosen
from .machine import Gpu, Machine, bytes_text

DMABUF_KERNEL = (5, 12)  # from then on ib_uverbs takes dma-bufs
CUDA_MAPS = 13030  # from then on its driver on the CPU may map a dma-buf of GPU memory
QUEUES_BYTES = 1 << 20  # queue pairs, completion queues, and what the driver keeps for memory

MEMLOCK_REMEDY = "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited before it starts"
BAR1_REMEDY = (
    "fewer or smaller slots in tokd-gpu; Resizable BAR and Above 4G Decoding in the firmware's "
    "set-up, if the GPU has them"
)


@dataclass
class Reason:
    """What is so, and what can be done about it."""

    thing: str
    value: str
    remedy: str = ""


@dataclass
class Sizes:
    """What is registered, in bytes."""

    ring: int  # token rings of one dpdk-tokd
    region: int  # the GPU ring


@dataclass
class Way:
    """A path for ids."""

    path: str
    kind: str  # of --want
    against: list[Reason] = field(default_factory=list)
    not_known: list[Reason] = field(default_factory=list)

    @property
    def works(self) -> str:
        """Not known: nothing that is known is against it."""
        return "no" if self.against else "not known" if self.not_known else "yes"


@dataclass
class Paths:
    """With one of the GPUs, or with none."""

    gpu: Gpu | None
    ways: list[Way]

    @property
    def taken(self) -> int:
        """The first that works, or that nothing is against. shm always works."""
        return next(i for i, way in enumerate(self.ways) if way.works != "no")


def memlock_is_low(m: Machine, size: int) -> bool:
    s = m.system
    return isinstance(s.memlock, int) and not s.memlock_free and s.memlock < size + QUEUES_BYTES


@dataclass
class _Look:
    """Adds to a way what it needs and has not."""

    m: Machine
    chosen: Chosen | NoneChosen
    sizes: Sizes

    def rdma(self, w: Way) -> None:
        if isinstance(self.chosen, NoneChosen):
            remedy = "see the findings"
            if not self.m.rdma:
                remedy = (
                    "put in a NIC with RDMA (ConnectX, BlueField) and load its driver (mlx5_ib); "
                    "or, to try it in software: rdma link add rxe0 type rxe netdev NETDEV"
                )
            w.against.append(Reason("RDMA", self.chosen.why, remedy))

    def memlock(self, w: Way, what: str, size: int) -> None:
        limit = self.m.system.memlock
        if isinstance(limit, int) and memlock_is_low(self.m, size):
            value = f"limit {bytes_text(limit)}, {what} needs {bytes_text(size)}"
            w.against.append(Reason("locked memory", value, MEMLOCK_REMEDY))
        elif limit is None:
            w.not_known.append(Reason("locked memory", "the limit cannot be read"))

    def driver(self, w: Way) -> None:
        note = self.m.cuda_note
        if not self.m.system.nvidia:
            value = "the module nvidia is not loaded"
            w.against.append(Reason("GPU driver", value, "modprobe nvidia"))
        elif note:
            w.against.append(Reason("CUDA", note.value, note.remedy))

    def bar1(self, w: Way, gpu: Gpu) -> None:
        """The driver uses part of BAR1. If it does not say how much is free, all is the limit."""
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

    def dmabuf_of_nic(self, w: Way) -> None:
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

    def dmabuf_of_gpu(self, w: Way, gpu: Gpu) -> None:
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

    def producer(self, w: Way, gpu: Gpu | None) -> None:
        self.rdma(w)
        self.memlock(w, "the token rings", self.sizes.ring)
        if isinstance(self.chosen, Chosen):
            value = "its GPU, driver and registration cannot be seen from here"
            w.not_known.append(Reason("the agent's end", value, "run tokd-diag there as well"))

    def verbs_dmabuf(self, w: Way, gpu: Gpu) -> None:
        self.rdma(w)
        self.driver(w)
        self.dmabuf_of_nic(w)
        self.dmabuf_of_gpu(w, gpu)
        self.bar1(w, gpu)

    def verbs_peer_memory(self, w: Way, gpu: Gpu) -> None:
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

    def verbs_host(self, w: Way, gpu: Gpu | None) -> None:
        """Into memory of the host, where the consumer is threads of the CPU."""
        self.rdma(w)
        self.memlock(w, "the GPU ring", self.sizes.region)

    def verbs_ring_host(self, w: Way, gpu: Gpu) -> None:
        """Into memory of the host that the GPU reads."""
        self.verbs_host(w, gpu)
        self.driver(w)

    def cuda_dmabuf(self, w: Way, gpu: Gpu | None) -> None:
        """The agent's dma-buf, mapped. gdrcopy is no path: it pins memory of its own process alone,
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

    def all(self, role: str, gpu: Gpu | None) -> Paths:
        def way(path: str, kind: str, look: Callable[[Way, Gpu], None] | None = None) -> Way:
            w = Way(path, kind)
            if look:
                look(w, gpu)  # type: ignore[arg-type]  # those that need a GPU are given one
            return w

        if role == "producer":
            ways = [way("verbs", "verbs", self.producer)]
        elif gpu is not None:
            ways = [
                way("verbs with dma-buf", "verbs", self.verbs_dmabuf),
                way("verbs with peer memory", "verbs", self.verbs_peer_memory),
                way("verbs with --ring host", "verbs", self.verbs_ring_host),
            ]
        else:
            ways = [way("verbs into host memory", "verbs", self.verbs_host)]
        ways += [way("cuda with dma-buf", "cuda", self.cuda_dmabuf), way("shm", "shm")]
        return Paths(gpu, ways)


def judge_ways(m: Machine, chosen: Chosen | NoneChosen, sizes: Sizes, role: str) -> list[Paths]:
    """In the order of the GPUs; one at least."""
    look = _Look(m, chosen, sizes)
    gpus: list[Gpu | None] = [*m.gpus] or [None]
    return [look.all(role, gpu) for gpu in gpus]
