# SPDX-License-Identifier: BSD-3-Clause
"""`Client` and `AsyncClient` against an appliance that a test scripts, over real sockets.

The protocol is the C library's, and so are its tests (tests/unit/client/); here is what Python
makes of it: arrays, exceptions, threads, signals, and the event loop.
"""

import asyncio
import gc
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import google_crc32c
import numpy as np
import pytest
from appliance import until
from dpdk_tokd import AsyncClient, Client, Reason, TokdError, wire
from dpdk_tokd._native import libtokd as native
from dpdk_tokd.client import aio
from text_appliance import Appliance, ids_of

TEXTS = [f"text {i}".encode() for i in range(1000)]


@pytest.fixture
def silent() -> Iterator[Appliance]:
    """One that answers when the test says so."""
    one = Appliance()
    one.socket.setblocking(False)
    yield one
    one.stop()


def test_ids_are_an_array_of_the_callers_own(appliance: Appliance, client: Client) -> None:
    texts = ("", "text", b"text", bytearray(b"text"), memoryview(b"text"), "naïve")
    for text in texts:
        ids = client.tokenize(text)
        wanted = ids_of(text.encode() if isinstance(text, str) else bytes(text))
        assert ids.dtype == np.uint32 and ids.tolist() == wanted.tolist()
    ids[:] = 7
    gc.collect()
    assert ids.tolist() == [7] * 6
    assert client.server_vocab == 5
    # Some, if the appliance was off its CPU.
    until(lambda: appliance.data == len(texts) + client.retransmits)


def test_what_cannot_be_sent_is_a_value_error(client: Client) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        client.tokenize("\ud800")
    for wrong in (0, -1, 86401, float("nan"), float("inf")):
        with pytest.raises(
            ValueError, match="^timeout: .*: expected seconds above 0, at most 86400$"
        ):
            Client("127.0.0.1", timeout=wrong)
    for vocab in (-1, 1 << 32):
        with pytest.raises(
            ValueError, match=f"^vocab: {vocab}: expected a number from 0 to 4294967295$"
        ):
            Client("127.0.0.1", vocab=vocab)
    for mtu in (-1, 575, 65536):
        with pytest.raises(ValueError, match="^mtu( = |: )"):
            Client("127.0.0.1", mtu=mtu)
    with pytest.raises(ValueError, match="^port: 0: expected a number from 1 to 65535$"):
        Client("127.0.0.1", 0)
    with pytest.raises(ValueError, match="^in_flight: 0: expected a number from 1 to"):
        client.tokenize_many([], in_flight=0)


@pytest.mark.parametrize("wrong", [5, None, ["a"], np.array([1]), np.zeros((2, 2), "u1")])
def test_what_is_no_text_is_a_type_error(client: Client, wrong: Any) -> None:
    """An array of ids is memory, too, whose bytes must not pass for text."""
    match = f"text: expected str, bytes or another buffer of bytes, got {type(wrong).__name__}"
    for call in (client.tokenize, lambda wrong: next(iter(client.stream(wrong)))):
        with pytest.raises(TypeError, match=match):
            call(wrong)
    with pytest.raises(TypeError, match=match) as caught:
        client.tokenize_many(["a", wrong])
    assert caught.value.__notes__ == ["text 1 of the batch"]
    with pytest.raises(TypeError):
        client.generate(wrong, 1)
    with pytest.raises(TypeError, match="^texts: expected a list of texts, got one text$"):
        client.tokenize_many("ab")


def test_text_of_ids(appliance: Appliance, client: Client) -> None:
    seen: list[int] = []
    appliance.reply = lambda q, ids: seen.append(q.flags) or appliance.decoded(q, ids)
    assert client.detokenize([]) == ""
    assert client.detokenize([72, 228, 128512]) == "Hä😀"
    assert client.detokenize(np.array([0x4E2D] * 300, np.int64)) == "中" * 300
    assert client.detokenize((65,), skip_special_tokens=True) == "A"
    plain = wire.F_FIRST | wire.F_LAST | wire.F_IDS | wire.F_DECODE
    assert set(seen) == {plain, plain | wire.F_SKIP_SPECIAL}
    for wrong in ([-1], [1 << 32], [[1]], ["a"]):
        with pytest.raises(ValueError, match="ids: "):
            client.detokenize(wrong)  # type: ignore[arg-type]


