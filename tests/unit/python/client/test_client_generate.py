# SPDX-License-Identifier: BSD-3-Clause
"""Answers of a model in Python: items, how they end, and what ends them early."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import numpy as np
import pytest
from dpdk_tokd import AsyncClient, Client, Made, Reason, TokdError, wire
from dpdk_tokd._native import libtokd as native
from dpdk_tokd.client import aio
from text_appliance import Appliance

STOP, LENGTH, CANCELLED = 1, 2, 3
FLAGS = wire.F_FIRST | wire.F_LAST | wire.F_IDS | wire.F_STREAM | wire.F_GENERATE


def item(number: int | None, text: bytes = b"", end: int = 0) -> bytes:
    return wire.MADE.pack(wire.MADE_END if number is None else number, len(text), end) + text


class Model:
    """Makes an item for each packet that comes, so that a test sees what was asked for."""

    def __init__(self, appliance: Appliance, items: list[bytes]) -> None:
        self.appliance, self.items = appliance, items
        self.prompts: list[wire.Req] = []
        self.polls: list[wire.Req] = []
        self.sent = b""
        self.end = threading.Event()
        appliance.reply, appliance.polled = self.begin, self.go_on

    def begin(self, req: wire.Req, text: bytes) -> list[bytes]:
        self.prompts.append(req)
        self.sent = b""
        self.end.clear()
        return self.more(req)

    def go_on(self, req: wire.Req) -> list[bytes]:
        if not self.prompts or req.stream_id != self.prompts[-1].stream_id:
            return self.appliance.fail(req, Reason.UNKNOWN)
        self.polls.append(req)
        if self.end.is_set():  # an acknowledgement of all
            return self.appliance.made(req, len(self.sent), self.sent, True)
        if req.flags & wire.F_CANCEL:
            self.items = [item(None, end=CANCELLED)]
        return self.more(req)

    def was_cancelled(self) -> bool:
        return any(poll.flags & wire.F_CANCEL for poll in self.polls)

    def more(self, req: wire.Req) -> list[bytes]:
        if self.items:
            self.sent += self.items.pop(0)
        if not self.items:
            self.end.set()
        return self.appliance.made(req, req.ids_ack, self.sent, not self.items)


ITEMS = [item(15496, b"Hello"), item(50000), item(11, "ä中😀".encode()), item(7, b"\xff")]
MADE = [Made(15496, "Hello"), Made(50000, ""), Made(11, "ä中😀"), Made(7, "\ufffd")]


def in_async(appliance: Appliance, text: str, n: int) -> tuple[list[Made], str | None]:
    async def work() -> tuple[list[Made], str | None]:
        async with AsyncClient("127.0.0.1", appliance.port) as client:
            answer = client.generate(text, n)
            return [made async for made in answer], answer.ended

    return asyncio.run(work())


def in_turn(appliance: Appliance, text: str, n: int) -> tuple[list[Made], str | None]:
    with Client("127.0.0.1", appliance.port) as client:
        answer = client.generate(text, n)
        return list(answer), answer.ended


BOTH = pytest.mark.parametrize("generate", [in_turn, in_async])
Generate = Callable[[Appliance, str, int], tuple[list[Made], str | None]]


@BOTH
def test_items_arrive_and_the_end_says_why(appliance: Appliance, generate: Generate) -> None:
    for end, why in ((STOP, "stop"), (LENGTH, "length"), (CANCELLED, "cancelled")):
        model = Model(appliance, [b"".join(ITEMS) + item(None, end=end)])
        assert generate(appliance, "text", 9) == (MADE, why)
        (req,) = model.prompts
        assert req.limit == 9 and req.flags == FLAGS | wire.F_SKIP_SPECIAL


@BOTH
def test_text_without_an_id_comes_last(appliance: Appliance, generate: Generate) -> None:
    Model(appliance, [item(1, b"a") + item(None, b"\xe4\xb8", STOP)])
    assert generate(appliance, "text", 1) == ([Made(1, "a"), Made(None, "\ufffd")], "stop")


@BOTH
def test_items_arrive_one_by_one(appliance: Appliance, generate: Generate) -> None:
    model = Model(appliance, [*ITEMS, item(None, end=STOP)])  # the next with each POLL
    assert generate(appliance, "text", 4) == (MADE, "stop")
    assert len(model.prompts) == 1 and len(model.polls) >= 4


def test_special_tokens_are_kept_if_wanted(appliance: Appliance, client: Client) -> None:
    model = Model(appliance, [item(None, end=STOP)])
    assert list(client.generate("text", 1, skip_special_tokens=False)) == []
    assert model.prompts[0].flags == FLAGS


def test_an_item_is_there_before_the_next_is_made(appliance: Appliance, client: Client) -> None:
    model = Model(appliance, [*ITEMS, item(None, end=STOP)])
    answer = client.generate("text", 4)
    assert model.prompts == []  # it begins with the first item
    assert next(answer) == MADE[0]
    assert len(model.items) == 4 and answer.ended is None
    assert list(answer) == MADE[1:]
    assert answer.ended == "stop" and client.stream_id == model.prompts[0].stream_id


@pytest.mark.parametrize("how", ["close", "with", "drop", "client"])
def test_leaving_early_cancels(appliance: Appliance, how: str) -> None:
    model = Model(appliance, [*ITEMS, item(None, end=STOP)])
    client = Client("127.0.0.1", appliance.port)
    answer = client.generate("text", 4)
    assert next(answer) == MADE[0]
    if how == "close":
        answer.close()
        assert answer.ended == "cancelled" and list(answer) == []
    elif how == "with":
        with answer:
            pass
        assert answer.ended == "cancelled"
    elif how == "drop":
        gc.disable()  # it is not for the collector to end it
        try:
            del answer
            assert model.end.wait(60)
        finally:
            gc.enable()
    else:
        client.close()
        with pytest.raises(ConnectionAbortedError):
            next(answer)
    assert model.end.wait(60)  # without another call of the client
    assert model.was_cancelled()
    client.close()


async def test_leaving_early_cancels_for_asyncio(appliance: Appliance) -> None:
    model = Model(appliance, [*ITEMS, item(None, end=STOP)])
    async with AsyncClient("127.0.0.1", appliance.port, in_flight=1) as client:
        async with client.generate("text", 4) as answer:
            assert await anext(answer) == MADE[0]
        assert answer.ended == "cancelled"
        assert await asyncio.to_thread(model.end.wait, 60)
        assert model.was_cancelled()
        model.items = [item(None, end=STOP)]  # the only slot is free
        async with aclosing(client.generate("text", 4)) as last:
            assert [made async for made in last] == []


async def test_a_cancelled_task_cancels(appliance: Appliance) -> None:
    model = Model(appliance, [ITEMS[0], *[b""] * 1000])
    async with AsyncClient("127.0.0.1", appliance.port) as client:
        answer = client.generate("text", 4)
        assert await anext(answer) == MADE[0]
        task = asyncio.create_task(anext(answer))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert answer.ended == "cancelled"
        assert await asyncio.to_thread(model.end.wait, 60)
    assert model.was_cancelled()


async def rest(answer: AsyncIterator[Made]) -> list[Made]:
    return [made async for made in answer]


async def test_another_task_may_end_it(appliance: Appliance) -> None:
    model = Model(appliance, [ITEMS[0], *[b""] * 1000])
    async with AsyncClient("127.0.0.1", appliance.port, in_flight=1) as client:
        answer, next_one = (client.generate("text", 4) for _ in range(2))
        assert await anext(answer) == MADE[0]
        waiting = [asyncio.create_task(rest(one)) for one in (answer, next_one)]
        await asyncio.sleep(0)
        await next_one.aclose()  # there is no slot for it yet
        await answer.aclose()
        assert answer.ended == next_one.ended == "cancelled"
        assert await asyncio.gather(*waiting) == [[], []]
        assert await asyncio.to_thread(model.end.wait, 60)
    assert model.was_cancelled() and len(model.prompts) == 1


@pytest.mark.parametrize("waits_for", ["slot", "opening"])
async def test_another_task_may_end_what_waits_to_begin(
    appliance: Appliance, monkeypatch: pytest.MonkeyPatch, waits_for: str
) -> None:
    """Which wakes who waits for it: the slot, or the name's address, may take long."""
    model = Model(appliance, [ITEMS[0], *[b""] * 1000])
    resolved = threading.Event()
    opened = aio.opened
    monkeypatch.setattr(aio, "opened", lambda *a: (resolved.wait(60), opened(*a))[1])

    client = AsyncClient("127.0.0.1", appliance.port, in_flight=1)
    if waits_for == "slot":
        resolved.set()
        has_the_slot = client.generate("text", 4)
        assert await anext(has_the_slot) == MADE[0]
    late = client.generate("text", 4)
    task = asyncio.create_task(rest(late))
    await asyncio.sleep(0)
    for _ in range(2):
        await late.aclose()
    assert await asyncio.wait_for(task, 30) == [] and late.ended == "cancelled"
    if waits_for == "slot":
        await has_the_slot.aclose()
    resolved.set()
    await client.close()
    assert len(model.prompts) == (waits_for == "slot")


