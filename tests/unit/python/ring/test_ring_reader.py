# SPDX-License-Identifier: BSD-3-Clause
"""RingReader: what it gives out, and when it lets go of it. The rings and the protocol are the C
library's, and so are their tests (tests/unit/reader/)."""

import gc
import os
import signal
import socket
import threading
import time

import numpy as np
import pytest
import ring_layout as layout
from dpdk_tokd import Reason, RingDropped, RingError, RingReader, RingRefused, TokenRange
from dpdk_tokd._native import libtokd as native
from fake_appliance import INSTANCE, TSC_HZ, VOCAB, FakeAppliance, FakeRing


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "tokd.sock")


@pytest.fixture
def one(path):
    """An appliance with one ring."""
    appliance = FakeAppliance(path, [FakeRing()])
    yield appliance
    appliance.end()


@pytest.fixture
def reader(one, path):
    with RingReader(path, timeout=5) as reader:
        yield reader


def test_header_is_told(reader):
    (info,) = reader.rings
    assert (info.worker, info.lcore, info.vocab) == (0, 1, VOCAB)
    assert (info.tsc_hz, info.instance, info.data_bytes) == (TSC_HZ, INSTANCE, 4096)


def test_ranges_come_as_they_were_published(one, reader):
    r = one.rings[0]
    times = {"t_rx": 3 * TSC_HZ, "t_publish": 3 * TSC_HZ + 2}
    r.publish([5, 6, 7], stream_id=1 << 63, epoch=9, serial=3, flags=layout.REC_FIRST, **times)
    r.publish([8], stream_id=1 << 63, first=3, flags=layout.REC_LAST, text_end=11, vocab=VOCAB)
    a = next(reader)
    assert (a.stream_id, a.epoch, a.serial, a.first) == (1 << 63, 9, 3, 0)
    assert (a.starts, a.last, a.aborted, a.worker, len(a)) == (True, False, False, 0, 3)
    assert (a.t_rx, a.t_publish) == (3 * TSC_HZ, 3 * TSC_HZ + 2)
    assert (a.t_rx_ns, a.t_publish_ns) == (3_000_000_000, 3_000_000_001)
    assert a.tokens.tolist() == [5, 6, 7]
    b = next(reader)
    assert (b.first, b.starts, b.last, b.text_end, b.vocab) == (3, False, True, 11, VOCAB)
    assert b.tokens.tolist() == [8]
    assert reader.poll() is None


def test_an_empty_text_is_a_last_range_without_ids(one, reader):
    one.rings[0].publish([], flags=layout.REC_FIRST | layout.REC_LAST)
    r = next(reader)
    assert r.last and not r.aborted and r.tokens.shape == (0,)


def test_an_aborted_stream_says_why(one, reader):
    one.rings[0].publish([], flags=layout.REC_ABORT, reason=Reason.TIMEOUT)
    r = next(reader)
    assert r.last and r.aborted and r.reason is Reason.TIMEOUT


def test_tokens_are_the_ring_itself_and_read_only(one, reader):
    pos = one.rings[0].publish([1, 2, 3])
    tokens = next(reader).tokens
    assert tokens.dtype == np.uint32 and not tokens.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 9
    at = layout.HDR_BYTES + pos + layout.REC.size
    one.rings[0].memory[at : at + 4] = (77).to_bytes(4, "little")
    assert tokens[0] == 77
    with pytest.raises(ValueError, match="WRITEABLE"):
        tokens.flags.writeable = True


KEYS = {"block_size": 2, "key_scheme": 0, "key_bytes": 8}


def keyed(path: str, **header: int) -> FakeAppliance:
    appliance = FakeAppliance(path, [FakeRing()])
    appliance.rings[0].set_header(**(KEYS | header))
    return appliance


