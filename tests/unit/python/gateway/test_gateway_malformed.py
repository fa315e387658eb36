# SPDX-License-Identifier: BSD-3-Clause
"""Each path of tokd-gateway with bodies that are wrong somewhere: refused in its own shape, or
answered, but never an error of the gateway."""

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import render_models

pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
pytest.importorskip("jinja2", reason="pip install 'dpdk-tokd[chat]'")
from dpdk_tokd.gateway.app import App
from dpdk_tokd.gateway.models import Model, Models
from test_gateway import ask
from test_gateway_embeddings import embedder

TEI = ["error", "error_type"]
VLLM = ["message", "type", "param", "code"]
NESTED: Any = 1
for _ in range(600):
    NESTED = [NESTED]
WRONG = [None, True, -1, 1.5, 2**63, 2**70, 1e300, "", "x", "\ud800", [], {}, [None], [-1], [2**70]]
WRONG += [["x"], [[]], {"x": 2**70}, NESTED]
DIGITS = "9" * sys.get_int_max_str_digits()
WRONG += [int(DIGITS), [int(DIGITS)] * 9, {DIGITS + "9": 1}]  # what int() and str() do not take
BODIES = [b"", b"null", b"[]", b"{", b'"', b"\xff", b"[" * 10**5, b'{"model":' * 10**4, b"1e999"]

CHAT = {
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "the of"}]},
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "user", "content": "the"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "tool_choice": "none",
    "documents": [{"a": "b"}],
    "chat_template_kwargs": {"a": 1},
}
SAMPLING = {
    "temperature": 1.0,
    "n": 1,
    "top_k": 1,
    "min_tokens": 0,
    "logit_bias": {"1": 1},
    "stop": ["x"],
    "stop_token_ids": [1],
    "allowed_token_ids": [1],
    "bad_words": ["x"],
    "truncate_prompt_tokens": 1,
    "thinking_token_budget": 1,
    "vllm_xargs": {"x": [1]},
    "kv_transfer_params": {"x": 1},
    "repetition_detection": {"max_pattern_size": 1, "min_pattern_size": 1, "min_count": 2},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
    "stream": True,
    "stream_options": {"include_usage": True},
    "stream_interval": 1,
    "priority": 1,
    "seed": 1,
    "max_tokens": 1,
    "return_token_offsets": True,
}
POSITION = {"token_id": 300, "logprob": 0.5, "top_logprobs": [{"token_id": 100, "logprob": 1}]}
CHOICE = {
    "index": 0,
    "token_ids": [300, 301],
    "finish_reason": "stop",
    "stop_reason": 1,
    "logprobs": {"content": [POSITION]},
}
ANSWER = {
    "request_id": "x",
    "choices": [CHOICE],
    "prompt_token_ids": [300],
    "prompt_logprobs": [{"1": {"logprob": 1, "rank": 1}}],
    "metrics": {"x": 1},
    "kv_transfer_params": {"x": 1},
}
CHUNK = {
    "stream": True,
    "generate_chunk": {
        "choices": [CHOICE],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        "metrics": {"x": 1},
    },
    "stream_state": {
        "prev_tokens": ["the", "of"],
        "prefix_offset": 0,
        "read_offset": 1,
        "logprob_context_token_ids": [300],
        "logprob_text_offset": 1,
        "output_token_ids": [1],
        "output_chunk_lens": [1],
        "last_tool_call_ids": ["x"],
    },
    "prompt_tokens": 1,
    "prompt_token_ids": [300],
}
KEYS = {"scheme": "vllm-sha256-cbor", "block_size": 1, "seed": "x", "model": "x", "cache_salt": "x"}
VALID: list[tuple[str, dict[str, Any]]] = [
    ("/", {"inputs": ["the"], "dimensions": 1, "truncate": True}),
    ("/decode", {"ids": [[300], [301]]}),
    ("/detokenize", {"tokens": [300]}),
    ("/embed", {"inputs": [[300]], "prompt_name": "query"}),
    ("/tokenize", {"inputs": ["the"], "add_special_tokens": True}),
    ("/tokenize", {"prompt": "the", "return_token_strs": True, "block_keys": KEYS}),
    ("/tokenize", CHAT),
    ("/v1/chat/completions/derender", {"generate_response": ANSWER, "prompt_tokens": 1}),
    ("/v1/chat/completions/derender", CHUNK | {"chat_request": {"messages": []}}),
    ("/v1/chat/completions/render", CHAT | SAMPLING | {"logprobs": True, "top_logprobs": 1}),
    ("/v1/completions/derender", {"generate_responses": [ANSWER], "prompt_tokens": [1]}),
    ("/v1/completions/derender", CHUNK | {"completion_request": {"prompt": "x"}}),
    ("/v1/completions/render", {"prompt": ["the", "of"], "logprobs": 1} | SAMPLING),
    (
        "/v1/completions/render",
        {"prompt": [[300], [301]], "truncate_prompt_tokens": -1, "block_keys": KEYS},
    ),
    ("/v1/embeddings", {"input": ["the"], "encoding_format": "base64", "dimensions": 1}),
    ("/v1/messages/render", {}),
    ("/v1/responses/render", {}),
]


@pytest.fixture
def app(tmp_path: Path) -> App:
    made = App(Models([Model("m", str(render_models.make("turns", tmp_path)))]))
    made.embeddings.add("m", embedder(made.models.first))
    return made


def mutated(whole: dict[str, Any], at: Any = None) -> Iterator[dict[str, Any]]:
    """The body with each of its parts replaced by each wrong value, and left out."""
    at = whole if at is None else at
    for key in [*at] if isinstance(at, dict) else range(len(at)):
        right = at[key]
        for wrong in WRONG:
            at[key] = wrong
            yield whole
        if isinstance(at, dict):
            del at[key]
            yield whole
        at[key] = right
        if isinstance(right, (dict, list)):
            yield from mutated(whole, right)


@pytest.mark.parametrize(("path", "valid"), VALID)
def test_what_is_malformed_is_refused(app: App, path: str, valid: dict[str, Any]) -> None:
    right = ask(app, path, valid)
    assert right.status == (501 if path.endswith(("messages/render", "responses/render")) else 200)
    bodies = [json.dumps(one).encode() for one in mutated(copy.deepcopy(valid))]
    shapes = [TEI] if path in app.tei else [TEI, VLLM] if path == "/tokenize" else [VLLM]
    statuses = set()
    for body in BODIES + bodies:
        answer = ask(app, path, body)
        statuses.add(answer.status)
        found = answer.json()
        if answer.status != 200:
            assert 400 <= answer.status < 500 or answer.status == 501, body[:2000]
            assert [*(found if "error_type" in found else found["error"])] in shapes, body[:2000]
    assert statuses & {400, 501}


def test_all_paths_are_tried(app: App) -> None:
    assert {path for path, _ in VALID} == {*app.work, *app.later}
