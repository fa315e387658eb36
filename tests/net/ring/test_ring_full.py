# SPDX-License-Identifier: BSD-3-Clause
"""A full token ring pushes back to the client, and nobody holds it for ever."""

import threading
import time

import pytest
from dpdk_tokd import Client, RingDropped, RingReader, RingRefused
from netlab import SERVER_IP
from samples import documents


def test_reader_that_never_releases_is_dropped_and_the_client_completes(lab, start, gpt2):
    appliance = start("--ring-size", "64k", "--reader-timeout", "500")
    text = documents()
    with RingReader(appliance.socket, timeout=10) as reader:
        with lab.call(lambda: Client(SERVER_IP)) as client:
            held = []

            def hold_all() -> None:
                with pytest.raises(RingDropped):
                    for r in reader:
                        held.append(r.hold())

            holding = threading.Thread(target=hold_all)
            holding.start()
            begun = time.monotonic()
            ids = client.tokenize(text)
            took = time.monotonic() - begun
            holding.join()
        assert ids.tolist() == gpt2.encode(text).tolist()
        assert 0.5 <= took < 5
        with pytest.raises(RingDropped):
            held[0].release()
    counters = appliance.counters()
    assert counters["readers_dropped"] == 1
    assert counters["drop_ring_full"] > 0
    assert counters["cycles_backpressured"] > 0


def test_slow_reader_pushes_back_and_loses_nothing(lab, start, gpt2):
    appliance = start("--ring-size", "64k", "--reader-timeout", "100000")
    text = documents()
    got: list[int] = []
    with RingReader(appliance.socket, timeout=10) as reader:

        def read_slowly() -> None:
            for r in reader:
                got.extend(r.tokens.tolist())
                time.sleep(0.005)
                if r.last:
                    break

        slow = threading.Thread(target=read_slowly)
        slow.start()
        with lab.call(lambda: Client(SERVER_IP)) as client:
            ids = client.tokenize(text)
        slow.join()
    assert ids.tolist() == got == gpt2.encode(text).tolist()
    assert appliance.counters()["readers_dropped"] == 0


def test_trickling_reader_is_dropped_and_refused_for_longer_each_time(lab, start, gpt2):
    """Two records now and then are not enough; coming back at once does not help."""
    limit = 0.3  # s
    appliance = start("--ring-size", "64k", "--reader-timeout", str(int(limit * 1000)))
    done = threading.Event()
    dropped: list[str] = []
    refused: list[str] = []

    def trickle() -> None:
        while not done.is_set():
            try:
                with RingReader(appliance.socket, timeout=0.2) as reader:
                    for _ in reader:
                        if done.wait(0.05):
                            return
            except TimeoutError:
                pass
            except RingDropped as e:
                dropped.append(str(e))
            except RingRefused as e:
                refused.append(str(e))
                done.wait(0.01)

    text = documents()
    reading = threading.Thread(target=trickle)
    reading.start()
    try:
        with lab.call(lambda: Client(SERVER_IP, timeout=20)) as client:
            while len(dropped) < 2:
                assert client.tokenize(text).tolist() == gpt2.encode(text).tolist()
    finally:
        done.set()
        reading.join()
    counters = appliance.counters()
    assert counters["readers_dropped"] >= 2
    assert counters["readers_backed_off"] == len(refused) > 0
    assert f"full for {int(limit * 1000)} ms of 100 s: read faster" in dropped[0]
    assert f"full for {int(limit * 250)} ms of 100 s: read faster" in dropped[1]
    assert "(1 dropped): read faster, and try again in" in refused[0]
