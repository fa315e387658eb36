# SPDX-License-Identifier: BSD-3-Clause
"""Two appliances, of which one after the other is killed, or restarted, under load: every request
is answered once, with its own ids.

TESTS_KILLS=N, TESTS_RESTARTS=N: so many, instead of two."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from appliance import until
from netlab import NO_HUGE, SERVER_IP, NetAppliance
from text_load import Load

KILLS = int(os.environ.get("TESTS_KILLS", 2))
RESTARTS = int(os.environ.get("TESTS_RESTARTS", 2))
ADDRESSES = (SERVER_IP, "10.99.0.3")
HOSTS = ",".join(ADDRESSES)


@pytest.fixture
def start_at(lab, huge, gpt2_file, tmp_path) -> Iterator[Callable[[int], NetAppliance]]:
    """Starts the appliance of an address; it is ready."""
    # Killed, it cannot remove files of huge pages.
    memory = NO_HUGE if huge is None else [*huge, "--in-memory"]
    with ExitStack() as stack:

        def start(which: int) -> NetAppliance:
            folder: Path = tmp_path / str(which)
            folder.mkdir(exist_ok=True)
            appliance = NetAppliance(
                lab, gpt2_file, folder, driver="net_af_packet", memory=memory, args=(),
                ip=ADDRESSES[which],
            )  # fmt: skip
            return stack.enter_context(appliance)

        yield start


def test_what_a_killed_appliance_had_comes_from_the_other(lab, start_at, gpt2):
    rng = random.Random(3)
    running = [start_at(which) for which in range(len(ADDRESSES))]
    with Load(lab, HOSTS, gpt2, vocab=gpt2.checksum) as load:
        for kill in range(KILLS):
            which = kill % len(ADDRESSES)
            until(lambda: load.healthy == len(ADDRESSES))
            load.go_on()
            time.sleep(rng.random() * 0.2)
            running[which].send_signal(signal.SIGKILL)
            running[which].wait(10)
            until(lambda: load.healthy == 1)
            load.go_on()  # with the other alone
            running[which].__exit__()  # removes its files
            running[which] = start_at(which)
    print(f"{KILLS} kills, {load}")
    load.check()
    assert load.moved >= KILLS


def test_a_rolling_restart_loses_no_text(lab, start_at, gpt2):
    running = [start_at(which) for which in range(len(ADDRESSES))]
    with Load(lab, HOSTS, gpt2, vocab=gpt2.checksum) as load:
        for restart in range(RESTARTS):
            which = restart % len(ADDRESSES)
            load.go_on()
            assert running[which].stop() == 0
            running[which] = start_at(which)  # the next one goes as soon as this one is ready
    print(f"{RESTARTS} restarts of two in turn, {load}")
    load.check()
