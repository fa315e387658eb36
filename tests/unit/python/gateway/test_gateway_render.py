# SPDX-License-Identifier: BSD-3-Clause
"""Rendering and derendering in tokd-gateway, beyond what tests/golden/serving/test_vllm_render.py
compares with vLLM's own answers."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import render_models
import test_gateway

pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
pytest.importorskip("jinja2", reason="pip install 'dpdk-tokd[chat]'")
from dpdk_tokd.gateway import content, render
from dpdk_tokd.gateway.app import App
from dpdk_tokd.gateway.content import takes_parts
from dpdk_tokd.gateway.errors import Refused
from dpdk_tokd.gateway.models import Model, Models
from dpdk_tokd.gateway.render import request_name
from dpdk_tokd.tokenizer import chat

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
USER = {"role": "user", "content": "the of"}
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model("m", str(render_models.make("turns", tmp_path)))


@pytest.fixture
def app(model: Model) -> App:
    return App(Models([model]))


def ask(app: App, path: str, **body: Any) -> Any:
    return json.loads(app.work[path](app.models, json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("path", "body", "missing"),
    [
        ("/v1/messages/render", {}, "/v1/messages/render"),
        ("/v1/responses/render", {}, "/v1/responses/render"),
        (
            f"{CHAT}/render",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "content of type 'image_url'",
        ),
        (f"{CHAT}/render", {"messages": [USER], "tools": [TOOL]}, "parser of tool calls"),
        (
            f"{CHAT}/derender",
            {
                "generate_response": {"choices": []},
                "chat_request": {"messages": [USER], "tools": [TOOL]},
            },
            "parser of tool calls",
        ),
        (f"{COMPLETIONS}/render", {"prompt_embeds": "AA=="}, "prompt_embeds"),
        (
            f"{COMPLETIONS}/render",
            {"prompt": "a", "structured_outputs": {"structural_tag": "{}"}},
            "structural_tag",
        ),
    ],
)
def test_what_is_missing_is_named(app: App, path: str, body: Any, missing: str) -> None:
    with pytest.raises(Refused, match=missing) as refused:
        ask(app, path, **body)
    assert refused.value.status == 501
    assert json.loads(refused.value.body)["error"]["type"] == "NotImplementedError"


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"messages": [{"role": "assistant", "tool_calls": 7}]}, r"messages\[0\].tool_calls"),
        ({"messages": [{"role": "user", "content": {}}]}, "expected a text or a list, got dict"),
        ({"response_format": {"type": "json_schema", "json_schema": [1]}}, "schema: expected an"),
        ({"response_format": {"type": "xml"}}, "type 'xml': expected text, json_object or"),
    ],
)
def test_what_is_wrong_is_named(app: App, more: Any, wrong: str) -> None:
    with pytest.raises(Refused, match=wrong) as refused:
        ask(app, f"{CHAT}/render", **({"messages": [USER]} | more))
    assert refused.value.status == 400


def test_without_jinja_chats_are_not_there(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr(content, "takes_parts", takes_parts.__wrapped__)
    monkeypatch.setattr(chat, "compiled", chat.compiled.__wrapped__)
    with pytest.raises(Refused, match=r"pip install 'dpdk-tokd\[chat\]'") as refused:
        ask(app, f"{CHAT}/render", messages=[USER])
    assert refused.value.status == 501


@pytest.mark.parametrize("own", [None, "", "other"])
def test_rendered_prompts_have_block_keys(app: App, model: Model, own: str | None) -> None:
    """The salt is the request's, unless another is given for the keys."""
    scheme: Any = "vllm-sha256-cbor"
    asked = {"scheme": scheme, "block_size": 2, "cache_salt": own}
    more = {"cache_salt": "salt", "block_keys": asked}
    (completion,) = ask(app, f"{COMPLETIONS}/render", prompt="the of", **more)
    for answer in (completion, ask(app, f"{CHAT}/render", messages=[USER], **more)):
        salt = "salt" if own is None else own
        keys = model.tokenizer.block_keys(answer["token_ids"], scheme, 2, cache_salt=salt)
        assert len(keys) and answer["block_keys"] == [bytes(key).hex() for key in keys]
        assert answer["cache_salt"] == "salt"


def test_a_template_of_the_request_is_for_trusted_clients(model: Model) -> None:
    body = {"messages": [USER], "chat_template": "{{ messages[0].content }}"}
    with pytest.raises(Refused, match="--trust-request-chat-template is not set"):
        ask(App(Models([model])), f"{CHAT}/render", **body)
    app = App(Models([model], trust_request_chat_template=True))
    ids = model.tokenizer.encode("the of", add_special_tokens=False).tolist()
    answer = test_gateway.ask(app, f"{CHAT}/render", body).json()
    assert answer["token_ids"] == ids
    body["chat_template_kwargs"] = {"chat_template": body.pop("chat_template")}
    assert test_gateway.ask(app, f"{CHAT}/render", body).json()["token_ids"] == ids


