# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings of tokd-gateway with a stand-in for the model: shapes, refusals, batches."""

import asyncio
import base64
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
from dpdk_tokd.gateway import batches
from dpdk_tokd.gateway.app import App
from dpdk_tokd.gateway.models import Model, Models
from test_gateway import ask
from test_gateway_server import answer_of, post, serving, until


def vectors(rows: Sequence[Any]) -> Any:
    """Of each text: how many ids, the first, the last, 1."""
    return np.array([[len(row), row[0], row[-1], 1] for row in rows], np.float32)


def embedder(model: Model) -> Any:
    return SimpleNamespace(
        tokenizer=model.tokenizer,
        max_tokens=8,
        dimensions=4,
        normalizes=False,
        prompts={"query": "one"},
        default_prompt=None,
        pooling="mean",
        vectors=vectors,
    )


@pytest.fixture
def app(gpt2_file: Path) -> App:
    model = Model("gpt2", str(gpt2_file))
    made = App(Models([model, Model("plain", str(gpt2_file))]))
    made.embeddings.add("gpt2", embedder(model))
    return made


def test_texts_and_ids_become_vectors(app: App) -> None:
    answer = ask(app, "/v1/embeddings", {"input": "one two", "model": "gpt2", "user": "me"}).json()
    [row] = answer.pop("data")
    assert row == {"object": "embedding", "index": 0, "embedding": [2, 505, 734, 1]}
    assert answer.pop("id").startswith("embd-") and answer.pop("created")
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    assert answer == {"object": "list", "model": "gpt2", "usage": usage}
    for given, want in (
        (["one", "one two"], [[1, 505, 505, 1], [2, 505, 734, 1]]),
        ([1, 2, 3], [[3, 1, 3, 1]]),
        ([[1], [2, 3]], [[1, 1, 1, 1], [2, 2, 3, 1]]),
    ):
        data = ask(app, "/v1/embeddings", {"input": given}).json()["data"]
        assert [row["embedding"] for row in data] == want
        packed = ask(app, "/v1/embeddings", {"input": given, "encoding_format": "base64"}).json()
        for row, vector in zip(packed["data"], want, strict=True):
            got = np.frombuffer(base64.b64decode(row["embedding"]), "<f4")
            assert got.tolist() == vector
        for path in ("/embed", "/"):
            assert ask(app, path, {"inputs": given, "normalize": False}).json() == want
    [row] = ask(app, "/v1/embeddings", {"input": "one two", "dimensions": 2}).json()["data"]
    assert row["embedding"] == [2, 505]
    long = ["one two"] * 1024
    assert (
        ask(app, "/embed", {"inputs": long, "normalize": False}).json() == [[2, 505, 734, 1]] * 1024
    )


def test_what_only_tei_has(app: App) -> None:
    [vector] = ask(app, "/embed", {"inputs": [[3, 4]], "dimensions": 3}).json()
    np.testing.assert_allclose(vector, np.array([2, 3, 4]) / np.sqrt(29), rtol=1e-6)
    for given in ("a b c d e f g h i j", list(range(10))):
        asked = {"inputs": given, "truncate": True, "normalize": False}
        [right] = ask(app, "/embed", asked).json()
        [left] = ask(app, "/embed", asked | {"truncation_direction": "left"}).json()
        assert right[0] == left[0] == 8 and right[1] != left[1] and right[2] != left[2]
    asked = {"inputs": " two", "prompt_name": "query", "normalize": False}
    assert ask(app, "/embed", asked).json() == [[2, 505, 734, 1]]
    unknown = ask(app, "/embed", {"inputs": "a", "prompt_name": "x"})
    assert (
        unknown.status == 400 and "prompt_name: x: the model has query" in unknown.json()["error"]
    )


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ({}, 400, "required field"),
        ({"in": 1.5}, 400, "float"),
        ({"in": []}, 400, "cannot be empty"),
        ({"in": ""}, 400, "cannot be empty"),
        ({"in": ["a", ""]}, 400, "cannot be empty"),
        ({"in": [[]]}, 400, "cannot be empty"),
        ({"in": ["a", 1]}, 400, "not both"),
        ({"in": [1, "a"]}, 400, "not both"),
        ({"in": [[1], "a"]}, 400, "not both"),
        ({"in": [[-1]]}, 400, r"\[0\]\[0\]: -1: expected an id of the vocabulary, 0 to 50256"),
        (
            {"in": [[1], [2, 50257]]},
            400,
            r"\[1\]\[1\]: 50257: expected an id of the vocabulary, 0 to 50256",
        ),
        ({"in": ["a"] * 1025}, 413, "batch size 1025 > maximum allowed batch size 1024"),
        ({"in": "a", "dimensions": 0}, 400, "dimensions: 0: expected 1 to 4"),
        ({"in": "a", "dimensions": 5}, 400, "dimensions: 5: expected 1 to 4"),
    ],
)
def test_what_is_wrong_is_named(app: App, given: Any, status: int, message: str) -> None:
    def named(field: str) -> Any:
        return {field if name == "in" else name: value for name, value in given.items()}

    got = ask(app, "/v1/embeddings", named("input")).error()
    assert got[0] == status and re.search(message, got[1]), got
    answer = ask(app, "/embed", named("inputs"))
    error = answer.json()
    assert answer.status == status and re.search(message, error["error"]), error
    assert error["error_type"] in ("Validation", "Empty")


