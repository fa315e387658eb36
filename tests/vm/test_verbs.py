# SPDX-License-Identifier: BSD-3-Clause
"""Packets to embeddings by RDMA: dpdk-tokd in one guest, tokd-gpu on the CPU in another, soft-RoCE
between them; and both in one. Ids and rows equal the references'; a queue pair that broke is made
again, and nothing is lost.

    client [tap] == dpdk-tokd 192.168.77.1 == RoCE == 192.168.77.2 tokd-gpu == rows, a file
"""

import socket
import time
from pathlib import Path

import debian
import numpy as np
import programs
import pytest
from dpdk_tokd import Client
from dpdk_tokd.embeddings.layout import ABORT, ENTRY, LAST, EmbeddingStatus, Entry
from dpdk_tokd.embeddings.table import random_table
from guest import Guest, why_not
from initramfs import GUEST, Initramfs
from netlab import SERVER_IP
from samples import TEXTS, documents
from wire import Wire

ROWS, DIM, SEED = 50257, 96, 3
WORD = random_table(ROWS, DIM, SEED)
ROWS_S = 60.0
MEMORY_MB = 1536
MODULES = (
    "virtio_pci", "virtio_net", "virtio_console", "dummy", "crc32_generic", "ib_uverbs",
    "rdma_rxe"
)  # fmt: skip
PROGRAMS = ("app/tokd-gpu", "tests/unit/gpu/sink/subscriber", "tests/unit/gpu/transport/verbs_pair")
DRIVERS = ("librte_bus_vdev", "librte_mempool_ring", "librte_net_af_packet")


class Embeddings:
    """What the guest's subscriber has written so far, of every text."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._parts: dict[tuple[int, int], dict[int, np.ndarray]] = {}
        self._whole: dict[tuple[int, int], int] = {}

    def _look(self) -> None:
        with self._path.open("rb") as f:
            f.seek(self._read)
            data = f.read()
        at = 0
        while at + ENTRY.size <= len(data):
            e = Entry._make(ENTRY.unpack_from(data, at))
            end = at + ENTRY.size + 4 * DIM * e.tokens
            if end > len(data):
                break
            rows = np.frombuffer(data[at + ENTRY.size : end], "<f4").reshape(e.tokens, DIM)
            self._take(e, rows)
            at = end
        self._read += at

    def _take(self, e: Entry, rows: np.ndarray) -> None:
        text = (e.instance, e.request)
        assert e.status == EmbeddingStatus.OK
        assert not e.flags & ABORT
        # A part may come again, of a ring that was made anew: the same.
        before = self._parts.setdefault(text, {}).setdefault(e.first, rows)
        assert np.array_equal(before, rows)
        if e.flags & LAST:
            self._whole[text] = e.first + e.tokens

    def of_text(self, n: int) -> np.ndarray:
        """Rows of the n-th text that was sent, once they are all there."""
        deadline = time.monotonic() + ROWS_S
        while True:
            self._look()
            texts = sorted(self._parts)
            if n < len(texts) and (whole := self._whole.get(texts[n])) is not None:
                parts = self._parts[texts[n]]
                rows = np.concatenate([parts[first] for first in sorted(parts)])
                if len(rows) == whole:
                    return rows
            assert time.monotonic() < deadline, (
                f"rows of text {n} are not there; there are {len(texts)}"
            )
            time.sleep(0.1)


@pytest.fixture(scope="module")
def initramfs(tmp_path_factory, gpt2_file) -> Path:
    """One for all of them: $ROLE on the kernel's line says what a guest does."""
    if reason := why_not("amd64"):
        pytest.skip(reason)
    built = programs.amd64("app/dpdk-tokd", *PROGRAMS)
    archive = Initramfs(debian.root("amd64"))
    archive.module(*MODULES)
    built.add_appliance(archive, DRIVERS)
    built.add_rdma(archive)
    for program in PROGRAMS:
        archive.program(built.build / program, built.libraries)
    archive.file(f"vocab{gpt2_file.suffix}", gpt2_file.read_bytes())
    archive.file("run.sh", (GUEST / "verbs.sh").read_bytes())
    path = tmp_path_factory.mktemp("verbs") / "initramfs.gz"
    archive.write(path)
    return path


def guest(initramfs: Path, role: str, options: list[str], fds: tuple[int, ...]) -> Guest:
    return Guest(
        "amd64",
        options,
        memory_mb=MEMORY_MB,
        kernel=debian.kernel(debian.root("amd64")),
        initramfs=initramfs,
        words=f"hugepages=16 ROLE={role} TABLE={ROWS}x{DIM}:{SEED}",
        pass_fds=fds,
        name=f"verbs {role}",
    )


