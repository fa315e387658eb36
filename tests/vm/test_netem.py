# SPDX-License-Identifier: BSD-3-Clause
"""Requests over a wire on which Linux's netem loses, reorders, doubles and corrupts frames in each
direction: none lost, none wrong. The client is outside; what the ring has comes by a virtio port.

TESTS_NETEM=N: so many requests, instead of 100."""

import os
import time
from collections import Counter
from pathlib import Path

import debian
import programs
import pytest
from dpdk_tokd import Client
from guest import Guest, why_not
from initramfs import GUEST, Initramfs
from netlab import SERVER_IP
from samples import different_texts
from wire import Wire

REQUESTS = int(os.environ.get("TESTS_NETEM", "100"))
IN_FLIGHT = 64
NETEM = "delay 1ms loss 5% reorder 5% duplicate 1% corrupt 0.1%"
MODULES = ("virtio_pci", "virtio_net", "virtio_console", "bridge", "veth", "sch_netem")
DRIVERS = ("librte_bus_vdev", "librte_mempool_ring", "librte_net_af_packet")
PROGRAMS = ("app/dpdk-tokd", "app/tokd-tail")
# netem also changes MAC addresses, which Ethernet's CRC guards: another one is another client's.
TWICE_MOST = 1 + REQUESTS // 1000


@pytest.fixture
def initramfs(tmp_path: Path, gpt2_file: Path) -> Path:
    if reason := why_not("amd64"):
        pytest.skip(reason)
    built = programs.amd64(*PROGRAMS)
    archive = Initramfs(debian.root("amd64"))
    archive.module(*MODULES)
    built.add_appliance(archive, DRIVERS)
    archive.program(built.build / "app/tokd-tail", built.libraries)
    archive.program(Path("/usr/sbin/tc"), built.libraries)
    archive.file(f"vocab{gpt2_file.suffix}", gpt2_file.read_bytes())
    archive.file("run.sh", (GUEST / "netem.sh").read_bytes())
    archive.write(tmp_path / "initramfs.gz")
    return tmp_path / "initramfs.gz"


def in_ring(path: Path) -> list[tuple[str, tuple[int, ...]]]:
    """What tokd-tail has printed: streams that are complete, and their ids."""
    parts: dict[str, list[int]] = {}
    whole = []
    for line in path.read_text().splitlines():
        record = dict(word.split("=", 1) for word in line.split())
        ids = parts.setdefault(record["serial"], [])
        assert len(ids) == int(record["first"]), line
        ids += map(int, filter(None, record["ids"].split(",")))
        if record["end"] == "last":
            whole.append((record["stream"], tuple(ids)))
    return whole


def test_nothing_is_lost_or_wrong(initramfs: Path, gpt2, tmp_path: Path) -> None:
    records = tmp_path / "records"
    port = ["-chardev", f"file,id=records,path={records}", "-device", "virtio-serial-pci"]
    port += ["-device", "virtserialport,chardev=records"]
    texts = list(different_texts(REQUESTS))
    wanted = [gpt2.encode(text) for text in texts]
    with (
        Wire() as wire,
        Guest(
            "amd64",
            [*wire.options(""), *port],
            memory_mb=1536,
            kernel=debian.kernel(debian.root("amd64")),
            initramfs=initramfs,
            words=f'NETEM="{NETEM}"',
            pass_fds=(wire.fd,),
            name="netem",
        ) as guest,
        wire.call(lambda: Client(SERVER_IP, timeout=60)) as client,
    ):
        assert guest.wait_for("tail") == "attached"
        assert guest.said("netem") == ["0", "0"]
        begin = time.monotonic()
        got = client.tokenize_many(texts, in_flight=IN_FLIGHT)
        seconds = time.monotonic() - begin
        guest.send("end")
        assert guest.wait_for("status") == "0"
        guest.end()
    whole = in_ring(records)
    twice = [stream for stream, n in Counter(stream for stream, _ in whole).items() if n > 1]
    print(
        f"{REQUESTS} requests in {seconds:.0f} s, {client.resends} resends, "
        f"{client.retransmits} retransmits, twice {len(twice)}, frames {guest.said('sent')}"
    )
    assert all(a.tolist() == b.tolist() for a, b in zip(got, wanted, strict=True))
    assert {ids for _, ids in whole} == {tuple(ids.tolist()) for ids in wanted}
    assert len(twice) <= TWICE_MOST
