# SPDX-License-Identifier: BSD-3-Clause
"""The token ring as a reader on this host sees it, while clients are served over the wire."""

import json
import mmap
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
import ring_layout
from dpdk_tokd import Client, RingError, RingReader
from netlab import SERVER_IP
from samples import documents

# A reader in a process of its own: prints what it saw as JSON once `n` streams are over.
READER = """
import json, sys
from dpdk_tokd import RingReader
path, n = sys.argv[1], int(sys.argv[2])
streams, over, copies = {}, 0, 0
with RingReader(path, timeout=30) as reader:
    print("attached", flush=True)
    for r in reader:
        ids = streams.setdefault(r.stream_id, [])
        assert len(ids) == r.first and r.t_publish >= r.t_rx
        copies += r.tokens.flags.owndata or r.tokens.flags.writeable
        ids += r.tokens.tolist()
        over += r.last
        if over == n:
            break
print(json.dumps({"streams": streams, "copies": copies}))
"""


def test_rings_are_memzones_of_dpdk(appliance):
    listed = appliance.telemetry("/eal/memzone_list")
    zones = [appliance.telemetry(f"/eal/memzone_info,{i}") for i in listed]
    (ring,) = (zone for zone in zones if zone["Name"] == "tokd_ring_0")
    assert ring["Length"] > 16 << 20


def test_another_process_reads_what_clients_get_without_a_copy(lab, appliance):
    texts = [documents()[:n] for n in (0, 10, 2000, 90_000)] * 3
    command = [sys.executable, "-c", READER, appliance.socket, str(len(texts))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None and reader.stdout.readline() == "attached\n"
        got = {}
        with lab.call(lambda: Client(SERVER_IP)) as client:
            for text in texts:
                ids = client.tokenize(text)
                got[str(client.stream_id)] = ids.tolist()
        seen = json.loads(reader.stdout.readline())
    assert reader.returncode == 0
    assert seen["copies"] == 0
    assert seen["streams"] == got


def test_header_says_what_info_says(appliance, gpt2):
    with RingReader(appliance.socket) as reader:
        (info,) = reader.rings
        assert info.vocab == gpt2.checksum
        assert info.data_bytes == 16 << 20
        (seen,) = appliance.telemetry("/tokd/readers").values()
        assert (seen["state"], seen["pid"]) == ("reading", os.getpid())


def test_ring_cannot_be_mapped_for_writing(appliance):
    """The seal, not the reader's good will, protects the ring."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(appliance.socket)
        s.send(ring_layout.ATTACH_REQ.pack(ring_layout.ATTACH_MAGIC, ring_layout.VERSION, 1, 0))
        _, fds, _, _ = socket.recv_fds(s, 4096, 64)
        with pytest.raises(PermissionError):
            mmap.mmap(fds[1], 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        with open(f"/proc/self/fd/{fds[1]}", "r+b") as again, pytest.raises(PermissionError):
            mmap.mmap(again.fileno(), 4096)


def test_as_many_readers_as_there_may_be(lab, appliance, gpt2):
    readers = []
    try:
        with pytest.raises(RingError, match="refused"):
            for _ in range(64):
                readers.append(RingReader(appliance.socket, timeout=5))
        assert len(readers) == 16
        with lab.call(lambda: Client(SERVER_IP)) as client:
            ids = client.tokenize("for every one of them")
        for reader in readers:
            got = []
            for r in reader:
                got += r.tokens.tolist()
                if r.last:
                    break
            assert np.array_equal(got, ids)
    finally:
        for reader in readers:
            reader.close()
