# SPDX-License-Identifier: BSD-3-Clause
"""Answers by every client: dpdk-tokd --sink gpu, and tokd-gpu --lanes on the CPU, whose engine
follows a rule."""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from bench.programs import TOKD_CLIENT
from bench.texts.answers import by_rule
from dpdk_tokd import AsyncClient, Client, Made, Reason, TokdError, Tokenizer, wire
from faulty_wire import Faults, FaultyWire
from gpu_agent import Agent
from netlab import SERVER_IP, NetAppliance
from samples import documents

ROWS = 50257
LANES = 3  # one of them is left for another source
FOR_EVER = wire.GENERATE_MOST


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    folder = tmp_path / "agent"
    folder.mkdir()
    with Agent(folder, "--lanes", str(LANES), table=f"random:{ROWS}x64:3") as agent:
        yield agent


@pytest.fixture
def appliance(start, agent: Agent) -> NetAppliance:
    # A reader may be slow here, because the machine is.
    return start("--sink", f"gpu=shm:{agent.socket}", "--stream-timeout", "60000")


def wanted(gpt2: Tokenizer, prompt: bytes | str, n: int) -> list[int]:
    return by_rule(gpt2.encode(prompt).tolist(), n, ROWS)


def is_right(gpt2: Tokenizer, prompt: bytes | str, made: list[Made], n: int) -> bool:
    """Ids by the rule; their text is libtok's."""
    ids = [id for id, _ in made if id is not None]
    text = "".join(text for _, text in made)
    assert ids == wanted(gpt2, prompt, n)
    assert text == gpt2.decode(np.array(ids, np.uint32))
    return all(text or id is not None for id, text in made)


def lanes_used(appliance: NetAppliance) -> int:
    return appliance.telemetry("/tokd/sink")["0"]["lanes_used"]


def test_answers_arrive_over_a_faulty_wire(lab, appliance, gpt2):
    """More tasks than lanes, prompts of one packet and of several; a text among them."""
    prompts = [documents()[700 * i : 700 * i + n] for i, n in enumerate([1, 50, 1500, 6000, 300])]

    async def work(port: int) -> None:
        async def one(i: int) -> None:
            answer = client.generate(prompts[i], 120 * i + 1, skip_special_tokens=False)
            made = [item async for item in answer]
            assert is_right(gpt2, prompts[i], made, 120 * i + 1) and answer.ended == "length"

        async with AsyncClient("127.0.0.1", port, timeout=60) as client:
            ids, *_ = await asyncio.gather(
                client.tokenize(prompts[3]), *(one(i) for i in range(len(prompts)))
            )
            assert ids.tolist() == gpt2.encode(prompts[3]).tolist()

    with FaultyWire(lab, Faults(drop=0.1, double=0.1, reorder=0.2), seed=5) as faulty:
        lab.call(lambda: asyncio.run(work(faulty.port)))
        assert faulty.dropped > 10 and faulty.reordered > 10 and faulty.doubled > 0
    counters = appliance.counters()
    assert counters["streams_generated"] == len(prompts)
    assert counters["generate_cancelled"] == counters["streams_failed"] == 0
    assert lanes_used(appliance) == 0


def test_a_reader_that_pauses_delays_nobody_and_loses_nothing(lab, appliance, gpt2):
    with lab.call(lambda: Client(SERVER_IP, timeout=60)) as client:
        paused = client.generate("to be continued", FOR_EVER, skip_special_tokens=False)
        made = [next(paused) for _ in range(10)]
        with lab.call(lambda: Client(SERVER_IP, timeout=60)) as other:
            answer = other.generate("meanwhile", 20_000, skip_special_tokens=False)
            assert is_right(gpt2, "meanwhile", list(answer), 20_000)
        before = appliance.counters()["tokens_made"] - 20_000
        assert 10 <= before < 200_000  # it waits, though its answer is long
        made += [next(paused) for _ in range(before + 5000)]
        assert [id for id, _ in made] == wanted(gpt2, "to be continued", len(made))
        paused.close()
        assert paused.ended == "cancelled"
        appliance.wait_until(lambda: lanes_used(appliance) == 0)
        (again,) = client.generate("again", 1, skip_special_tokens=False)
        assert is_right(gpt2, "again", [again], 1)
    assert appliance.counters()["generate_cancelled"] == 1


def test_the_tool_prints_the_answer_and_ctrl_c_ends_it(lab, appliance, gpt2):
    inside = ["ip", "netns", "exec", lab.namespace, TOKD_CLIENT]
    command = [*inside, "--timeout", "60", "--generate"]
    done = subprocess.run(
        [*command, "3000", SERVER_IP],
        input=b"Once upon a time",
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    ids = wanted(gpt2, "Once upon a time", 3000)
    assert done.stdout == gpt2.decode_bytes(np.array(ids, np.uint32), skip_special_tokens=True)

    with subprocess.Popen(
        [*command, str(FOR_EVER), SERVER_IP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as tool:
        assert tool.stdin is not None and tool.stdout is not None
        tool.stdin.write(b"Once upon a time")
        tool.stdin.close()
        assert done.stdout.startswith(tool.stdout.read(1000))
        tool.send_signal(signal.SIGINT)
        tool.stdout.read()
        assert tool.wait(60) == -signal.SIGINT
    appliance.wait_until(lambda: lanes_used(appliance) == 0)
    assert appliance.counters()["generate_cancelled"] == 1


def test_special_tokens_give_no_text_unless_wanted(lab, appliance, gpt2):
    special, n = gpt2.special_tokens["<|endoftext|>"], 400
    prompts = (f"prompt {i}" for i in range(10_000))
    prompt = next(p for p in prompts if special in wanted(gpt2, p, n))
    with lab.call(lambda: Client(SERVER_IP, timeout=60)) as client:
        for skip in (False, True):
            made = list(client.generate(prompt, n, skip_special_tokens=skip))
            ids = [id for id, _ in made if id is not None]
            text = gpt2.decode(np.array(ids, np.uint32), skip_special_tokens=skip)
            assert ids == wanted(gpt2, prompt, n)
            assert "".join(text for _, text in made) == text
            assert ("<|endoftext|>" in text) is not skip


def test_an_agent_that_dies_ends_the_answer(lab, appliance, agent, gpt2):
    with lab.call(lambda: Client(SERVER_IP, timeout=60)) as client:
        answer = client.generate("for ever", FOR_EVER)
        made = [next(answer) for _ in range(1000)]
        agent.process.kill()
        with pytest.raises(TokdError, match="the ids so far are right") as e:
            made.extend(answer)
        assert e.value.reason is Reason.SINK and answer.ended is None
        assert [id for id, _ in made] == wanted(gpt2, "for ever", len(made))
        appliance.wait_until(lambda: appliance.telemetry("/tokd/sink")["0"]["state"] == "no agent")
        with pytest.raises(TokdError, match="no model there: it needs --sink, and a tokd-gpu"):
            next(client.generate("too late", 1))


def test_an_appliance_without_a_gpu_says_so(start, lab):
    start()
    with lab.call(lambda: Client(SERVER_IP, timeout=60)) as client:
        with pytest.raises(TokdError, match="no model there: it needs --sink, and a tokd-gpu") as e:
            next(client.generate("text", 1))
        assert e.value.reason is Reason.SINK
