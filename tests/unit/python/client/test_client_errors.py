# SPDX-License-Identifier: BSD-3-Clause
"""What the network says against it, in words: the address, the reason, and what to do."""

import asyncio
import socket

import pytest
from dpdk_tokd import AsyncClient, Client


@pytest.fixture
def nobody() -> int:
    """A port at which nothing listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


REFUSED = r"127.0.0.1:\d+: Connection refused: nothing listens there: is dpdk-tokd running"
UNKNOWN = r"no such host.:9000: .*: give a name that resolves, or an address"


def test_nothing_listens(nobody: int) -> None:
    with Client("127.0.0.1", nobody) as client:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError, match=REFUSED) as caught:
                client.tokenize("text")
            assert f":{nobody}:" in str(caught.value)
        with pytest.raises(ConnectionRefusedError, match=REFUSED):
            client.tokenize_many(["text"] * 3)


async def test_nothing_listens_for_asyncio(nobody: int) -> None:
    async with AsyncClient("127.0.0.1", nobody) as client:
        texts = (client.tokenize("text") for _ in range(3))
        errors = await asyncio.gather(*texts, return_exceptions=True)
        assert len({*map(id, errors)}) == 3  # each raises its own, with its own traceback
        for error in errors:
            assert type(error) is ConnectionRefusedError
            with pytest.raises(ConnectionRefusedError, match=REFUSED):
                raise error


async def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(socket.gaierror, match=UNKNOWN):
        Client("no such host.")
    with pytest.raises(socket.gaierror, match=UNKNOWN):
        async with AsyncClient("no such host."):
            pass
