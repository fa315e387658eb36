# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong is refused with its reason or dropped, counted under its name, and changes
nothing for the next text."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    "packet",
    [b"", b"x", b"TOKD", b"GET / HTTP/1.0\r\n\r\n" * 10, b"\0" * 64, b"\xff" * 1400],
    ids=["empty", "one byte", "only magic", "http", "zeros", "ones"],
)
def test_other_protocols_are_not_answered(stream, counted, packet):
    counted["drop_magic"] = 1
    ignored(stream, packet)


def test_wrong_magic_is_not_answered(stream, counted):
    counted["drop_magic"] = 1
    ignored(stream, stream.data(TEXT, magic=wire.MAGIC + 1, **WHOLE))


@pytest.mark.parametrize("type", [0, wire.REPLY, 4, 255])
def test_wrong_type_is_not_answered(stream, counted, type):
    counted["drop_magic"] = 1
    ignored(stream, stream.data(TEXT, type=type, **WHOLE))


@pytest.mark.parametrize(("version", "type"), [(0, 1), (2, 1), (255, 9)])
def test_wrong_version_is_refused_in_that_version(stream, counted, version, type):
    counted["drop_version"] = 1
    stream.send(stream.data(TEXT, version=version, type=type, **WHOLE))
    rep = stream.reply()
    assert rep is not None and rep.flags == wire.F_FAIL and rep.reason == Reason.VERSION
    assert (rep.version, rep.text_end) == (version, wire.VERSION)  # theirs, and the appliance's
    assert (rep.epoch, rep.stream_id, rep.n_ids) == (stream.epoch, stream.stream_id, 0)


def test_a_reply_of_another_version_is_not_answered(stream, counted):
    counted["drop_magic"] = 1
    ignored(stream, stream.data(TEXT, version=2, type=wire.REPLY, **WHOLE))


@pytest.mark.parametrize("length", [0, len(TEXT) - 1, len(TEXT) + 1, 1 << 31, 0xFFFFFFFF])
def test_wrong_length_is_refused(stream, counted, length):
    counted["drop_length"] = 1
    refused(stream, stream.data(TEXT, length=length, **WHOLE), Reason.LENGTH)


def test_misplaced_first_is_refused(stream, counted):
    counted["drop_length"] = 2
    refused(stream, stream.data(TEXT, packet=0, flags=wire.F_LAST), Reason.LENGTH)
    refused(stream, stream.data(TEXT, packet=1, flags=wire.F_FIRST), Reason.LENGTH)


def test_text_in_a_poll_is_refused(stream, counted):
    counted["drop_length"] = 2
    refused(stream, stream.data(TEXT, type=wire.POLL), Reason.LENGTH)
    refused(stream, stream.poll(length=4), Reason.LENGTH)


def test_packet_beyond_the_last_is_refused(stream, counted):
    counted.update(drop_length=1, streams_failed=1)
    packets = stream.packets(TEXT * 100, [700, 1400])
    stream.send(packets[0], packets[2])
    stream.replies()
    refused(stream, stream.data(TEXT, packet=3, offset=2400), Reason.LENGTH)


def test_wrong_offset_is_refused(stream, counted):
    counted.update(drop_offset=1, streams_failed=1)
    stream.send(stream.data(TEXT, packet=0, flags=wire.F_FIRST))
    refused(stream, stream.data(TEXT, packet=1, offset=len(TEXT) + 1), Reason.OFFSET)


def test_text_beyond_the_limit_is_refused(stream, counted):
    counted["drop_too_long"] = 1
    refused(stream, stream.data(TEXT, packet=9, offset=(16 << 20) - 1), Reason.TEXT_TOO_LONG)


def test_offset_that_would_wrap_is_refused(stream, counted):
    counted["drop_too_long"] = 1
    refused(stream, stream.data(TEXT, packet=9, offset=0xFFFFFFF8), Reason.TEXT_TOO_LONG)


def test_wrong_text_crc_is_refused(stream, counted):
    counted["streams_failed"] = 1
    refused(stream, stream.data(TEXT, **WHOLE | {"text_crc": 1}), Reason.TEXT_CRC)


def test_vocabulary_that_is_not_loaded_is_refused(lab, stream, counted, gpt2):
    counted["drop_vocab"] = 2
    wrong = gpt2.checksum ^ 1
    refused(stream, stream.data(TEXT, vocab=wrong, **WHOLE), Reason.VOCAB)
    with lab.call(lambda: Client(SERVER_IP, vocab=wrong)) as client:
        with pytest.raises(TokdError, match=f"VOCAB.*{wrong:#010x}.*--vocab") as e:
            client.tokenize(TEXT)
        assert e.value.reason is Reason.VOCAB