def test_an_unknown_id_is_named(appliance: Appliance, client: Client) -> None:
    appliance.reply = lambda q, ids: appliance.done(q, b"", flags=wire.F_FAIL,
                                                    reason=Reason.ID, text_end=8)  # fmt: skip
    with pytest.raises(TokdError, match=r"ID \(19\) at index 2: an id is not in") as e:
        client.detokenize([1, 2, 3])
    assert e.value.reason is Reason.ID


async def test_text_of_ids_as_it_comes(appliance: Appliance) -> None:
    def reply(req: wire.Req, ids: bytes) -> list[bytes]:
        (whole,) = appliance.decoded(req, ids)
        (head,) = appliance.decoded(req, ids[:-4], flags=wire.F_DECODE, ack=0)
        return [head, whole]

    appliance.reply = reply
    async with AsyncClient("127.0.0.1", appliance.port) as client:
        pieces = [piece async for piece in client.detokenize_stream([228, 8364, 128512])]
        assert pieces in (["ä€", "😀"], ["ä€😀"])  # both replies may come at once
        assert [piece async for piece in client.detokenize_stream([])] == []
        assert await client.detokenize([228, 8364, 128512]) == "ä€😀"


@pytest.mark.parametrize("in_flight", [1, 7, 5000])
def test_many_in_the_order_of_the_texts(client: Client, in_flight: int) -> None:
    got = client.tokenize_many(iter(TEXTS), in_flight)
    assert [bytes(ids.astype("u1")) for ids in got] == TEXTS
    assert client._client.pending == 0


def test_texts_of_many_may_come_of_the_client_itself(client: Client) -> None:
    texts = (client.tokenize(text).astype("u1").tobytes() for text in TEXTS[:50])
    assert [bytes(ids.astype("u1")) for ids in client.tokenize_many(texts, 3)] == TEXTS[:50]


def test_the_first_that_fails_ends_many(appliance: Appliance, client: Client) -> None:
    done = appliance.done
    appliance.reply = lambda q, t: appliance.fail(q, 10) if t == TEXTS[5] else done(q, t)
    with pytest.raises(TokdError, match="UTF8"):
        client.tokenize_many(TEXTS, 4)
    assert client._client.pending == 0 and appliance.data < len(TEXTS)


def test_more_ids_than_bytes(appliance: Appliance, client: Client) -> None:
    """A normalizer may make thirty characters of one: the text is sent again, with more room."""
    ids = ids_of(b"x" * 300).tobytes()
    crc = google_crc32c.value(ids)
    appliance.reply = lambda q, t: [
        wire.REP.pack(*wire.REP.unpack(reply)[:11], 300, *wire.REP.unpack(reply)[12:]) + ids
        for reply in appliance.done(q, t, n_ids=0, total=300, ids_crc=crc)
    ]
    assert client.tokenize("short").tolist() == [ord("x")] * 300
    pieces = list(client.stream("short"))
    assert len(pieces) == 1 and len(pieces[0]) == 300
    # What a reply says there is of ids is believed within reason.
    appliance.reply = lambda q, t: appliance.done(q, t, flags=0, n_ids=0, total=(1 << 32) - 1)
    with pytest.raises(TokdError, match=r"4294967295 ids or more, but max_ids is \d{4}:"):
        client.tokenize("short")


@pytest.mark.parametrize("reason", [*set(Reason) - {8, 12, 14, 16}, len(Reason), 99])
def test_a_refusal_has_its_reason(appliance: Appliance, client: Client, reason: int) -> None:
    """By the name that it has in C. (EXPIRED, BUSY, UNKNOWN, VALIDATE: the text is sent again.)"""
    known = reason in set(Reason)
    name = Reason(reason).name if known else "unknown reason"
    appliance.reply = lambda req, text: appliance.fail(req, reason)
    with pytest.raises(TokdError, match=f":{appliance.port}: {name} \\({int(reason)}\\)") as e:
        client.tokenize("text")
    assert e.value.reason is (Reason(reason) if known else Reason.NONE)
    appliance.reply = appliance.done
    assert len(client.tokenize("text")) == 4


