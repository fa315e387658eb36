# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd as it is used on hardware: a PCI network card by vfio-pci behind an IOMMU, huge pages, an isolated core;
on x86-64, and on aarch64 in a BlueField's stead. The client is outside, its texts the tests' own."""

from __future__ import annotations

import random
from pathlib import Path

import debian
import programs
import pytest
from dpdk_tokd import Client
from guest import Guest, why_not
from initramfs import GUEST, Initramfs
from netlab import SERVER_IP
from samples import TEXTS, documents, random_unicode
from wire import Wire

ISOLATED = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0"
# What each has: QEMU's options, the card's, the kernel's words, memory, the pages that EAL is to take.
MACHINES = {
    "amd64": (
        ["-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on"],
        ",ats=on",
        "default_hugepagesz=1G hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=32 intel_iommu=on iommu=pt PAGE=1G",
        4096,
        "hugepages-1048576kB 1 of them free 0",
    ),
    "arm64": ([], "", "hugepagesz=2M hugepages=320 PAGE=2M", 2048, None),
}


def texts() -> list[bytes]:
    rng = random.Random(1)
    some = [random_unicode(rng, 400).encode() for _ in range(20)]
    return [*TEXTS.values(), *some, documents()]


@pytest.mark.parametrize("arch", MACHINES)
def test_ids_by_a_card_behind_an_iommu(arch, gpt2_file, gpt2_reference, tmp_path):
    if reason := why_not(arch):
        pytest.skip(reason)
    built = programs.arm64() if arch == "arm64" else programs.amd64()
    root = debian.root(arch)
    options, card, words, memory, pages = MACHINES[arch]
    archive = Initramfs(root)
    archive.module("virtio_pci", "vfio_iommu_type1", "vfio_pci")
    built.add_appliance(archive)
    archive.file(f"vocab{gpt2_file.suffix}", gpt2_file.read_bytes())
    archive.file("run.sh", (GUEST / "nic.sh").read_bytes())
    initramfs = tmp_path / "initramfs.gz"
    archive.write(initramfs)

    with Wire() as wire, Guest(
        arch,
        [*options, *wire.options(card)],
        memory_mb=memory,
        kernel=debian.kernel(root),
        initramfs=initramfs,
        words=f"{ISOLATED} {words}",
        pass_fds=(wire.fd,),
        name=arch,
    ) as guest:
        guest.wait_for("ready")
        assert guest.said("isolated") == ["1"]
        assert guest.said("driver") == ["vfio-pci"]
        assert guest.said("iommu-group")[0].isdigit()
        assert "dpdk-tokd 1" in guest.said("thread")
        if pages:
            assert pages in guest.said("pages")
        with wire.call(lambda: Client(SERVER_IP, timeout=60)) as client:
            for text in texts():
                want = gpt2_reference.encode(text.decode("utf-8", "replace"), add_special_tokens=False).ids
                assert client.tokenize(text).tolist() == want, text[:100]
        guest.say("end")
        assert guest.wait_for("status") == "0"
        guest.end()
