# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway's application: answers, refusals and limits, without a server."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpdk_tokd
import pytest

pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
pytest.importorskip("prometheus_client", reason="pip install 'dpdk-tokd[gateway]'")
from dpdk_tokd.gateway.app import App, Limits
from dpdk_tokd.gateway.models import Model, Models
from prometheus_client.parser import text_string_to_metric_families

TEXT = "The quick brown fox\n\tjumps 😀"
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
CONFIG = {"chat_template": TEMPLATE, "eos_token": "<|endoftext|>"}


@pytest.fixture
def folder(gpt2_file: Path, tmp_path: Path) -> Path:
    shutil.copy(gpt2_file, tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.fixture
def model(folder: Path, gpt2_file: Path) -> Model:
    return Model("gpt2", str(folder / gpt2_file.name), 100)


class Answer:
    def __init__(self, sent: list[Any]) -> None:
        start, end = sent
        self.status, self.headers = int(start["status"]), dict(start["headers"])
        self.body = end["body"]
        assert self.headers[b"content-length"] == b"%d" % len(self.body)

    def json(self) -> Any:
        return json.loads(self.body)

    def error(self) -> tuple[int, str, str | None]:
        """Its status, which the body must repeat, message and param."""
        error = self.json()["error"]
        assert error["code"] == self.status and error["type"]
        return self.status, error["message"], error["param"]


def ask(
    app: App, path: str, body: object = None, *, method: str | None = None, **headers: str
) -> Answer:
    """A request in pieces of 7 bytes, JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": "application/json"} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    scope = {
        "type": "http",
        "method": method or ("GET" if body is None else "POST"),
        "path": path,
        "headers": [(k.encode(), v.encode()) for k, v in given.items()],
    }
    pieces = [data[i : i + 7] for i in range(0, len(data), 7)] or [b""]
    messages = [
        {"type": "http.request", "body": piece, "more_body": i + 1 < len(pieces)}
        for i, piece in enumerate(pieces)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()  # the client does not hang up
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return Answer(sent)


@pytest.fixture
def app(model: Model) -> App:
    return App(Models([model], max_tokens=200))


def test_a_prompt_becomes_ids_and_ids_text(app: App, model: Model) -> None:
    ids = model.tokenizer.encode(TEXT).tolist()
    answer = ask(app, "/tokenize", {"prompt": TEXT, "model": "gpt2", "unknown": 1})
    want = {"count": len(ids), "max_model_len": 100, "tokens": ids, "token_strs": None}
    assert answer.status == 200 and answer.json() == want and [*answer.json()] == [*want]
    answer = ask(app, "/tokenize", {"prompt": TEXT, "return_token_strs": True})
    assert answer.json()["token_strs"][:3] == ["The", "Ġquick", "Ġbrown"]
    assert ask(app, "/detokenize", {"tokens": ids}).json() == {"prompt": TEXT}
    assert ask(app, "/tokenize", {"prompt": ""}).json()["tokens"] == []
    long = " " * 40_000 + TEXT  # which a thread works on
    want = model.tokenizer.encode(long).tolist()
    whole = App(Models([model]))
    assert ask(whole, "/tokenize", {"prompt": long}).json()["tokens"] == want


def test_a_conversation_is_rendered(app: App, model: Model) -> None:
    said = [{"role": "user", "content": "one two"}]
    answer = ask(app, "/tokenize", {"messages": said})
    assert answer.json()["tokens"] == model.tokenizer.encode("user: one two<|endoftext|>").tolist()
    for name, value in (
        ("chat_template", "{{ 1 }}"),
        ("chat_template_kwargs", {"chat_template": "{{ 1 }}"}),
        ("chat_template_kwargs", {"tokenize": True}),
        ("messages", []),
    ):
        answer = ask(app, "/tokenize", {"messages": said, name: value})
        assert answer.status == 400, value
    both = {"messages": said, "continue_final_message": True, "add_generation_prompt": True}
    assert "Cannot set both" in ask(app, "/tokenize", both).error()[1]


@pytest.mark.parametrize(
    ("path", "body", "status", "message", "param"),
    [
        ("/tokenize", b"{", 400, "not JSON", None),
        ("/tokenize", b'{"prompt": "\xff"}', 400, "not JSON", None),
        ("/tokenize", [], 400, "got `array`", None),
        ("/tokenize", {}, 400, "either `prompt` or `messages`", None),
        ("/tokenize", {"prompt": "a", "messages": []}, 400, "either", None),
        ("/tokenize", {"prompt": ["a"]}, 400, "got `array`", "prompt"),
        ("/tokenize", {"prompt": "a " * 200}, 400, "prompt: 201 tokens: at most 200", "prompt"),
        ("/detokenize", {"tokens": [1] * 201}, 400, "tokens: 201 tokens: at most 200", "tokens"),
        ("/tokenize", {"prompt": "a", "model": "x"}, 404, "`x` does not exist.*gpt2", "model"),
        ("/detokenize", {}, 400, "tokens", "tokens"),
        (
            "/detokenize",
            {"tokens": [1, -1]},
            400,
            r"tokens\[1\]: -1: expected an id of the vocabulary, 0 to 50256",
            "tokens",
        ),
        ("/detokenize", {"tokens": [50257]}, 400, r"tokens\[0\]: 50257", "tokens"),
        ("/detokenize", {"tokens": [1.5]}, 400, "got `float`", "tokens[0]"),
        ("/nowhere", {}, 404, "Not Found", None),
    ],
)
def test_what_is_wrong_is_named(
    app: App, path: str, body: object, status: int, message: str, param: str | None
) -> None:
    got = ask(app, path, body).error()
    assert got[::2] == (status, param)
    assert re.search(message, got[1]), got[1]


def test_methods_types_and_sizes(model: Model) -> None:
    app = App(Models([model]), Limits(body=100))
    refused = ask(app, "/tokenize", method="GET")
    assert refused.status == 405 and refused.headers[b"allow"] == b"POST"
    refused = ask(app, "/health", method="PUT")
    assert refused.status == 405 and refused.headers[b"allow"] == b"GET, HEAD"
    assert ask(app, "/tokenize", {"prompt": "a"}, content_type="text/plain").status == 400
    assert ask(app, "/tokenize", {"prompt": "a" * 85}).status == 200
    assert ask(app, "/tokenize", {"prompt": "a" * 100}).status == 413
    assert ask(app, "/tokenize", {"prompt": "a"}, content_length="101").status == 413
    app.in_progress = app.limits.requests
    busy = ask(app, "/tokenize", {"prompt": "a"})
    assert busy.error()[0] == 503 and busy.headers[b"retry-after"] == b"1"
    app.in_progress, app.bytes_held = 0, 1600
    busy = ask(app, "/tokenize", {"prompt": "a"})
    assert busy.status == 503 and busy.headers[b"retry-after"] == b"1"
    assert (app.in_progress, app.bytes_held) == (0, 1600)


def test_a_key_is_asked_for(model: Model) -> None:
    app = App(Models([model]), keys=("one", "two"))
    for right in ("Bearer one", "bearer two"):
        assert ask(app, "/tokenize", {"prompt": "a"}, authorization=right).status == 200
    for wrong in ("", "one", "Bearer", "Bearer three", "Basic one"):
        assert ask(app, "/tokenize", {"prompt": "a"}, authorization=wrong).error()[0] == 401
        refused = ask(app, "/v1/models", authorization=wrong)
        assert (refused.status, refused.headers[b"www-authenticate"]) == (401, b"Bearer")
        assert ask(app, "/health", authorization=wrong).status == 200


def test_who_it_is_and_how_it_is(app: App, folder: Path) -> None:
    card = ask(app, "/v1/models").json()["data"][0]
    assert card["id"] == "gpt2" and card["max_model_len"] == 100
    assert ask(app, "/version").json() == {"version": dpdk_tokd.__version__}
    for path in ("/health", "/ping", "/ready"):
        answer = ask(app, path)
        assert (answer.status, answer.body) == (200, b"")
    assert ask(app, "/health", x_request_id="mine").headers[b"x-request-id"] == b"mine"
    for unfit in ("", "two words", "x" * 129, "é"):
        named = ask(app, "/health", x_request_id=unfit).headers[b"x-request-id"]
        assert re.fullmatch(rb"[0-9a-f]{32}", named)


@pytest.mark.parametrize(
    ("scheme", "more"),
    [("llm-d", {}), ("llm-d", {"model": "x", "block_size": 2}), ("vllm-sha256-cbor", {}),
     ("vllm-xxhash-cbor", {"seed": "0", "cache_salt": "s", "block_size": 4})],
)  # fmt: skip
def test_block_keys_are_given_on_request(
    app: App, model: Model, scheme: Any, more: dict[str, Any]
) -> None:
    prompt = TEXT * 5
    ids = model.tokenizer.encode(prompt)
    keys = model.tokenizer.block_keys(ids, scheme, **{"model": "gpt2"} | more)
    want = [f"{key:016x}" if scheme == "llm-d" else bytes(key).hex() for key in keys]
    asked = {"prompt": prompt, "block_keys": {"scheme": scheme} | more}
    answer = ask(app, "/tokenize", asked).json()
    assert answer["tokens"] == ids.tolist() and answer["block_keys"] == want and len(want) > 1
    assert ask(app, "/tokenize", asked | {"prompt": "a"}).json()["block_keys"] == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "scheme"),
        ({"scheme": "x"}, "Invalid enum value 'x'"),
        ({"scheme": "llm-d", "lora": 1}, "unknown field `lora`"),
        ({"scheme": "llm-d", "block_size": 0}, "block_keys: block_size: 0"),
        ({"scheme": "vllm-xxhash-cbor"}, "block_keys: .*seed"),
    ],
)
def test_wrong_block_keys_are_named(app: App, asked: object, message: str) -> None:
    error = ask(app, "/tokenize", {"prompt": "a", "block_keys": asked}).error()
    assert error[0] == 400 and re.search(message, error[1]), error


def test_metrics_are_those_of_the_requests(app: App) -> None:
    body = {"prompt": "one two"}
    ask(app, "/tokenize", body)
    ask(app, "/tokenize", {"prompt": 1.5})
    ask(app, "/../etc", body)
    answer = ask(app, "/metrics")
    assert answer.headers[b"content-type"].startswith(b"text/plain; version=")
    families = {one.name: one for one in text_string_to_metric_families(answer.body.decode())}

    def samples(name: str, suffix: str = "") -> dict[tuple[str, ...], float]:
        found = [s for s in families[name].samples if s.name == name + suffix]
        return {tuple(s.labels.values()): s.value for s in found}

    requests = {("/tokenize", "200"): 1, ("/tokenize", "400"): 1, ("other", "404"): 1}
    assert samples("tokd_gateway_requests", "_total") == requests
    counts = samples("tokd_gateway_request_seconds", "_count")
    assert counts == {("/tokenize",): 2, ("other",): 1}
    buckets = samples("tokd_gateway_request_seconds", "_bucket")
    assert buckets["+Inf", "/tokenize"] == 2
    assert samples("tokd_gateway_tokens", "_total") == {("gpt2",): 2}
    sent = len(json.dumps(body)) + len(json.dumps({"prompt": 1.5}))
    assert samples("tokd_gateway_bytes", "_total")[("in",)] == sent
    assert samples("tokd_gateway_requests_in_progress") == {(): 0}


def test_metrics_are_those_of_the_document(app: App) -> None:
    page = (Path(__file__).parents[4] / "doc/user/gateway.md").read_text()
    families = text_string_to_metric_families(ask(app, "/metrics").body.decode())
    ours = {one.name for one in families if one.name.startswith("tokd_")}
    assert ours == set(re.findall(r"^\| `(tokd_gateway_\w+?)(?:_total)?[`{]", page, re.MULTILINE))


def test_a_name_has_the_files_beside_its_vocabulary(
    folder: Path, gpt2_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those where the gateway was started."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.json").write_text('{"n_positions": 7}')
    (folder / "config.json").write_text('{"n_positions": 9}')
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("TOK_VOCAB_PATH", str(folder))
    model = Model("gpt2", gpt2_file.stem)
    assert (model.max_model_len, model.folder) == (9, str(folder))


def test_how_long_a_context_is(folder: Path, gpt2_file: Path) -> None:
    path = str(folder / gpt2_file.name)
    assert Model("a", path).max_model_len == 1 << 20
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 2048}))
    assert Model("a", path).max_model_len == 2048
    config = {"text_config": {"max_position_embeddings": 512, "n_positions": 1024}}
    (folder / "config.json").write_text(json.dumps(config))
    assert Model("a", path).max_model_len == 512
    assert Model("a", path, 10).max_model_len == 10
    with pytest.raises(ValueError, match="--model a=…: the name is given twice"):
        Models([Model("a", path), Model("a", path)])
    (folder / "config.json").write_text("[]")
    with pytest.raises(ValueError, match=r"config\.json: expected an object, got list"):
        Model("a", path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--model", "x"], "'x': expected NAME=VOCAB, for example .* or gpt2=gpt2"),
        (["--model", "x=/nowhere"], "tokd-gateway: .*/nowhere"),
        (["--model", "x=y", "--max-body", "0"], "'0': expected a whole number above 0"),
    ],
)
def test_the_command_says_what_is_wrong(given: list[str], message: str) -> None:
    command = [sys.executable, "-m", "dpdk_tokd.gateway.cli", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and re.search(message, done.stderr), done.stderr
