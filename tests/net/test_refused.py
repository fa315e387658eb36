# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong is refused with its reason or dropped, counted under its name, and changes
nothing for the next text. One case of each kind, over a wire: tests/unit/app has every rule."""

import google_crc32c
import pytest
from dpdk_tokd import Client, Reason, TokdError, wire
from netlab import SERVER_IP
from raw_client import RawStream, frame, send_frames

TEXT = b"some text of a few words"
WHOLE = {
    "packet": 0,
    "flags": wire.F_FIRST | wire.F_LAST | wire.F_IDS,
    "text_crc": google_crc32c.value(TEXT),
}


def is_drop(counter: str) -> bool:
    return counter.startswith("drop_") and counter != "drop_icmp"


@pytest.fixture
def counted(appliance):
    """Checks at the end of a test that counters rose by so much, and no other drop did. But for
    ICMP: the namespace answers a reply to a socket that is closed already."""
    wanted: dict[str, int] = {}
    before = appliance.counters()
    yield wanted

    def rise(now: dict[str, int]) -> dict[str, int]:
        return {k: now[k] - before[k] for k in now if k in wanted or is_drop(k)}

    def as_wanted(now: dict[str, int]) -> bool:
        return {k: v for k, v in rise(now).items() if v} == {k: v for k, v in wanted.items() if v}

    appliance.wait_counters(as_wanted, 3.0)


@pytest.fixture
def stream(lab, appliance):
    with RawStream(lab) as stream:
        yield stream


@pytest.fixture(autouse=True)
def still_works(lab, appliance, gpt2):
    yield
    with lab.call(lambda: Client(SERVER_IP)) as client:
        assert client.tokenize(TEXT).tolist() == gpt2.encode(TEXT).tolist()


def refused(stream: RawStream, packet: bytes, reason: Reason) -> None:
    stream.send(packet)
    rep = stream.reply()
    assert rep is not None, "no reply"
    assert rep.flags & wire.F_FAIL and rep.reason == reason, rep
    assert (rep.epoch, rep.stream_id) == (stream.epoch, stream.stream_id)


def ignored(stream: RawStream, packet: bytes) -> None:
    stream.send(packet)
    assert stream.replies() == []


def test_other_protocols_are_not_answered(stream, counted):
    counted["drop_magic"] = 2
    ignored(stream, b"GET / HTTP/1.0\r\n\r\n" * 10)
    ignored(stream, stream.data(TEXT, type=wire.REPLY, **WHOLE))


def test_wrong_version_is_refused_in_that_version(stream, counted):
    counted["drop_version"] = 1
    stream.send(stream.data(TEXT, version=255, type=9, **WHOLE))
    rep = stream.reply()
    assert rep is not None and rep.flags == wire.F_FAIL and rep.reason == Reason.VERSION
    assert (rep.version, rep.text_end) == (255, wire.VERSION)  # theirs, and the appliance's
    assert (rep.epoch, rep.stream_id, rep.n_ids) == (stream.epoch, stream.stream_id, 0)


def test_vocabulary_that_is_not_loaded_is_refused(lab, stream, counted, gpt2):
    counted["drop_vocab"] = 2
    wrong = gpt2.checksum ^ 1
    refused(stream, stream.data(TEXT, vocab=wrong, **WHOLE), Reason.VOCAB)
    with lab.call(lambda: Client(SERVER_IP, vocab=wrong)) as client:
        with pytest.raises(TokdError, match=f"VOCAB.*{wrong:#010x}.*--vocab") as e:
            client.tokenize(TEXT)
        assert e.value.reason is Reason.VOCAB


def test_id_used_again_for_another_text_is_refused(stream, counted):
    counted.update(drop_over=1, streams_opened=1)
    stream.finish([stream.data(TEXT, **WHOLE)])
    stream.replies()
    other = TEXT[::-1]
    packet = stream.data(other, **WHOLE | {"text_crc": google_crc32c.value(other)})
    refused(stream, packet, Reason.ID_REUSED)


def test_bad_frame_is_dropped(lab, stream, counted):
    counted["drop_udp_cksum"] = 1
    send_frames(lab, frame(lab, stream.data(TEXT, **WHOLE), udp_checksum=1))


def test_right_frame_is_taken(lab, stream, counted):
    counted["streams_done"] = 1
    send_frames(lab, frame(lab, stream.data(TEXT, **WHOLE)))


@pytest.mark.parametrize("n", range(0, 42, 3))
def test_frame_cut_short_does_no_harm(lab, stream, appliance, n):
    before = appliance.counters()
    cut = frame(lab, stream.data(TEXT, **WHOLE))[: 14 + n]
    send_frames(lab, cut)

    def dropped(now: dict[str, int]) -> bool:
        return sum(now[k] - before[k] for k in now if is_drop(k)) == 1

    appliance.wait_counters(dropped, 3.0)
