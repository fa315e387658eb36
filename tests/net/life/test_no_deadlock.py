# SPDX-License-Identifier: BSD-3-Clause
"""The rules that keep an appliance from waiting for ever, each provoked.

doc/internals/architecture.md has the table: which line is the rule, and which test hangs without
it. A test that hangs ends by the time-out of whoever waits, and fails.
"""

import subprocess
import threading
import time

from dpdk_tokd import Client, RingReader, wire
from netlab import SERVER_IP
from raw_client import RawStream
from samples import documents

FOREVER = "600000"  # ms: no time limit comes to the rescue
EARLY = wire.WINDOW - 1


def served(lab, gpt2, text: str | bytes = "meanwhile, others are served") -> None:
    with lab.call(lambda: Client(SERVER_IP, timeout=5)) as client:
        assert client.tokenize(text).tolist() == gpt2.encode(text).tolist()


def hold_everything(reader: RingReader, until: threading.Event) -> list:
    held = []
    while not until.is_set():
        while (r := reader.poll()) is not None:
            held.append(r.hold())
        until.wait(0.001)
    return held


def fill(stream: RawStream, text: bytes, cut: int = wire.PAYLOAD) -> wire.Rep:
    """Send a packet at a time, and acknowledge no ids, until the window is closed."""
    for packet in stream.packets(text, list(range(cut, len(text), cut))):
        stream.send(packet)
        rep = stream.reply()
        assert rep is not None
        if rep.credit == 0:
            return rep
    raise AssertionError("the window never closed")


def test_full_ring_is_not_waited_for(lab, start, gpt2):
    """Whatever the ring is like, the queue is polled: ping is answered, and so is a POLL."""
    appliance = start("--ring-size", "64k", "--reader-timeout", FOREVER)
    full, text = threading.Event(), documents()
    with RingReader(appliance.socket) as reader:

        def tokenize() -> None:
            with lab.call(lambda: Client(SERVER_IP, timeout=30)) as client:
                got.append(client.tokenize(text).tolist())

        got: list[list[int]] = []
        held: list = []
        holding = threading.Thread(target=lambda: held.extend(hold_everything(reader, full)))
        client = threading.Thread(target=tokenize)
        holding.start()
        client.start()
        appliance.wait_counters(lambda c: c["drop_ring_full"] > 0)
        ping = ("ip", "netns", "exec", lab.namespace, "ping", "-c", "3", "-i", "0.2", "-W", "2")
        subprocess.run([*ping, SERVER_IP], check=True, capture_output=True, timeout=10)
        with RawStream(lab) as other:
            rep = fill(other, text)
            full.set()
            holding.join()
            for r in held:
                r.release()
            # The window opens for who asks: nobody says so unasked, what was said could be lost.
            while rep.credit == 0:
                while (r := reader.poll()) is not None:
                    r.release()
                other.send(other.poll())
                rep = other.reply()
                assert rep is not None
        while client.is_alive():
            if (r := reader.poll()) is not None:
                r.release()
        assert got == [gpt2.encode(text).tolist()]
    assert appliance.counters()["readers_dropped"] == 0


def test_lost_window_update_is_asked_for(lab, start, gpt2):
    """The ring was full, and is not: the client's own question opens its window again."""
    appliance = start("--ring-size", "64k", "--reader-timeout", FOREVER)
    full, text = threading.Event(), documents()
    with RingReader(appliance.socket) as reader:
        held: list = []
        holding = threading.Thread(target=lambda: held.extend(hold_everything(reader, full)))
        holding.start()
        with lab.call(lambda: Client(SERVER_IP, timeout=20)) as client:
            request = threading.Thread(target=lambda: got.append(client.tokenize(text).tolist()))
            got: list[list[int]] = []
            request.start()
            appliance.wait_counters(lambda c: c["drop_ring_full"] > 0)
            asked = appliance.counters()["rx_packets"]
            appliance.wait_counters(lambda c: c["rx_packets"] > asked + 3)  # and finds no room
            full.set()
            holding.join()
            reader.close()  # all is free, and no packet says so
            request.join()
    assert got == [gpt2.encode(text).tolist()]


def test_early_packets_never_take_the_last_mbuf(lab, start, gpt2):
    """More of them than there are mbufs, all waiting for a packet that is yet to come."""
    appliance = start(
        *("--mbufs", "1024", "--rxd", "128", "--txd", "128", "--fragments", "0"),
        *("--stream-timeout", FOREVER),
    )
    text = documents()[: EARLY * 1000]
    cuts = list(range(1000, len(text), 1000))
    streams = [RawStream(lab) for _ in range(24)]
    try:
        packets = [s.packets(text, cuts) for s in streams]

        # Again and again: on a busy machine most of a burst is lost before it reaches the port.
        deadline = time.monotonic() + 20
        while (counters := appliance.counters())["drop_held"] == 0:
            assert time.monotonic() < deadline, counters
            for s, p in zip(streams, packets, strict=True):
                s.send(*p[1:EARLY])
        served(lab, gpt2)
        for s, p in zip(streams, packets, strict=True):
            s.finish(p)
            assert s.id_list() == gpt2.encode(text).tolist()
    finally:
        for s in streams:
            s.__exit__()


def test_client_that_never_acknowledges_holds_nobody_up(lab, start, gpt2):
    """Its own reply window closes; the ring, and everybody else, go on."""
    appliance = start("--ring-size", "64k", "--stream-timeout", FOREVER, "--side-store", "1M")
    text = documents()[:150_000]
    with RawStream(lab, flags=wire.F_IDS | wire.F_STREAM) as silent:
        rep = fill(silent, text, cut=100)  # a record each
        beyond = silent.packets(text, list(range(100, len(text), 100)))[rep.ack]
        silent.send(beyond)  # it does not care
        appliance.wait_counters(lambda c: c["drop_reply_window"] > 0)
        served(lab, gpt2, documents())  # many times the ring
        # And when it does, it gets all there is for it, from the side store.
        ack = 0
        while ack < rep.total:
            silent.send(silent.poll(ids_ack=ack, ids_end=rep.total))
            assert silent.reply() is not None
            silent.replies()
            ack = silent.contiguous()
        assert silent.id_list() == gpt2.encode(text).tolist()[:ack]
    assert appliance.counters()["side_copied_bytes"] > 0