def ring_card(fd: int, number: int) -> list[str]:
    """The card between the guests, 0000:00:06.0."""
    card = f"virtio-net-pci,netdev=ring,romfile=,mac=52:54:00:00:01:0{number},addr=6"
    return ["-netdev", f"socket,id=ring,fd={fd}", "-device", card]


def to_file(rows: Path) -> list[str]:
    """What the subscriber writes into."""
    rows.touch()
    return [
        *("-chardev", f"file,id=rows,path={rows}", "-device", "virtio-serial-pci"),
        *("-device", "virtserialport,chardev=rows,name=rows"),
    ]


def begin(agent: Guest, appliance: Guest) -> None:
    """The appliance wants an agent to be there."""
    for guest in (agent, appliance):
        assert guest.wait_for("rdma") == "4: ACTIVE"
    agent.send("agent")
    assert agent.wait_for("agent") == "ready"
    appliance.send("appliance")
    assert appliance.wait_for("appliance") == "ready"


class Texts:
    """Sends texts, and holds ids and rows against the references."""

    def __init__(self, client: Client, reference, rows: Path) -> None:
        self._client, self._reference = client, reference
        self._embeddings = Embeddings(rows)
        self._sent: list[list[int]] = []
        self._checked = 0

    def send(self, text: bytes) -> None:
        want = self._reference.encode(text.decode("utf-8", "replace"), add_special_tokens=False).ids
        assert self._client.tokenize(text).tolist() == want, text[:100]
        self._sent.append(want)

    def check(self) -> None:
        """Rows of all that was sent."""
        for n in range(self._checked, len(self._sent)):
            rows = self._embeddings.of_text(n)
            assert np.array_equal(rows, WORD[np.asarray(self._sent[n], int)]), n
        self._checked = len(self._sent)


def test_two_guests_and_a_queue_pair_that_breaks(initramfs, gpt2_reference, tmp_path):
    rows = tmp_path / "rows"
    ours, theirs = socket.socketpair()
    with ours, theirs, Wire() as wire:
        text_card = wire.options("")
        with (
            guest(
                initramfs, "agent", [*ring_card(ours.fileno(), 2), *to_file(rows)], (ours.fileno(),)
            ) as agent,
            guest(
                initramfs,
                "appliance",
                [*text_card, *ring_card(theirs.fileno(), 1)],
                (wire.fd, theirs.fileno()),
            ) as appliance,
            wire.call(lambda: Client(SERVER_IP, timeout=60)) as client,
        ):
            begin(agent, appliance)
            texts = Texts(client, gpt2_reference, rows)
            for text in (*TEXTS.values(), documents()[:40_000]):
                texts.send(text)
            texts.check()

            agent.send("down")
            assert agent.wait_for("wire") == "down"
            texts.send(b"nobody hears this yet")
            appliance.send("broken")
            assert appliance.wait_for("broken") == "yes"
            agent.send("up")
            appliance.send("again")
            again = appliance.wait_for("again")
            assert again in ("resumed", "anew")
            for text in (*TEXTS.values(), documents()[-40_000:]):
                texts.send(text)
            texts.check()

            appliance.send("end")
            assert appliance.wait_for("appliance-status") == "0"
            appliance.end()
            if again == "resumed":  # a new producer slot is no connection made again
                assert int(appliance.said("sink_reconnects")[0]) >= 1
            assert not appliance.said("sink_failed")
            agent.send("end")
            assert agent.wait_for("agent-status") == "0"
            agent.end()


def test_both_in_one_guest(initramfs, gpt2_reference, tmp_path):
    rows = tmp_path / "rows"
    with (
        Wire() as wire,
        guest(initramfs, "both", [*wire.options(""), *to_file(rows)], (wire.fd,)) as both,
        wire.call(lambda: Client(SERVER_IP, timeout=60)) as client,
    ):
        assert both.wait_for("rdma") == "4: ACTIVE"
        both.send("pair")
        assert both.wait_for("pair") == "0"
        begin(both, both)
        texts = Texts(client, gpt2_reference, rows)
        for text in (*TEXTS.values(), documents()[:40_000]):
            texts.send(text)
        texts.check()
        both.send("end")
        assert both.wait_for("appliance-status") == "0"
        assert both.wait_for("agent-status") == "0"
        both.end()
        assert not both.said("sink_failed")