def test_a_stream_that_is_sent_again_gives_each_id_once(
    appliance: Appliance, client: Client
) -> None:
    def reply(req: wire.Req, text: bytes) -> list[bytes]:
        if appliance.data > 1:
            return appliance.done(req, text)
        half = appliance.done(req, text, flags=0, n_ids=len(text) // 2)
        return half + appliance.fail(req, Reason.EXPIRED)

    appliance.reply = reply
    with Client("127.0.0.1", appliance.port, stream=True) as streamed:
        assert bytes(streamed.tokenize("a longer text").astype("u1")) == b"a longer text"
    appliance.data = 0
    pieces = list(client.stream("a longer text"))
    assert b"".join(bytes(ids.astype("u1")) for ids in pieces) == b"a longer text"
    assert [len(ids) for ids in pieces] in ([6, 7], [13])  # both replies may come at once
    assert client.resends == 1


def test_silence_ends_at_the_time_limit(silent: Appliance) -> None:
    with Client("127.0.0.1", silent.port, timeout=0.1) as client:
        begun = time.monotonic()
        with pytest.raises(TimeoutError, match="no progress for 100 ms: 0 of 1 packets"):
            client.tokenize("text")
        assert 0.1 <= time.monotonic() - begun < 2
        assert client._client.pending == 0


def test_a_signal_ends_a_call(silent: Appliance) -> None:
    main = threading.main_thread().ident
    assert main is not None
    silent.reply = lambda req, text: []

    def interrupt() -> None:
        while not silent.answer():  # the call is under way once its packet is here
            pass
        signal.pthread_kill(main, signal.SIGINT)

    with Client("127.0.0.1", silent.port, timeout=60) as client:
        for call in (client.tokenize, lambda t: next(client.stream(t)),
                     lambda t: client.tokenize_many([t])):  # fmt: skip
            silent.answer()  # what is left of the call before
            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                call("text")
            thread.join()
            assert client._client.pending == 0


def test_another_thread_is_refused_and_the_gil_is_free(silent: Appliance) -> None:
    got: list[int] = []

    def wait() -> None:
        got.append(len(client.tokenize("text")))

    answered = silent.reply
    with Client("127.0.0.1", silent.port, timeout=60) as client:
        request = client._client.submit("text", native.STREAM)
        thread = threading.Thread(target=wait)
        thread.start()
        while not silent.data:
            silent.reply = lambda req, text: []
            silent.answer()
        for call in (lambda: client.tokenize("text"), client.close, request.take):
            with pytest.raises(RuntimeError, match="in use by another thread"):
                call()
        assert client.healthy == 1  # which is for every thread to read
        silent.reply = answered
        while thread.is_alive():
            silent.answer()
        assert got == [4]


def test_a_closed_client_says_so(appliance: Appliance) -> None:
    client = Client("127.0.0.1", appliance.port)
    left = client.stream("text")
    appliance.reply = lambda req, text: appliance.done(req, text, flags=0)  # never the end
    next(left)
    client.close()
    client.close()
    for call in (lambda: next(left), lambda: client.tokenize("text")):
        with pytest.raises(ConnectionAbortedError, match="the client was closed"):
            call()
    assert client.server_vocab == 5


@pytest.mark.parametrize("allocation", range(30))
def test_no_request_is_lost_where_memory_is_short(silent: Appliance, allocation: int) -> None:
    """Several fail at once, and one allocation while they are given out."""
    testcapi = pytest.importorskip("_testcapi", reason="a Python built without its own tests")
    silent.stop()  # nothing listens there
    with Client("127.0.0.1", silent.port, timeout=0.3) as client:
        requests = [client._client.submit("text", 0) for _ in range(10)]
        try:
            testcapi.set_nomemory(allocation, allocation + 1)
            client._client.poll()
        except MemoryError:
            pass
        finally:
            testcapi.remove_mem_hooks()
        for _ in range(100):
            if not client._client.pending:
                break
            client._client.wait()
        assert all(request.finished for request in requests)


def test_requests_under_way_have_a_limit(silent: Appliance) -> None:
    with Client("127.0.0.1", silent.port) as client:
        for _ in range(1024):
            client._client.submit(b"text", True)
        with pytest.raises(RuntimeError, match="in progress: wait for one to finish"):
            client.tokenize("text")


async def test_a_loop_that_was_blocked_reads_what_came_before_it_sends_again(
    silent: Appliance,
) -> None:
    """Each flight of 256 is answered at once, and found 50 ms later, when each of them is
    overdue."""
    async with AsyncClient("127.0.0.1", silent.port) as client:
        every = asyncio.gather(*map(client.tokenize, TEXTS))
        while not every.done():
            await asyncio.sleep(0)
            if silent.answer():
                time.sleep(0.05)
        got = await every
        assert [bytes(ids.astype("u1")) for ids in got] == TEXTS
        assert client.retransmits == 0 and silent.data == len(TEXTS)


def test_a_timer_of_uvloop_may_be_due_at_once(appliance: Appliance) -> None:
    """It is a handle that does not know its time then."""
    uvloop = pytest.importorskip("uvloop", reason="pip install uvloop")

    async def use() -> None:
        async with AsyncClient("127.0.0.1", appliance.port) as client:
            client._set_timer(client._loop.time())
            client._set_timer(client._loop.time() + 1)
            assert len(await client.tokenize("text")) == 4

    uvloop.run(use())


async def test_a_loop_that_is_told_of_a_loss_by_the_clock(silent: Appliance) -> None:
    """Nothing wakes the loop but its timer."""

    async with AsyncClient("127.0.0.1", silent.port, timeout=5) as client:
        silent.reply = lambda req, text: silent.done(req, text) if silent.data > 2 else []
        task = asyncio.create_task(client.tokenize("text"))
        while not task.done():
            silent.answer()
            await asyncio.sleep(0.001)
        assert len(await task) == 4 and client.retransmits == 2


async def test_all_who_wait_for_the_opening_share_it(
    appliance: Appliance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One attempt, with its error for each of them. The next call tries again."""
    attempts = 0
    opened = aio.opened

    def slow(*arguments: Any) -> native.Client:
        nonlocal attempts
        attempts += 1
        time.sleep(0.1)
        if attempts == 1:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return opened(*arguments)

    monkeypatch.setattr(aio, "opened", slow)
    client = AsyncClient("127.0.0.1", appliance.port)
    calls = map(client.tokenize, TEXTS[:10])
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(e) for e in errors} == {socket.gaierror} and len(set(map(id, errors))) == 10
    assert attempts == 1
    got = await asyncio.gather(*map(client.tokenize, TEXTS[:10]))
    assert [bytes(ids.astype("u1")) for ids in got] == TEXTS[:10] and attempts == 2
    await client.close()


async def test_a_name_that_is_looked_up_for_long_is_waited_for_as_long_as_a_text(
    appliance: Appliance, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = threading.Event()
    attempts: list[Any] = []
    opened = aio.opened

    def slow(*arguments: Any) -> native.Client:
        attempts.append(arguments)
        resolved.wait(60)
        return opened(*arguments)

    monkeypatch.setattr(aio, "opened", slow)
    client = AsyncClient("127.0.0.1", appliance.port, timeout=0.05)
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"^127\.0\.0\.1: no address within 0\.05 s$"):
            await client.tokenize("text")
    opening = client._opening  # which goes on
    assert opening is not None
    resolved.set()
    assert await opening is None and client.healthy == 1
    await client.close()
    assert len(attempts) == 1
    with pytest.raises(ValueError, match="^timeout: 0: expected seconds above 0, at most 86400$"):
        AsyncClient("127.0.0.1", timeout=0)


def test_another_event_loop_is_refused(appliance: Appliance) -> None:
    client = AsyncClient("127.0.0.1", appliance.port)
    assert len(asyncio.run(client.tokenize("text"))) == 4
    for _ in range(2):
        with pytest.raises(RuntimeError, match="an AsyncClient is for one event loop"):
            asyncio.run(client.tokenize("text"))
    assert client._client is not None and client._client.pending == 0
    asyncio.run(client.close())
    with pytest.raises(ConnectionAbortedError, match="the client was closed"):
        asyncio.run(client.tokenize("text"))


def test_a_kernel_that_has_no_room_is_waited_for(silent: Appliance) -> None:
    async def work() -> None:
        async with AsyncClient("127.0.0.1", silent.port) as client:
            real = client._client
            turns = 0

            class Full:
                """Has no room in two turns of three."""

                def poll(self) -> list[object]:
                    nonlocal turns
                    turns += 1
                    return real.poll() if turns % 3 == 0 else []

                def hooks(self) -> tuple[int, bool, None]:
                    """Nothing but the writer calls again."""
                    return real.hooks()[0], turns % 3 != 0, None

                def __getattr__(self, name: str) -> object:
                    return getattr(real, name)

            client._client = Full()  # type: ignore[assignment]
            ids = asyncio.create_task(client.tokenize("text"))
            while not ids.done():
                silent.answer()
                await asyncio.sleep(0)
            assert len(await ids) == 4 and turns > 2
            client._client = real

    asyncio.run(work())