def test_keys_are_the_ring_itself_and_read_only(path):
    appliance = keyed(path)
    with RingReader(path, timeout=5) as reader:
        (info,) = reader.rings
        assert (info.block_size, info.key_scheme) == (2, "llm-d")
        numbers = np.array([1 << 63, 5], np.uint64)
        ring = appliance.rings[0]
        ring.publish([9, 8, 7], first=3, keys=numbers.tobytes(), flags=layout.REC_KEYS)
        ring.publish([6], first=6)
        r = next(reader)
        assert (r.first_block, r.block_size, r.tokens.tolist()) == (1, 2, [9, 8, 7])
        keys = r.keys
        assert keys.tolist() == numbers.tolist() and keys.dtype == np.uint64
        assert not keys.flags.owndata and not keys.flags.writeable
        assert next(reader).keys.shape == (0,)
        with pytest.raises(RingError, match="released"):
            _ = r.keys
    appliance.end()


def test_digests_are_rows_of_bytes(path):
    appliance = keyed(path, key_scheme=1, key_bytes=32)
    with RingReader(path, timeout=5) as reader:
        appliance.rings[0].publish([1, 2], keys=bytes(range(32)), flags=layout.REC_KEYS)
        appliance.rings[0].publish([3])
        assert next(reader).keys.tolist() == [list(range(32))]
        assert next(reader).keys.shape == (0, 32)
    appliance.end()


def test_without_block_keys_there_is_nothing_to_ask_for(one, reader):
    one.rings[0].publish([1])
    with pytest.raises(RingError, match="--block-keys"):
        _ = next(reader).keys
    (info,) = reader.rings
    assert (info.block_size, info.key_scheme) == (0, None)


def test_going_on_releases_the_range_before(one, reader):
    r = one.rings[0]
    r.publish([1])
    second = r.publish([2])
    a = next(reader)
    assert one.cursor(0) == 0
    next(reader)
    assert one.cursor(0) == second
    with pytest.raises(RingError, match="released"):
        _ = a.tokens
    assert reader.poll() is None
    assert one.cursor(0) == r.head


def test_iteration_waits_for_what_comes(one, reader):
    def publish_later():
        for i in range(20):
            time.sleep(0.002)
            one.rings[0].publish([i], flags=layout.REC_LAST if i == 19 else 0)

    thread = threading.Thread(target=publish_later)
    thread.start()
    got = []
    for r in reader:
        got += r.tokens.tolist()
        if r.last:
            break
    thread.join()
    assert got == list(range(20))


def test_iteration_gives_up_after_the_timeout(one, path):
    with RingReader(path, timeout=0.05) as reader:
        with pytest.raises(TimeoutError):
            next(reader)
        one.rings[0].publish([1])
        assert next(reader).tokens.tolist() == [1]


def test_iteration_ends_with_the_appliance_after_all_was_read(path):
    r = FakeRing()
    appliance = FakeAppliance(path, [r])
    with RingReader(path) as reader:
        r.publish([1])
        r.publish([2])
        appliance.end()
        os.unlink(path)
        assert [given.tokens.tolist() for given in reader] == [[1], [2]]
        assert reader.closed


def test_an_appliance_that_was_started_anew_is_not_the_one_that_ended(path):
    """Somebody answers at the path again: the reader's own appliance has ended all the same."""
    rings = [FakeRing()]
    appliance = FakeAppliance(path, rings)
    with RingReader(path) as reader:
        rings[0].publish([1])
        appliance.end()
        os.unlink(path)
        another = FakeAppliance(path, [FakeRing()])
        assert [given.tokens.tolist() for given in reader] == [[1]]
        assert reader.closed
        another.end()


def test_a_range_released_after_close_does_nothing(one, path):
    with RingReader(path) as reader:
        one.rings[0].publish([1])
        given = next(reader).hold()
    given.release()


def test_a_dropped_reader_is_told_what_it_lost(one, reader):
    r = one.rings[0]
    r.publish([1])
    next(reader).hold()
    assert reader.poll() is None
    one.drop_readers()
    r.publish([2])
    next(reader)
    with pytest.raises(RingDropped, match="kept the token ring of worker 0 full") as e:
        while True:
            reader.poll()
    assert e.value.lost_bytes == r.head and not e.value.overwritten


def test_ids_overwritten_while_they_were_used_are_told_at_release(one, reader):
    r = one.rings[0]
    r.publish([1])
    given = next(reader).hold()
    one.drop_readers()
    r.set_tail(64)
    with pytest.raises(RingDropped) as e:
        given.release()
    assert e.value.overwritten


