# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway before appliances: who tokenizes what, and what it says while none answers."""

import asyncio
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from dpdk_tokd import Reason, Tokenizer

pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
from dpdk_tokd.gateway.app import App
from dpdk_tokd.gateway.appliances import _any_of, attach
from dpdk_tokd.gateway.derender import AT_ONCE
from dpdk_tokd.gateway.models import Model, Models
from text_appliance import Appliance

END = "<|endoftext|>"
PLAIN = ["", "The quick brown fox", "a < t > b 😀", "long " * 200]
SPELLED = ["a<t> b", f"{END}a", f"{END[:-1]}<t>"]


@pytest.fixture(scope="module")
def path(gpt2_reference, tmp_path_factory) -> Path:
    """GPT-2 with an added token and a template."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    made = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    made.add_tokens([tokenizers.AddedToken("<t>", normalized=False)])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{END} $A {END}", special_tokens=[(END, 50256)]
    )
    path: Path = tmp_path_factory.mktemp("many") / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.fixture
def models(path: Path) -> Models:
    return Models([Model("one", str(path))])


@pytest.fixture
def pair(models: Models) -> Iterator[tuple[Appliance, Appliance]]:
    """Two appliances with the model's vocabulary, which know no tokens in a text."""
    tokenizer = models.first.tokenizer
    both = Appliance(), Appliance()
    for one in both:
        one.vocab = tokenizer.checksum
        one.ids = lambda text: tokenizer.encode(
            text, add_special_tokens=False, tokens_in_text="none"
        )
        one.text = lambda ids: tokenizer.decode(ids).encode()
        one.start()
    yield both
    for one in both:
        one.stop()


def hosts(pair: tuple[Appliance, Appliance]) -> str:
    return ",".join(f"127.0.0.1:{one.port}" for one in pair)


async def ask(app: App, path: str, body: object = None) -> tuple[int, Any, dict[bytes, bytes]]:
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": path,
        "headers": [(b"content-type", b"application/json")],
    }

    messages = [{"type": "http.request", "body": json.dumps(body).encode()}]

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()  # the client does not hang up
        return messages.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"] or "null"), dict(sent[0]["headers"])


async def test_plain_prompts_go_to_the_appliances(
    models: Models, pair: tuple[Appliance, Appliance]
) -> None:
    tokenizer = models.first.tokenizer

    attach(models, hosts(pair), 16)
    app = App(models)
    for special in (True, False):
        for prompt in PLAIN + SPELLED:
            before = sum(one.data for one in pair)
            body = {"prompt": prompt, "add_special_tokens": special}
            status, got, _ = await ask(app, "/tokenize", body)
            want = tokenizer.encode(prompt, add_special_tokens=special).tolist()
            assert (status, got["tokens"]) == (200, want), prompt
            assert (sum(one.data for one in pair) > before) == (prompt in PLAIN), prompt
    for one in pair:  # what an appliance is too small for
        one.reply = lambda req, text, one=one: one.fail(req, Reason.TEXT_TOO_LONG)
    assert not app._threads._threads
    status, got, _ = await ask(app, "/tokenize", {"prompt": PLAIN[3]})
    assert got["tokens"] == tokenizer.encode(PLAIN[3]).tolist()
    assert app._threads._threads  # it was done there


async def test_ids_go_to_the_appliances(models: Models, pair: tuple[Appliance, Appliance]) -> None:
    """Those of whole answers; the text is the same. Half a character is done here."""
    tokenizer = models.first.tokenizer
    here = App(models)
    half = tokenizer.encode("half: 😀", add_special_tokens=False).tolist()[:-1]
    lists = [tokenizer.encode(text).tolist() for text in PLAIN + SPELLED if text]

    def asked(ids: list[int], skip: bool) -> list[tuple[str, Any]]:
        choices = [{"index": i, "token_ids": ids} for i in range(2)]
        answer = {"request_id": "r", "choices": choices}
        how = {"skip_special_tokens": skip}
        return [
            ("/detokenize", {"tokens": ids}),
            (
                "/v1/completions/derender",
                {"generate_responses": [answer], "completion_request": how},
            ),
            (
                "/v1/chat/completions/derender",
                {"generate_response": answer, "chat_request": how | {"messages": []}},
            ),
        ]

    requests = [one for ids in (*lists, half) for skip in (True, False) for one in asked(ids, skip)]
    want = [await ask(here, path, body) for path, body in requests]
    attach(models, hosts(pair), 16)
    app = App(models)
    for (path, body), (status, answer, _) in zip(requests, want, strict=True):
        before = sum(one.data for one in pair)
        got = await ask(app, path, body)
        for one in (got[1], answer):
            one.pop("created", None)
        assert (status, *got[:2]) == (200, 200, answer), body
        assert sum(one.data for one in pair) - before >= (1 if path == "/detokenize" else 2)
    for reason in (Reason.TEXT_TOO_LONG, Reason.BUSY):
        for one in pair:
            one.reply = lambda req, _, one=one, reason=reason: one.fail(req, reason)
        for path, body in asked(lists[0], False):
            status, _, headers = await ask(app, path, body)
            assert status == (200 if reason == Reason.TEXT_TOO_LONG else 429), path
            assert (b"retry-after" in headers) == (status == 429)


