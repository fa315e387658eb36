# SPDX-License-Identifier: BSD-3-Clause
"""tokd-exporter's limit of connections."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="pip install 'dpdk-tokd[exporter]'")
from dpdk_tokd.ops.exporter import CONNECTIONS, TokdCollector, _Server

CLIENTS = 3 * CONNECTIONS


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)  # there is no event to wait for


async def test_the_newest_displace_the_oldest_also_if_many_come_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    served = _Server(TokdCollector("none"))
    most = begun = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal begun, most
        begun += 1
        asyncio.get_running_loop().call_soon(note)
        await served.serve(reader, writer)

    def note() -> None:
        nonlocal most
        most = max(most, len(served._open))

    async with await asyncio.start_unix_server(serve, path):
        opened = [asyncio.open_unix_connection(path) for _ in range(CLIENTS)]
        clients = await asyncio.gather(*opened)
        await until(lambda: begun == CLIENTS)
        for reader, _ in clients[:-CONNECTIONS]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        reader, writer = clients[-1]
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")
        for _, writer in clients:
            writer.close()
        await until(lambda: not served._open)
    assert most == CONNECTIONS
