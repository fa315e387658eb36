# SPDX-License-Identifier: BSD-3-Clause
"""Two appliances, of which one after the other is killed under load and started again: every
request is answered once, with its own ids.

TESTS_KILLS=N: so many kills, instead of two."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from dpdk_tokd import AsyncClient
from netlab import NO_HUGE, SERVER_IP, NetAppliance
from samples import documents

KILLS = int(os.environ.get("TESTS_KILLS", 2))
ADDRESSES = (SERVER_IP, "10.99.0.3")
TASKS = 32
LEAST = 200  # answers between two events


class Load:
    """Tasks that ask for one text after another, each text another one."""

    def __init__(self, lab, gpt2) -> None:
        self._gpt2, self._rng, self._real = gpt2, random.Random(5), documents()
        self._stop = threading.Event()
        self.asked = self.answered = self.moved = self.healthy = 0
        self.longest = 0.0  # s, of an answer
        self.faults: list[str] = []
        self._thread = threading.Thread(target=lambda: lab.call(lambda: asyncio.run(self._run())))

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        hosts = ",".join(ADDRESSES)
        async with AsyncClient(hosts, vocab=self._gpt2.checksum, timeout=20) as client:
            await asyncio.gather(*(self._ask(client) for _ in range(TASKS)))
            self.moved = client.moved

    async def _ask(self, client: AsyncClient) -> None:
        while not self._stop.is_set():
            size = 9000 if self._rng.random() < 0.02 else self._rng.randrange(1000)
            at = self._rng.randrange(len(self._real) - size)
            text = b"%d %s" % (self.asked, self._real[at : at + size])
            self.asked += 1
            begun = time.monotonic()
            try:
                ids = await client.tokenize(text)
            except Exception as e:
                self.faults.append(repr(e))
                continue
            self.answered += 1
            self.longest = max(self.longest, time.monotonic() - begun)
            self.healthy = client.healthy
            if ids.tolist() != self._gpt2.encode(text).tolist():
                self.faults.append(f"other ids: {text!r}")


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_a_killed_appliance_had_comes_from_the_other(lab, huge, gpt2_file, gpt2, tmp_path):
    # Killed, it cannot remove files of huge pages.
    memory = NO_HUGE if huge is None else [*huge, "--in-memory"]

    def start(which: int) -> NetAppliance:
        folder: Path = tmp_path / str(which)
        folder.mkdir(exist_ok=True)
        appliance = NetAppliance(
            lab, gpt2_file, folder, driver="net_af_packet", memory=memory, args=(),
            ip=ADDRESSES[which],
        )  # fmt: skip
        stack.callback(appliance.__exit__)
        return appliance

    rng = random.Random(3)
    with ExitStack() as stack:
        running = [start(which) for which in range(len(ADDRESSES))]
        for appliance in running:
            appliance.wait_ready(60)
        with Load(lab, gpt2) as load:

            def more_answers() -> None:
                before = load.answered
                until(lambda: load.answered >= before + LEAST or bool(load.faults))

            for kill in range(KILLS):
                which = kill % len(ADDRESSES)
                until(lambda: load.healthy == len(ADDRESSES))
                more_answers()
                time.sleep(rng.random() * 0.2)
                running[which].send_signal(signal.SIGKILL)
                running[which].wait(10)
                until(lambda: load.healthy == 1)
                more_answers()  # of the other alone
                running[which].__exit__()  # removes its files
                running[which] = start(which)
                running[which].wait_ready(60)
    print(
        f"{KILLS} kills, {load.answered} of {load.asked} texts answered, {load.moved} moved, "
        f"the longest after {load.longest:.2f} s"
    )
    assert load.faults == []
    assert load.answered == load.asked and load.moved >= KILLS
