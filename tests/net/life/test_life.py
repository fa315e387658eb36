# SPDX-License-Identifier: BSD-3-Clause
"""The appliance as a process: its time limits, its tables, and its end."""

import signal
from contextlib import ExitStack

import pytest
from dpdk_tokd import Client, Reason, RingReader, wire
from netlab import SERVER_IP
from raw_client import RawStream


def test_full_stream_table_refuses_and_the_client_tries_again(lab, start, gpt2):
    appliance = start(
        "--streams", "2", "--stream-timeout", "400"
    )  # with more, the last want a cookie
    with ExitStack() as stack:
        for _ in range(2):
            stream = stack.enter_context(RawStream(lab))
            stream.send(stream.data(b"never ends", packet=0, flags=wire.F_FIRST))
        appliance.wait_counters(lambda c: c["streams_opened"] == 2)
        with lab.call(lambda: Client(SERVER_IP)) as client:
            assert client.tokenize("a third").tolist() == gpt2.encode("a third").tolist()
            assert client.resends > 0
    assert appliance.counters()["drop_table_full"] > 0


def test_restarted_appliance_serves_an_old_client(lab, start, gpt2):
    first = start()
    with lab.call(lambda: Client(SERVER_IP)) as client:
        client.tokenize("before")
        assert first.stop() == 0
        start()
        assert client.tokenize("after").tolist() == gpt2.encode("after").tolist()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_drains_and_prints_counts(lab, start, gpt2, number):
    appliance = start("--drain", "5000")
    text = b"begun before the signal, "
    rest = b"finished after it"
    with RawStream(lab) as stream, RawStream(lab) as late:
        packets = stream.packets(text + rest, [len(text)])
        stream.send(packets[0])
        appliance.wait_counters(lambda c: c["streams_opened"] == 1)
        appliance.send_signal(number)
        appliance.wait_for("draining")
        late.send(*late.packets(b"too late"))
        rep = late.reply()
        assert rep is not None and rep.reason == Reason.SHUTDOWN
        assert appliance.running
        stream.finish(packets)
        assert stream.id_list() == gpt2.encode(text + rest).tolist()
    assert appliance.wait(10) == 0
    log = appliance.said()
    for counter, value in (("streams_done", 1), ("drop_shutdown", 1), ("ids", len(stream.ids))):
        assert f"{counter} {value} " in " ".join(log.split()) + " ", log


def test_signal_does_not_wait_for_texts_that_never_end(lab, start):
    appliance = start("--drain", "300")
    with RingReader(appliance.socket, timeout=5) as reader, RawStream(lab) as stream:
        stream.send(stream.data(b"never ends", packet=0, flags=wire.F_FIRST))
        appliance.wait_counters(lambda c: c["streams_opened"] == 1)
        assert appliance.stop() == 0
        rep = stream.replies()[-1]
        assert rep.flags & wire.F_FAIL and rep.reason == Reason.SHUTDOWN
        reasons = [r.reason for r in reader]  # ends with the appliance
        assert reasons[-1] is Reason.SHUTDOWN