async def test_a_slot_that_comes_as_the_answer_is_closed_is_given_back(
    appliance: Appliance,
) -> None:
    async with AsyncClient("127.0.0.1", appliance.port, in_flight=1) as client:
        for turns in range(4):  # of the loop, from the slot's being free to the end
            Model(appliance, [item(None, end=STOP)])
            await client._slots.acquire()
            late = client.generate("text", 4)
            task = asyncio.create_task(rest(late))
            await asyncio.sleep(0)
            client._slots.release()
            for _ in range(turns):
                await asyncio.sleep(0)
            await late.aclose()
            assert await task == []
            await asyncio.wait_for(client._slots.acquire(), 30)
            client._slots.release()


async def test_what_is_closed_before_it_begins_is_not_sent(
    appliance: Appliance, client: Client
) -> None:
    model = Model(appliance, [item(None, end=STOP)])
    answer = client.generate("text", 4)
    answer.close()
    assert answer.ended == "cancelled" and list(answer) == []
    async with AsyncClient("127.0.0.1", appliance.port) as client:
        answer = client.generate("text", 4)
        await answer.aclose()
        assert answer.ended == "cancelled" and [made async for made in answer] == []
    assert model.prompts == []


def test_a_slow_reader_acknowledges(appliance: Appliance, client: Client) -> None:
    model = Model(appliance, [item(1, b"a") * 40, item(None, end=STOP)])
    answer = client.generate("text", 40)
    assert [next(answer).id for _ in range(20)] == [1] * 20
    assert model.end.wait(60)  # without another call of the client
    assert len(list(answer)) == 20 and answer.ended == "stop"