def test_a_template_that_does_not_end_is_stopped(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the paths that run it do so in threads."""
    monkeypatch.setattr(render, "TEMPLATE_S", 0.05)
    app = App(Models([model], trust_request_chat_template=True))
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    for path in ("/tokenize", f"{CHAT}/render"):
        answer = test_gateway.ask(app, path, {"messages": [USER], "chat_template": endless})
        assert answer.error()[:2] == (400, "the chat template takes more than 0.05 s")


def test_the_clients_own_name_is_kept(app: App) -> None:
    assert ask(app, f"{CHAT}/render", messages=[USER], request_id="a")["request_id"] == "chatcmpl-a"
    token = request_name.set("b")  # x-request-id
    try:
        answers = ask(app, f"{COMPLETIONS}/render", prompt=["a", "b"], request_id="a")
        assert [answer["request_id"] for answer in answers] == ["cmpl-b-0", "cmpl-b-1"]
    finally:
        request_name.reset(token)


@pytest.mark.parametrize("kind", [CHAT, COMPLETIONS])
@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        ([{"token_id": 1, "logprob": 0.0}] * 513, r"logprobs.content length \(513\)"),
        (
            [{"token_id": 1, "logprob": 0.0, "top_logprobs": [{"token_id": 1, "logprob": 0}] * 21}],
            r"top_logprobs count \(21\)",
        ),
    ],
)
def test_a_chunk_has_the_limits_of_an_answer(
    app: App, kind: str, logprobs: Any, message: str
) -> None:
    chunk = {"choices": [{"index": 0, "token_ids": [1], "logprobs": {"content": logprobs}}]}
    with pytest.raises(Refused, match=message) as refused:
        ask(app, f"{kind}/derender", stream=True, generate_chunk=chunk)
    assert refused.value.status == 400


@pytest.mark.parametrize("offsets", [(0, 1 << 62), (1 << 62, 1 << 62), (1, 0), (0, 66)])
@pytest.mark.parametrize("kind", [CHAT, COMPLETIONS])
def test_a_state_points_into_its_tokens(app: App, kind: str, offsets: tuple[int, int]) -> None:
    """Else what waits for the rest of a character would be decoded again with each id."""
    chunk = {"choices": [{"index": 0, "token_ids": [1]}]}
    state = {"prev_tokens": ["a"], "prefix_offset": offsets[0], "read_offset": offsets[1]}
    with pytest.raises(Refused, match="prefix_offset") as refused:
        ask(app, f"{kind}/derender", stream=True, generate_chunk=chunk, stream_state=state)
    assert refused.value.status == 400


def test_an_id_between_others_may_be_none(tmp_path: Path) -> None:
    path = render_models.make("turns", tmp_path) / "tokenizer.json"
    document = json.loads(path.read_text())
    vocab = document["model"]["vocab"]
    gap = len(vocab)
    vocab["zz"] = gap + 1
    path.write_text(json.dumps(document))
    app = App(Models([Model("m", str(path.parent))]))
    with pytest.raises(Refused, match=rf"tokens\[0\]: {gap}: expected an id") as refused:
        ask(app, "/detokenize", tokens=[gap])
    assert refused.value.status == 400
    choices = [{"index": 0, "token_ids": [gap + 1, gap]}]
    answer = ask(app, f"{CHAT}/derender", generate_response={"choices": choices})
    assert answer["choices"][0]["message"]["content"] == "zz"


def test_pieces_of_an_answer_are_the_whole(app: App, model: Model) -> None:
    """However it is cut, never with part of a character."""
    rng = random.Random(7)
    text = "naïve 日本 😀👍🏽 the of and\n" * 3
    ids = model.tokenizer.encode(text, add_special_tokens=False).tolist()
    prompt = model.tokenizer.encode("the").tolist()
    for _ in range(20):
        state, found, at = None, "", 0
        while at < len(ids):
            n = rng.randint(1, 6)
            chunk = {"choices": [{"index": 0, "token_ids": ids[at : at + n]}]}
            answer = ask(
                app,
                f"{COMPLETIONS}/derender",
                stream=True,
                generate_chunk=chunk,
                stream_state=state,
                prompt_token_ids=prompt,
            )
            piece, state = answer["chunk"]["choices"][0]["text"], answer["stream_state"]
            assert "\ufffd" not in piece and len(state["prev_tokens"]) < 16
            found, at = found + piece, at + n
        assert found == " " + text


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({}, 512),
        ({"n_positions": 100, "seq_len": 300}, 100),
        ({"model_max_length": 4096}, 4096),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 2048),
        ({"rope_parameters": {"full": {"rope_type": "dynamic", "factor": 2}}}, 1024),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, 512),
        ({"rope_scaling": {"rope_type": "longrope"}, "original_max_position_embeddings": 64}, 64),
        ({"model_type": "gemma3_text", "rope_scaling": {"type": "linear", "factor": 8}}, 512),
    ],
)
def test_a_context_is_as_long_as_the_engines(
    tmp_path: Path, config: dict[str, Any], length: int
) -> None:
    folder = render_models.make("turns", tmp_path)
    (folder / "config.json").write_text(json.dumps(render_models.CONFIG | config))
    assert Model("m", str(folder)).max_model_len == length


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("{% for m in messages %}{{ m.content }}{% endfor %}", False),
        (
            "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}",
            True,
        ),
        ("{% for m in messages %}{% for p in m['content'] | list %}{% endfor %}{% endfor %}", True),
        (
            (
                "{% set rest = messages[1:] %}{% for m in rest %}{% for p in m.content %}{% endfor %}"
                "{% endfor %}"
            ),
            True,
        ),
        (
            (
                "{% macro say(c) %}{% for p in c %}{{ p }}{% endfor %}{% endmacro %}"
                "{% for m in messages %}{{ say(m.content) }}{% endfor %}"
            ),
            True,
        ),
        (
            (
                "{% macro say(c) %}{% for p in c %}{{ p }}{% endfor %}{% endmacro %}"
                "{% for m in messages %}{{ say(m.role) }}{% endfor %}"
            ),
            False,
        ),
        ("{% for content in messages %}{% for p in content %}{% endfor %}{% endfor %}", True),
        ("{% for m in messages %}{% for p in m.parts %}{% endfor %}{% endfor %}", False),
        ("{% for i, m in messages %}{% for p in m.content %}{% endfor %}{% endfor %}", False),
        ("{% for m in messages %}", False),
    ],
)
def test_the_template_says_what_content_is(template: str, parts: bool) -> None:
    assert takes_parts(template) is parts