async def test_the_first_refusal_ends_the_others(
    models: Models, pair: tuple[Appliance, Appliance]
) -> None:
    choices = [{"index": i, "token_ids": [464]} for i in range(1000)]
    body = {"generate_responses": [{"request_id": "r", "choices": choices}]}

    attach(models, hosts(pair), 1024)
    before = sum(one.data for one in pair)
    for one in pair:
        one.reply = lambda req, _, one=one: one.fail(req, Reason.ID)
    assert (await ask(App(models), "/v1/completions/derender", body))[0] == 503
    await asyncio.sleep(0)  # what waited for the client to hang up ends
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert sum(one.data for one in pair) - before <= AT_ONCE


def test_names_are_found_as_one_after_the_other_would() -> None:
    random = Random(1)
    for _ in range(2000):
        names = {"".join(random.choices("ab.(é\n", k=random.randint(1, 4))) for _ in range(9)}
        found = re.compile(_any_of(sorted(names)))
        text = "".join(random.choices("ab.(é\n", k=9))
        assert (found.search(text) is not None) == any(name in text for name in names), names


async def test_it_says_when_none_answers(models: Models, pair: tuple[Appliance, Appliance]) -> None:
    attach(models, hosts(pair), 16)
    app = App(models)
    assert (await ask(app, "/ready"))[0] == 200
    for one in pair:
        one.reply = lambda req, text, one=one: one.fail(req, Reason.SHARE)
    status, got, headers = await ask(app, "/tokenize", {"prompt": "a"})
    assert (status, got["error"]["code"], headers[b"retry-after"]) == (429, 429, b"1")
    for one in pair:
        one.stop()  # its port is closed
    status, got, headers = await ask(app, "/tokenize", {"prompt": "a"})
    assert (status, headers[b"retry-after"]) == (503, b"1")
    assert "no appliance answers" in got["error"]["message"]
    assert (await ask(app, "/ready"))[0] == 503
    assert (await ask(app, "/health"))[0] == 200


def test_another_vocabulary_is_refused_by_both_names(
    models: Models, pair: tuple[Appliance, Appliance]
) -> None:
    wanted = f"{models.first.tokenizer.checksum:08x}"
    pair[1].vocab = 0x12345678
    says = f"{pair[1].port}: its vocabulary is 12345678, that of --model one is {wanted}"
    with pytest.raises(ValueError, match=says):
        attach(models, hosts(pair), 16)


def connected(at: Path, server: subprocess.Popen[str]) -> socket.socket:
    """As soon as it listens, which is a moment after its name is there."""
    until = time.monotonic() + 60
    while True:
        connecting = socket.socket(socket.AF_UNIX)
        try:
            connecting.connect(str(at))
        except OSError:
            connecting.close()
            assert server.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        else:
            return connecting


def test_the_command_serves_by_appliances(
    path: Path, pair: tuple[Appliance, Appliance], tmp_path: Path
) -> None:
    """With the event loop that it runs in, while one of two does not answer."""
    at = tmp_path / "socket"
    command = [sys.executable, "-m", "dpdk_tokd.gateway.cli", "--model", f"one={path}"]
    command += ["--uds", str(at), "--appliance", hosts(pair)]
    pair[0].answering = False
    want = Tokenizer.load(path).encode
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as gateway:
        try:
            client = http.client.HTTPConnection("localhost")
            client.sock = connected(at, gateway)
            for i in range(20):
                body = json.dumps({"prompt": f"text {i}"})
                client.request("POST", "/tokenize", body, {"Content-Type": "application/json"})
                assert json.load(client.getresponse())["tokens"] == want(f"text {i}").tolist()
        finally:
            gateway.send_signal(signal.SIGTERM)
            _, log = gateway.communicate(timeout=60)
    assert f"127.0.0.1:{pair[0].port}: no progress" in log and "Traceback" not in log, log
    assert pair[1].data >= 20