def test_it_says_what_it_is(app: App) -> None:
    info = ask(app, "/info").json()
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert (info["model_dtype"], info["served_model_name"]) == ("float32", "gpt2")
    assert (info["max_input_length"], info["max_batch_tokens"]) == (8, batches.BATCH_TOKENS)


def test_too_long_and_unknown(app: App) -> None:
    long = "a b c d e f g h i"
    got = ask(app, "/v1/embeddings", {"input": ["a", long]}).error()
    assert got[::2] == (400, "input") and "context length is 8 tokens" in got[1] and "9" in got[1]
    answer = ask(app, "/embed", {"inputs": long})
    assert answer.status == 413 and "at most 8 tokens. Given: 9" in answer.json()["error"]
    got = ask(app, "/v1/embeddings", {"input": "a", "model": "x"}).error()
    assert got[::2] == (404, "model")
    got = ask(app, "/v1/embeddings", {"input": "a", "model": "plain"}).error()
    assert got[::2] == (501, "model") and "names a file" in got[1]


def test_a_gateway_without_embedding_models(gpt2_file: Path) -> None:
    app = App(Models([Model("plain", str(gpt2_file))]))
    assert ask(app, "/v1/embeddings", {"input": "a"}).error()[0] == 501
    answer = ask(app, "/", {"inputs": "a"})
    assert answer.status == 501 and "names a file" in answer.json()["error"]


class Held:
    """Runs batches, each when it is let go, and remembers them."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.batches: list[list[int]] = []

    def run(self, rows: Sequence[Any]) -> Any:
        self.batches.append([int(row[0]) for row in rows])
        self.begun.release()
        assert self.go.acquire(timeout=60)
        if any(row[0] == 13 for row in rows):
            raise RuntimeError("unlucky")
        return vectors(rows)


def row(id: int, n: int = 1) -> Any:
    return np.full(n, id, np.uint32)


async def begun(held: Held) -> None:
    await asyncio.to_thread(held.begun.acquire, timeout=60)


async def test_what_arrives_meanwhile_is_the_next_batch() -> None:
    held = Held()
    queue = batches.Batches(held.run)

    first = asyncio.create_task(queue.vectors([row(1)]))
    await begun(held)
    assert held.batches == [[1]]  # at once: it was idle
    full = row(9, batches.BATCH_TOKENS - 3)
    asked = [[row(2), row(3), full, row(4)], [row(5)], [row(6)]]
    later = [asyncio.create_task(queue.vectors(rows)) for rows in asked]
    await asyncio.sleep(0)
    assert queue.waiting == batches.BATCH_TOKENS + 2
    for _ in range(3):
        held.go.release()
    await asyncio.gather(first, *later)
    # A list takes turns with single texts; what does not fit waits.
    assert held.batches == [[1], [2, 5, 6, 3], [9, 4]]
    assert (await later[0])[:, 1].tolist() == [2, 3, 9, 4]
    assert queue.waiting == 0


async def test_who_hangs_up_is_not_worked_for() -> None:
    held = Held()
    queue = batches.Batches(held.run)

    first = asyncio.create_task(queue.vectors([row(1)]))
    await begun(held)
    gone = asyncio.create_task(queue.vectors([row(2)]))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    held.go.release()
    assert len(await first) == 1
    held.go.release()
    assert len(await queue.vectors([row(3)])) == 1
    assert held.batches == [[1], [3]] and queue.waiting == 0


async def test_who_hangs_up_while_texts_wait_is_counted(app: App, tmp_path: Path) -> None:
    held = Held()
    app.embeddings.batches["gpt2"] = queue = batches.Batches(held.run)
    counted = 'tokd_gateway_requests_total{path="/v1/embeddings",status="499"} 1.0'
    async with serving(app, tmp_path / "socket") as connect:
        reader, writer = await connect()
        writer.write(post({"input": [1]}, "/v1/embeddings"))
        await begun(held)
        _, gone = await connect()
        gone.write(post({"input": [2]}, "/v1/embeddings"))
        await until(lambda: queue.waiting == 1)
        gone.close()
        await until(lambda: counted in app.metrics.page().decode())
        held.go.release()
        assert (await answer_of(reader))[0] == 200
        writer.close()
    assert held.batches == [[1]] and (queue.waiting, app.in_progress) == (0, 0)


async def test_a_text_that_fails_fails_alone() -> None:
    held = Held()
    queue = batches.Batches(held.run)

    first = asyncio.create_task(queue.vectors([row(1)]))
    await begun(held)
    bad = asyncio.create_task(queue.vectors([row(13), row(2, batches.BATCH_TOKENS)]))
    good = asyncio.create_task(queue.vectors([row(4)]))
    for _ in range(5):
        held.go.release()
    with pytest.raises(RuntimeError, match="unlucky"):
        await bad
    assert len(await first) == len(await good) == 1 and queue.waiting == 0
    assert len(await queue.vectors([row(3)])) == 1
    assert held.batches == [[1], [13, 4], [13], [4], [3]]


def test_too_much_waits(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WAITING_TOKENS", 0)
    busy = ask(app, "/v1/embeddings", {"input": "a"})
    assert busy.status == 503 and busy.headers[b"retry-after"] == b"1"
    busy = ask(app, "/embed", {"inputs": "a"})
    assert busy.status == 429 and busy.json()["error_type"] == "Overloaded"
