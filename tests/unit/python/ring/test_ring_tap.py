# SPDX-License-Identifier: BSD-3-Clause
"""A tap is not waited for: it sees what stands, and says what it lost."""

import pytest
import ring_layout as layout
from dpdk_tokd import Lost, RingReader
from fake_appliance import FakeAppliance, FakeRing

RECORD = 64 + 4 * 48  # bytes of a record of 48 ids: 16 of them fill the ring


@pytest.fixture
def one(tmp_path):
    appliance = FakeAppliance(str(tmp_path / "tokd.sock"), [FakeRing()])
    yield appliance
    appliance.end()


@pytest.fixture
def tap(one, tmp_path):
    with RingReader(str(tmp_path / "tokd.sock"), timeout=5, tap=True) as tap:
        yield tap


def publish(ring: FakeRing, n: int) -> None:
    """`n` records of 48 ids; the tail goes on as the writer's does."""
    for _ in range(n):
        ring.set_tail(max(0, ring.head + RECORD - ring.data_bytes))
        ring.publish([ring.head // RECORD] * 48)


def test_a_tap_asks_for_no_cursor(one, tap):
    mode = layout.MODE_TAP
    asked = layout.ATTACH_REQ.pack(layout.ATTACH_MAGIC, layout.VERSION, mode, 0)
    assert one.request == asked
    publish(one.rings[0], 2)
    assert [next(tap).tokens[0] for _ in range(2)] == [0, 1]
    assert tap.poll() is None
    assert one.cursor(0) == 0


def test_ids_overwritten_while_they_were_used_are_told(one, tap):
    ring = one.rings[0]
    publish(ring, 2)
    given = next(tap).hold()
    assert given.tokens[0] == 0 and given.intact
    publish(ring, 15)
    assert given.tokens[0] == 16 and not given.intact
    assert given.release() is False
    assert tap.lost == [Lost(worker=0, overruns=0, bytes=RECORD, ranges=1)]
    assert given.release() is True  # a second call does nothing
    assert tap.lost[0].ranges == 1
    next(tap)
    publish(ring, 20)
    next(tap)  # released by going on, which raises nothing and counts
    assert tap.lost[0].ranges == 2
