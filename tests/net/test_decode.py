# SPDX-License-Identifier: BSD-3-Clause
"""The text of ids that went over the wire is Tokenizer.decode's, whatever the wire did to it."""

import asyncio
import subprocess

import numpy as np
import pytest
from bench.programs import TOKD_CLIENT
from dpdk_tokd import AsyncClient, Client, Reason, TokdError
from faulty_wire import Faults, FaultyWire
from netlab import SERVER_IP
from samples import documents

USUAL = Faults(drop=0.1, double=0.1, reorder=0.2)


@pytest.fixture(scope="module")
def ids(gpt2) -> np.ndarray:
    """Real text with characters of all lengths; then ids at random, which are no UTF-8; special
    tokens among them."""
    rng = np.random.default_rng(5)
    real = gpt2.encode(documents()[:200_000] + "é中😀 naïve ".encode() * 3000)
    noise = rng.integers(0, gpt2.vocab_size, 20_000, dtype=np.uint32)
    mixed = np.concatenate([real, noise])
    mixed[rng.integers(0, len(mixed), 500)] = gpt2.special_tokens["<|endoftext|>"]
    return mixed


@pytest.mark.parametrize("skip", [False, True])
def test_a_faulty_wire_does_not_change_the_text(lab, appliance, gpt2, ids, skip):
    wanted = gpt2.decode(ids, skip_special_tokens=skip)

    async def streamed(port: int) -> list[str]:
        async with AsyncClient("127.0.0.1", port, timeout=30) as client:
            pieces = client.detokenize_stream(ids, skip_special_tokens=skip)
            return [piece async for piece in pieces]

    with FaultyWire(lab, USUAL, seed=3) as faulty:
        with lab.call(lambda: Client("127.0.0.1", faulty.port, timeout=30)) as client:
            assert client.detokenize(ids, skip_special_tokens=skip) == wanted
            assert client.detokenize([]) == ""
        pieces = lab.call(lambda: asyncio.run(streamed(faulty.port)))
        assert "".join(pieces) == wanted and len(pieces) > 10
        assert faulty.dropped > 10 and faulty.reordered > 10 and faulty.doubled > 0


def test_what_is_no_id_is_named(lab, appliance, gpt2):
    with lab.call(lambda: Client(SERVER_IP)) as client:
        for at in (0, 7, 5000):
            wrong = [42] * at + [gpt2.vocab_size]
            with pytest.raises(TokdError, match=rf"ID \(19\) at index {at}: an id is not") as e:
                client.detokenize(wrong)
            assert e.value.reason is Reason.ID


def test_a_token_of_many_bytes_is_sent_again_with_more_room(lab, appliance, gpt2):
    longest = max(range(gpt2.vocab_size), key=lambda i: len(gpt2.token(i)))
    with lab.call(lambda: Client(SERVER_IP)) as client:
        assert client.detokenize([longest] * 1000) == gpt2.decode([longest] * 1000)


@pytest.mark.parametrize("options", [[], ["--stream"]])
def test_the_tool(lab, appliance, gpt2, ids, options):
    command = ["ip", "netns", "exec", lab.namespace, TOKD_CLIENT, "--decode", *options, SERVER_IP]

    def run(text: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=60, check=False
        )

    done = run("\n".join(map(str, ids)))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == gpt2.decode_bytes(ids)
    assert run("").stdout == b""
    for text, why in (("1 x", "number 2: expected digits, found byte 0x78"),
                      ("1 -2", "number 2: expected digits, found byte 0x2d"),
                      ("4294967296", "number 1 is above 4294967295"),
                      ("1 4294967295", "at index 1")):  # fmt: skip
        done = run(text)
        assert done.returncode == 1 and why in done.stderr.decode()