@BOTH
def test_a_socket_that_fails_is_named(
    appliance: Appliance, generate: Generate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While items are taken: the first acknowledgement cannot be sent."""
    Model(appliance, [item(1, b"a") * 40, item(None, end=STOP)])
    null = os.open(os.devnull, os.O_RDWR)
    made = native.Client.made
    seen: list[int] = []

    class Failing:
        """The library's client, whose socket is none any more once there are items."""

        def __init__(self, *arguments: object) -> None:
            self.client = native_client(*arguments)

        def __getattr__(self, name: str) -> object:
            return getattr(self.client, name)

        def made(self, request: native.Request) -> tuple[int, bytes, int] | None:
            taken = made(self.client, request)
            if taken is not None and not seen:
                os.dup2(null, self.client.hooks()[0])
            seen.extend([taken[0]] if taken is not None else [])
            return taken

    native_client = native.Client
    monkeypatch.setattr("dpdk_tokd.client.errors.native.Client", Failing)
    with pytest.raises(OSError, match=r"127\.0\.0\.1:\d+: Socket operation on non-socket"):
        generate(appliance, "text", 40)
    os.close(null)
    assert len(seen) == 40


def test_many_texts_beside_answers_that_are_not_read(appliance: Appliance, client: Client) -> None:
    Model(appliance, [b"".join(ITEMS), *[b""] * 1000])  # what is not taken keeps it in flight
    answer = client.generate("text", 9)
    assert next(answer) == MADE[0]
    appliance.reply = appliance.answered
    ids = client.tokenize_many(["a", "bc", "d", "e"], in_flight=1)
    assert [i.tolist() for i in ids] == [[97], [98, 99], [100], [101]]
    assert [next(answer) for _ in range(3)] == MADE[1:] and answer.ended is None


def test_requests_of_other_kinds_or_clients_have_no_items(
    appliance: Appliance, client: Client
) -> None:
    with Client("127.0.0.1", appliance.port) as another:
        answer = another._client.submit("text", native.GENERATE, 1)
        text = client._client.submit("text", 0)
        for of, request in ((client, answer), (client, text)):
            with pytest.raises(TypeError, match="a Request of this client, with GENERATE"):
                of._client.made(request)
        for take in (answer.take, answer.ids):
            with pytest.raises(TypeError, match="read by Client.made"):
                take()


def test_texts_and_answers_share_a_client(appliance: Appliance, client: Client) -> None:
    model = Model(appliance, [*ITEMS, item(None, end=STOP)])
    answer = client.generate("text", 4)
    assert next(answer) == MADE[0]
    appliance.reply = appliance.answered
    assert client.tokenize("abc").tolist() == [97, 98, 99]
    assert list(answer) == MADE[1:] and model.end.is_set()


def test_what_cannot_be_asked_for_is_a_value_error(client: Client) -> None:
    for wrong in (0, -1, wire.GENERATE_MOST + 1, 1 << 64):
        with pytest.raises(
            ValueError, match=f"^max_tokens: {wrong}: expected a number from 1 to 1048576$"
        ):
            client.generate("text", wrong)
    with pytest.raises(ValueError, match="surrogates not allowed"):
        client.generate("\ud800", 1)
    for kind in (True, 1.5, "1"):
        with pytest.raises(ValueError, match="^max_tokens: "):
            client.generate("text", kind)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^text: expected str or bytes, got int$"):
        client.generate(1, 1)  # type: ignore[arg-type]


def test_numpy_integers_are_numbers_of_ids(appliance: Appliance, client: Client) -> None:
    model = Model(appliance, [item(None, end=STOP)])
    assert list(client.generate("text", np.int64(7))) == []
    assert model.prompts[0].limit == 7


def test_an_appliance_that_cannot_is_named(appliance: Appliance, client: Client) -> None:
    appliance.reply = lambda q, text: appliance.fail(q, Reason.SINK)
    says = (
        r"SINK \(15\): no model there: it needs --sink, and a tokd-gpu with --lanes and an engine"
    )
    with pytest.raises(TokdError, match=says) as e:
        next(client.generate("text", 1))
    assert e.value.reason is Reason.SINK
    assert appliance.data == 1


def test_what_came_before_a_failure_stands(appliance: Appliance, client: Client) -> None:
    Model(appliance, [*ITEMS[:2], item(None, end=STOP)])
    appliance.polled = lambda q: appliance.fail(q, Reason.SINK)
    answer = client.generate("text", 4)
    assert next(answer) == MADE[0]
    with pytest.raises(TokdError, match="tokd-gpu failed: the ids so far are right") as e:
        next(answer)
    assert e.value.reason is Reason.SINK and answer.ended is None
    assert appliance.data == 1  # it is not begun again


def test_no_free_lane_is_named_at_the_time_limit(appliance: Appliance) -> None:
    def busy(req: wire.Req, text: bytes = b"") -> list[bytes]:
        return appliance.done(
            req, b"", flags=0, ack=0, credit=0, reason=Reason.LANES, text_end=0, n_ids=0, total=0
        )

    appliance.reply = appliance.polled = busy
    with Client("127.0.0.1", appliance.port, timeout=0.3) as client:
        with pytest.raises(TimeoutError, match="all lanes of the appliance's GPU are busy"):
            next(client.generate("text", 4))


def test_a_prompt_that_the_appliance_kept_waiting_for_a_lane(
    appliance: Appliance, client: Client
) -> None:
    appliance.reply = lambda q, text: appliance.done(
        q, b"", flags=0, ack=0, credit=0, reason=Reason.LANES, text_end=0, n_ids=0, total=0
    )
    appliance.polled = lambda q: appliance.fail(q, Reason.TIMEOUT)
    with pytest.raises(TokdError, match="no lane .* for its --stream-timeout: .* --lanes"):
        next(client.generate("text", 4))
