# SPDX-License-Identifier: BSD-3-Clause
"""A reader and the next dpdk-tokd at the same path."""

import os
import threading
import time

import pytest
import ring_layout as layout
from dpdk_tokd import CutStream, Lost, RingDropped, RingError, RingReader, RingRefused
from fake_appliance import FakeAppliance, FakeRing

FIRST, LAST, ABORT = layout.REC_FIRST, layout.REC_LAST, layout.REC_ABORT


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "tokd.sock")


@pytest.fixture
def begin(path):
    """Starts an appliance with one ring; the one before it must have ended."""
    running = []

    def begin(instance: int, n_rings: int = 1) -> FakeAppliance:
        running.append(FakeAppliance(path, [FakeRing(w) for w in range(n_rings)], instance))
        return running[-1]

    yield begin
    running[-1].end()


def end(appliance: FakeAppliance, path: str) -> None:
    appliance.end()
    os.unlink(path)


def attached_to(reader: RingReader, instance: int) -> None:
    deadline = time.monotonic() + 5
    while reader.instance != instance or not reader.attached:
        assert reader.poll() is None
        assert time.monotonic() < deadline


def test_reader_goes_on_with_the_next_appliance(begin, path):
    first = begin(1)
    with RingReader(path, timeout=5, reconnect=True) as reader:
        first.rings[0].publish([1], flags=FIRST | LAST)
        first.rings[0].publish([2], flags=FIRST | LAST)
        end(first, path)
        got = [next(reader), next(reader)]  # all that the old one published comes first
        assert [r.instance for r in got] == [1, 1]
        assert reader.poll() is None
        assert not reader.attached and not reader.closed
        second = begin(2, n_rings=2)
        attached_to(reader, 2)
        assert len(reader.rings) == 2
        second.rings[1].publish([3], flags=FIRST | LAST)
        r = next(reader)
        assert (r.instance, r.tokens.tolist()) == (2, [3])
        (restart,) = reader.restarts
        assert (restart.old_instance, restart.new_instance, restart.cut) == (1, 2, ())


def test_streams_open_at_the_switch_are_told_as_cut(begin, path):
    first = begin(1)
    with RingReader(path, timeout=5, reconnect=True) as reader:
        ring = first.rings[0]
        ring.publish([1, 2], stream_id=10, serial=0, epoch=5, flags=FIRST)
        ring.publish([1], stream_id=11, serial=1, flags=FIRST)
        ring.publish([1], stream_id=12, serial=2, flags=FIRST)
        ring.publish([3], stream_id=10, serial=0, epoch=5, first=2)
        ring.publish([], stream_id=11, serial=1, first=1, flags=LAST)
        ring.publish([], stream_id=12, serial=2, first=1, flags=ABORT)
        ring.publish([7], stream_id=13, serial=3, first=100)  # begun before the reader attached
        for _ in range(7):
            next(reader)
        end(first, path)
        assert reader.poll() is None
        second = begin(2)
        attached_to(reader, 2)
        assert reader.restarts[0].cut == (
            CutStream(worker=0, serial=0, stream_id=10, epoch=5, end=3),
            CutStream(worker=0, serial=3, stream_id=13, epoch=0, end=101),
        )
        second.rings[0].publish([1], serial=0, flags=FIRST)  # another stream: another instance
        next(reader)
        end(second, path)
        reader.poll()
        begin(3)
        attached_to(reader, 3)
        assert [c.stream_id for c in reader.restarts[1].cut] == [7]


def test_what_is_held_of_the_old_appliance_stays_readable(begin, path):
    first = begin(1)
    with RingReader(path, timeout=5, reconnect=True) as reader:
        first.rings[0].publish([4, 5, 6])
        held = next(reader).hold()
        end(first, path)
        assert reader.poll() is None
        begin(2)
        attached_to(reader, 2)
        assert held.tokens.tolist() == [4, 5, 6]
        assert held.instance == 1 and held.intact
        assert held.release()


def test_iteration_waits_for_the_next_appliance(begin, path):
    first = begin(1)
    with RingReader(path, timeout=5, reconnect=True) as reader:
        first.rings[0].publish([1])
        next(reader)

        def restart() -> None:
            time.sleep(0.1)
            end(first, path)
            time.sleep(0.2)
            second = begin(2)
            while not second.readers:
                time.sleep(0.001)
            time.sleep(0.05)
            second.rings[0].publish([9])

        thread = threading.Thread(target=restart)
        thread.start()
        r = next(reader)
        thread.join()
        assert (r.instance, r.tokens.tolist()) == (2, [9])


def test_waiting_for_the_next_appliance_has_the_time_limit(begin, path):
    first = begin(1)
    with RingReader(path, timeout=0.2, reconnect=True) as reader:
        end(first, path)
        with pytest.raises(TimeoutError, match=r"no appliance within 0.2 s \(.*No such file"):
            next(reader)
        begin(2)
        attached_to(reader, 2)


def test_one_that_refuses_is_asked_again(begin, path):
    first = begin(1)
    with RingReader(path, timeout=5, reconnect=True) as reader:
        end(first, path)
        second = begin(2)
        good, second.fds = second.fds, []
        second.reply |= {"n_rings": 0, "message": b"too many connections at once"}
        deadline = time.monotonic() + 5
        while not second.readers and time.monotonic() < deadline:
            reader.poll()
        assert second.readers and reader.instance == 1
        second.fds, second.reply["n_rings"] = good, 1
        attached_to(reader, 2)
    with pytest.raises(RingRefused):
        second.fds, second.reply["n_rings"] = [], 0
        RingReader(path, reconnect=True)  # but the first time it is an error


def test_being_dropped_is_no_restart(begin, path):
    first = begin(1)
    with RingReader(path, timeout=1, reconnect=True) as reader:
        first.drop_readers()
        with pytest.raises(RingDropped):
            next(reader)
        assert reader.restarts == []


def test_without_reconnect_the_end_is_the_end_even_if_the_next_one_is_there(begin, path):
    first = begin(1)
    with RingReader(path, timeout=5) as reader:
        first.rings[0].publish([1])
        end(first, path)
        begin(2)  # at once: it must not be taken for having been dropped
        assert [r.tokens.tolist() for r in reader] == [[1]]
        assert reader.closed and not reader.attached
    with pytest.raises(RingError, match="closed"):
        _ = reader.instance


def test_a_tap_keeps_what_it_lost_of_the_old_appliance(begin, path):
    first = begin(1)
    with RingReader(path, timeout=5, tap=True, reconnect=True) as reader:
        ring = first.rings[0]
        ring.publish([1], serial=1, flags=FIRST)
        next(reader)
        ring.publish([2], serial=2, flags=FIRST)
        ring.publish([3], serial=3, flags=FIRST)
        ring.set_tail(256)  # and with it went, perhaps, the end of the first
        assert next(reader).serial == 3
        end(first, path)
        reader.poll()
        begin(2)
        attached_to(reader, 2)
        (restart,) = reader.restarts
        assert [c.serial for c in restart.cut] == [3]
        assert restart.lost == (Lost(0, overruns=1, bytes=256, ranges=1),)  # one skipped, one torn
        assert reader.lost == [Lost(0)]