def test_poll_for_no_stream_is_refused(stream, counted):
    counted["drop_unknown"] = 1
    refused(stream, stream.poll(), Reason.UNKNOWN)


def test_late_packet_of_no_stream_is_refused(stream, counted):
    counted["drop_unknown"] = 1
    late = stream.data(TEXT, packet=wire.WINDOW, offset=90_000)
    refused(stream, late, Reason.UNKNOWN)


def test_packet_beyond_the_window_is_dropped(stream, counted):
    counted["drop_window"] = 1
    stream.send(stream.data(TEXT, packet=0, flags=wire.F_FIRST))
    stream.send(stream.data(TEXT, packet=1 + wire.WINDOW, offset=90_000))
    assert [rep.ack for rep in stream.replies()] == [1]


def test_text_sent_again_gets_its_stored_answer(stream, counted, gpt2):
    counted.update(drop_over=1, streams_opened=1)
    packet = stream.data(TEXT, **WHOLE)
    first = stream.finish([packet])
    stream.send(packet)
    again = stream.replies()[-1]
    assert again.flags & wire.F_DONE
    assert (again.total, again.ids_crc) == (first.total, first.ids_crc)
    assert stream.id_list() == gpt2.encode(TEXT).tolist()


def test_id_used_again_for_another_text_is_refused(stream, counted):
    counted.update(drop_over=1, streams_opened=1)
    stream.finish([stream.data(TEXT, **WHOLE)])
    stream.replies()
    other = TEXT[::-1]
    packet = stream.data(other, **WHOLE | {"text_crc": google_crc32c.value(other)})
    refused(stream, packet, Reason.ID_REUSED)


def test_duplicate_packet_is_counted_and_acknowledged(stream, counted):
    counted["rx_duplicate"] = 1
    packet = stream.data(TEXT, packet=0, flags=wire.F_FIRST)
    stream.send(packet, packet)
    assert [rep.ack for rep in stream.replies()] == [1]


BAD_FRAMES = {
    "drop_ip_cksum": {"ip_checksum": 1},
    "drop_udp_cksum": {"udp_checksum": 1},
    "drop_ip_dst": {"dst_ip": 0x0A630007},
    "drop_ip_proto": {"protocol": 6},
    "drop_udp_port": {"dst_port": 9001},
    "drop_ether": {"ether_type": 0x88B5},
}


@pytest.mark.parametrize("counter", BAD_FRAMES)
def test_bad_frame_is_dropped(lab, appliance, stream, counted, counter):
    counted[counter] = 1
    send_frames(lab, frame(lab, stream.data(TEXT, **WHOLE), **BAD_FRAMES[counter]))


@pytest.mark.parametrize(
    "wrong",
    [{"ihl": 4}, {"ihl": 15, "total_length": 40}, {"total_length": 4000}, {"total_length": 10}],
    ids=str,
)
def test_bad_ip_header_is_dropped(lab, stream, counted, wrong):
    counted["drop_ip_header"] = 1
    send_frames(lab, frame(lab, stream.data(TEXT, **WHOLE), **wrong))


@pytest.mark.parametrize("length", [0, 7, 20, 4000])
def test_bad_udp_length_is_dropped(lab, stream, counted, length):
    counted["drop_udp_length"] = 1
    send_frames(lab, frame(lab, stream.data(TEXT, **WHOLE), udp_length=length))


def test_right_frame_is_taken(lab, stream, counted):
    counted["streams_done"] = 1
    send_frames(lab, frame(lab, stream.data(TEXT, **WHOLE)))


def test_frame_without_udp_checksum_is_taken(lab, stream, counted):
    """RFC 768: zero means that none was made."""
    counted["streams_done"] = 1
    right = frame(lab, stream.data(TEXT, **WHOLE))
    send_frames(lab, right[:40] + b"\0\0" + right[42:])


@pytest.mark.parametrize("n", range(0, 42, 3))
def test_frame_cut_short_does_no_harm(lab, stream, appliance, n):
    before = appliance.counters()
    cut = frame(lab, stream.data(TEXT, **WHOLE))[: 14 + n]
    send_frames(lab, cut)

    def dropped(now: dict[str, int]) -> bool:
        return sum(now[k] - before[k] for k in now if is_drop(k)) == 1

    appliance.wait_counters(dropped, 3.0)