def test_views_outlive_the_reader(one, path):
    one.rings[0].publish([])
    with RingReader(path) as reader:
        one.rings[0].publish([4, 5])
        tokens = next(reader).tokens
    gc.collect()
    assert tokens.tolist() == [4, 5]


def test_a_range_may_be_released_by_another_thread(one, reader):
    for i in range(1000):
        one.rings[0].publish([i])
        given = next(reader).hold()
        thread = threading.Thread(target=given.release)
        thread.start()
        thread.join()
    assert one.cursor(0) == one.rings[0].head


def test_a_signal_ends_waiting_and_attaching(one, path, tmp_path):
    main = threading.main_thread().ident
    silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    silent.bind(str(tmp_path / "silent"))
    silent.listen()
    with RingReader(path) as reader, silent:
        for wait in (lambda: next(reader), lambda: RingReader(str(tmp_path / "silent"))):
            timer = threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT])
            begun = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                timer.start()
                wait()
            assert time.monotonic() - begun < 2
            timer.join()


def test_signals_do_not_prolong_attaching(tmp_path):
    handled = 0

    def count(*_: object) -> None:
        nonlocal handled
        handled += 1
        assert handled < 2000

    silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    silent.bind(str(tmp_path / "silent"))
    silent.listen()
    old = signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        with silent, pytest.raises(TimeoutError, match="no answer to the attach request in time"):
            native.Reader(str(tmp_path / "silent"), False, 300, TokenRange)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert handled > 0


def test_closing_detaches(one, path):
    reader = RingReader(path)
    while not one.readers:
        time.sleep(0.001)
    reader.close()
    one.readers[0].settimeout(5)
    assert one.readers[0].recv(1) == b""
    with pytest.raises(RingError, match="closed"):
        reader.poll()


def test_descriptors_are_not_left_open(one, path):
    def open_fds() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    RingReader(path).close()
    before = open_fds()
    for _ in range(5):
        with RingReader(path):
            pass
    one.hang_up()
    assert open_fds() <= before


def test_no_socket_is_an_os_error(path):
    with pytest.raises(FileNotFoundError, match=f"{path}: No such file.*is dpdk-tokd running"):
        RingReader(path)
    with pytest.raises(OSError, match="a{100}.*: longer than 107 bytes: is it the --socket of a"):
        RingReader("a" * 200)


def test_a_socket_that_nobody_serves_is_an_os_error(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
    with pytest.raises(ConnectionRefusedError, match=f"{path}: Connection refused: .*start it"):
        RingReader(path)


def test_silence_ends_with_the_path(path, monkeypatch):
    monkeypatch.setattr("dpdk_tokd.ring.reader.ATTACH_TIMEOUT_S", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
        s.listen()
        with pytest.raises(TimeoutError, match=f"{path}: no answer to the attach request"):
            RingReader(path)


def test_an_appliance_that_closes_without_an_answer_has_refused(one, path):
    one.packed_reply = lambda: b""
    with pytest.raises(RingRefused, match=f"{path}: closed without an answer: try again"):
        RingReader(path)


def test_refusal_gives_the_reason_in_words(one, path):
    one.reply |= {"n_rings": 0, "message": b"too many readers: detach one first"}
    one.fds = []
    with pytest.raises(RingError, match="too many readers: detach one first"):
        RingReader(path)


def test_what_is_not_as_ring_h_says_is_a_ring_error(one, path):
    """tests/unit/reader/test_hostile.c has every way to be wrong."""
    one.rings[0].set_header(version=2)
    with pytest.raises(RingError, match="token ring 0: version 2"):
        RingReader(path)


def test_records_of_other_kinds_are_skipped(one, reader):
    for kind in (3, 99):  # text of decoded ids, and what is to come
        one.rings[0].publish([1, 2, 3], kind=kind)
    one.rings[0].publish([4])
    assert next(reader).tokens.tolist() == [4]


def test_an_unknown_reason_is_an_error_when_asked_for(one, reader):
    one.rings[0].publish([], flags=layout.REC_ABORT, reason=99)
    r = next(reader)
    assert r.aborted and "99" in repr(r)
    with pytest.raises(RingError, match="unknown reason 99"):
        _ = r.reason
