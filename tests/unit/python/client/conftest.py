# SPDX-License-Identifier: BSD-3-Clause
"""An appliance that a test scripts, and a client of it."""

from collections.abc import Iterator

import pytest
from dpdk_tokd import Client
from text_appliance import Appliance


@pytest.fixture
def appliance() -> Iterator[Appliance]:
    one = Appliance()
    one.start()
    yield one
    one.stop()


@pytest.fixture
def client(appliance: Appliance) -> Iterator[Client]:
    with Client("127.0.0.1", appliance.port) as client:
        yield client
