# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd as it is used on hardware: a PCI network card by vfio-pci behind an IOMMU, huge pages,
an isolated core; on x86-64, and on aarch64 in a BlueField's stead. tokd-host gives it the card, and
takes it back. The client is outside, its texts the tests' own."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import debian
import guest_tokd_host
import programs
import pytest
from dpdk_tokd import Client
from guest import IOMMU, Guest, why_not
from initramfs import GUEST, Initramfs
from netlab import SERVER_IP
from samples import TEXTS, documents, random_unicode
from wire import IFF_VNET_HDR, Wire

ISOLATED = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0"


class OffloadingWire(Wire):
    """Either side leaves UDP checksums to the other."""

    flags = Wire.flags | IFF_VNET_HDR


@dataclass(frozen=True)
class Machine:
    options: list[str]  # QEMU's
    card: str
    memory_mb: int
    page_words: str  # the kernel's
    pages: str  # the same, as tokd-host is asked
    words: str  # others of the kernel's
    taken: str | None  # pages that EAL is to take
    wire: type[Wire]
    checksums: str  # that are left to the card


MACHINES = {
    "amd64": Machine(
        IOMMU,
        ",ats=on",
        4096,
        "default_hugepagesz=1G hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=32",
        "1x1G,32x2M",
        "intel_iommu=on iommu=pt PAGE=1G",
        "hugepages-1048576kB 1 of them free 0",
        OffloadingWire,
        "rx UDP, tx UDP",
    ),
    "arm64": Machine(
        [],
        "",
        2048,
        "default_hugepagesz=2M hugepagesz=2M hugepages=320",
        "320x2M",
        "PAGE=2M",
        None,
        Wire,
        "rx none, tx none",
    ),
}


def texts() -> list[bytes]:
    rng = random.Random(1)
    some = [random_unicode(rng, 400).encode() for _ in range(20)]
    return [*TEXTS.values(), *some, documents()]


def archive(arch: str, gpt2_file: Path, path: Path) -> Path:
    built = programs.arm64() if arch == "arm64" else programs.amd64()
    root = debian.root(arch)
    made = Initramfs(root)
    made.module("virtio_pci", "virtio_net", "vfio_iommu_type1", "vfio_pci")
    made.file(f"boot/{debian.config(root).name}", debian.config(root).read_bytes(), 0o644)
    built.add_appliance(made)
    guest_tokd_host.add(
        made,
        root,
        [*built.libraries, *root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")],
    )
    made.file(f"vocab{gpt2_file.suffix}", gpt2_file.read_bytes())
    made.file("run.sh", (GUEST / "nic.sh").read_bytes())
    made.write(path)
    return path


def check_findings(guest: Guest, machine: Machine) -> None:
    """`check`, before anything is done: what the guest is, and what it lacks."""
    assert guest.wait_for("isolated") == "1"
    assert guest.wait_for("check") == "1"
    found = json.loads(guest.wait_for("findings"))
    told = {f["what"]: f["level"] for f in found}
    for word in f"{ISOLATED} {machine.page_words}".split():
        assert told[f"the kernel was booted with {word}"] == "ok"
    for count, size in (part.split("x") for part in machine.pages.split(",")):
        assert told[f"{count} huge pages of {size}"] == "ok"
    # The script has mounted one size.
    mounts = {what: level for what, level in told.items() if "hugetlbfs" in what}
    assert mounts == (
        {"no hugetlbfs mount with pages of 2M": "warn"} if "1G" in machine.pages else {}
    )
    assert told["0000:00:05.0: virtio-pci, DPDK needs vfio-pci"] == "bad"
    assert told["no frequency scaling is visible: nothing to set"] == "note"
    # Of the card's own queues: its driver spreads them over all CPUs.
    loud = guest.wait_for("loud-before")
    assert loud
    assert (
        told[
            f"{len(loud.split())} interrupts may be handled on isolated cores: {', '.join(loud.split())}"
        ]
        == "warn"
    )
    wrong = {f["stage"] for f in found if f["level"] in ("warn", "bad")}
    # Not boot: there is no boot loader, but the kernel has all words.
    assert wrong == ({"hugepages"} if mounts else set()) | {"irq", "nic", "limits"}


def check_applied(guest: Guest) -> None:
    """Refused while the interface is up; then vfio-pci has the card, and the kernel no
    interface."""
    assert guest.wait_for("driver-before") == "virtio-pci"
    interface = guest.wait_for("interface-before")
    assert interface
    assert guest.wait_for("apply-up") == "2"
    assert f"0000:00:05.0: its interface {interface} is up" in guest.wait_for("refusal")
    state = [guest.wait_for(f"{what}-refused") for what in ("driver", "override", "interface")]
    assert state == ["virtio-pci", "(null)", interface]
    assert guest.wait_for("apply") == "0"
    state = [guest.wait_for(f"{what}-applied") for what in ("driver", "override", "interface")]
    assert state == ["vfio-pci", "vfio-pci", ""]
    assert guest.wait_for("loud-applied") == ""
    assert guest.wait_for("iommu-group").isdigit()
    assert guest.wait_for("verify") == "0"


def check_reverted(guest: Guest) -> None:
    """The kernel's driver has the card again, and can use it; no file is left."""
    assert guest.wait_for("revert") == "0"
    state = [guest.wait_for(f"{what}-reverted") for what in ("driver", "override", "interface")]
    assert state == ["virtio-pci", "(null)", guest.wait_for("interface-before")]
    assert guest.wait_for("ping") == "0"
    assert guest.said("left") == []


@pytest.mark.parametrize("arch", MACHINES)
def test_ids_by_a_card_behind_an_iommu(arch, gpt2_file, gpt2_reference, tmp_path):
    if reason := why_not(arch):
        pytest.skip(reason)
    machine = MACHINES[arch]
    initramfs = archive(arch, gpt2_file, tmp_path / "initramfs.gz")

    with (
        machine.wire() as wire,
        Guest(
            arch,
            [*machine.options, *wire.options(machine.card)],
            memory_mb=machine.memory_mb,
            kernel=debian.kernel(debian.root(arch)),
            initramfs=initramfs,
            words=f"{ISOLATED} {machine.page_words} {machine.words} PAGES={machine.pages}",
            pass_fds=(wire.fd,),
            name=arch,
        ) as guest,
    ):
        check_findings(guest, machine)
        check_applied(guest)
        guest.wait_for("ready")
        assert guest.wait_for("checksums") == f"by the device: {machine.checksums}"
        assert "dpdk-tokd 1" in guest.said("thread")
        if machine.taken:
            assert machine.taken in guest.said("pages")
        with wire.call(lambda: Client(SERVER_IP, timeout=60)) as client:
            for text in texts():
                want = gpt2_reference.encode(
                    text.decode("utf-8", "replace"), add_special_tokens=False
                ).ids
                assert client.tokenize(text).tolist() == want, text[:100]
        guest.send("end")
        assert guest.wait_for("status") == "0"
        check_reverted(guest)
        guest.end()
