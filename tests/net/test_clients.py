# SPDX-License-Identifier: BSD-3-Clause
"""Hundreds of texts in flight over a faulty wire: every client gets the reference's ids."""

import asyncio
import random
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from bench.programs import TOKD_CLIENT
from dpdk_tokd import AsyncClient, Client
from faulty_wire import Faults, FaultyWire
from netlab import SERVER_IP
from samples import documents, random_unicode

RTO_MS = 5  # the client's least
USUAL = Faults(drop=0.02, double=0.01, reorder=0.02)
N = 400


@pytest.fixture(scope="module")
def texts(gpt2) -> list[tuple[bytes, list[int]]]:
    """Lines of text, most of them short, and their ids by the reference's equal in this process."""
    rng = random.Random(7)
    real = documents().replace(b"\n", b" ")
    out = []
    for _ in range(N):
        at = rng.randrange(len(real) - 30_000)
        size = 30_000 if rng.random() < 0.03 else rng.randrange(3000)
        awkward = random_unicode(rng, rng.randrange(20)).replace("\n", " ").replace("\r", " ")
        out.append(real[at : at + size] + awkward.encode())
    return [(text, gpt2.encode(text).tolist()) for text in out]


@pytest.fixture(params=["good", "usual"])
def wire_port(request, lab, appliance):
    """Where a client in the namespace reaches the appliance: as host and port."""
    if request.param == "good":
        yield SERVER_IP, 9000
        return
    with FaultyWire(lab, USUAL, seed=9) as faulty:
        yield "127.0.0.1", faulty.port
        assert faulty.dropped > 10 and faulty.reordered > 10 and faulty.doubled > 0


def in_namespace(lab, work: Callable[[], Awaitable[None]]) -> None:
    lab.call(lambda: asyncio.run(work()))


def test_tokenize_many(lab, wire_port, texts):
    with lab.call(lambda: Client(*wire_port, timeout=20)) as client:
        got = client.tokenize_many((text for text, _ in texts), in_flight=200)
        assert [ids.tolist() for ids in got] == [ids for _, ids in texts]
        assert client.tokenize_many([]) == []


def test_asyncio_tasks(lab, wire_port, texts):
    async def work() -> None:
        async with AsyncClient(*wire_port, timeout=20) as client:
            got = await asyncio.gather(*(client.tokenize(text) for text, _ in texts))
            assert [ids.tolist() for ids in got] == [ids for _, ids in texts]
            assert client._client.pending == 0

    in_namespace(lab, work)


@pytest.mark.parametrize("kind", ["idle", "blocked", "sync"])
def test_a_clean_link_needs_few_packets_twice(lab, appliance, gpt2, kind):
    """256 texts at once, also where the loop is blocked for 300 ms now and then."""
    every = [f"This is text number {i}, and it is short.".encode() for i in range(1000)]
    wanted = [gpt2.encode(text).tolist() for text in every]

    async def block() -> None:
        while True:
            time.sleep(0.3)
            await asyncio.sleep(0.03)

    async def by_asyncio() -> int:
        async with AsyncClient(SERVER_IP, in_flight=256) as client:
            blocking = asyncio.create_task(block()) if kind == "blocked" else None
            got = await asyncio.gather(*map(client.tokenize, every))
            if blocking is not None:
                blocking.cancel()
            assert [ids.tolist() for ids in got] == wanted
            return client.retransmits

    def by_turns() -> int:
        with Client(SERVER_IP) as client:
            got = client.tokenize_many(every, in_flight=256)
            assert [ids.tolist() for ids in got] == wanted
            return client.retransmits

    def waited_ms() -> float:
        """How long the worker has had to wait for its CPU, since it started."""
        return int(Path(f"/proc/{appliance.pid}/schedstat").read_text().split()[1]) / 1e6

    for _ in range(3):
        before = waited_ms()
        again = lab.call(by_turns if kind == "sync" else lambda: asyncio.run(by_asyncio()))
        if again <= 30:
            return
        # What is under way meanwhile is sent again rightly, after RTO_MS.
        absences = int((waited_ms() - before) // RTO_MS)
        assert again <= 30 + 256 * absences, (again, absences)
    pytest.skip(f"the worker may have been off its CPU {absences} times for {RTO_MS} ms")


def test_the_tool_with_a_text_a_line(lab, wire_port, texts):
    tool = TOKD_CLIENT
    if not tool.is_file():
        pytest.skip(f"{tool} is not built")
    host, port = wire_port
    inside = ["ip", "netns", "exec", lab.namespace]
    command = [*inside, tool, "--lines", "--in-flight", "200", "--timeout", "20", f"{host}:{port}"]
    lines = b"\n".join(text for text, _ in texts)
    done = subprocess.run(command, input=lines, capture_output=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [[*map(int, line.split())] for line in done.stdout.split(b"\n")[:-1]] == [
        ids for _, ids in texts
    ]


def test_the_tool_prints_ids_of_a_whole_text(lab, appliance, gpt2):
    tool = TOKD_CLIENT
    if not tool.is_file():
        pytest.skip(f"{tool} is not built")
    for options in ([], ["--stream"]):
        command = ["ip", "netns", "exec", lab.namespace, tool, *options, SERVER_IP]
        done = subprocess.run(
            command, input=documents(), capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert [*map(int, done.stdout.split())] == gpt2.encode(documents()).tolist()


def test_asyncio_streams_in_order_and_before_the_end(lab, appliance, gpt2):
    async def work() -> None:
        text = 10 * documents()  # of many windows: ids come while text is yet to be sent
        async with AsyncClient(SERVER_IP) as client:
            pieces = [ids async for ids in client.stream(text)]
            assert np.concatenate(pieces).tolist() == gpt2.encode(text).tolist()
            assert len(pieces) > 10

    in_namespace(lab, work)


def test_a_cancelled_task_leaves_the_others_alone(lab, appliance, texts):
    async def work() -> None:
        async with AsyncClient(SERVER_IP) as client:
            tasks = [asyncio.create_task(client.tokenize(text)) for text, _ in texts]
            await asyncio.sleep(0.001)
            for task in tasks[::2]:
                task.cancel()
            got = await asyncio.gather(*tasks, return_exceptions=True)
            assert sum(isinstance(ids, asyncio.CancelledError) for ids in got[::2]) > 0
            assert [ids.tolist() for ids in got[1::2]] == [ids for _, ids in texts[1::2]]
            async for _ in client.stream(documents()):
                break
            ids = await client.tokenize(texts[0][0])
            assert ids.tolist() == texts[0][1]

    in_namespace(lab, work)


def test_closing_ends_what_is_under_way(lab):
    async def work() -> None:
        client = AsyncClient("127.0.0.1", silent.getsockname()[1])
        task = asyncio.create_task(client.tokenize("nobody answers"))
        await asyncio.sleep(0.05)
        await client.close()
        with pytest.raises(ConnectionAbortedError):
            await task
        with pytest.raises(ConnectionAbortedError):
            await client.tokenize("too late")

    with lab.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as silent:
        silent.bind(("127.0.0.1", 0))
        in_namespace(lab, work)


def test_a_stream_that_is_left_does_not_hold_up_the_next_text(lab, appliance, gpt2):
    with lab.call(lambda: Client(SERVER_IP)) as client:
        left = client.stream(documents())
        next(left)
        ids = client.tokenize("meanwhile")
        assert ids.tolist() == gpt2.encode("meanwhile").tolist()
        left.close()
        assert client._client.pending == 0
