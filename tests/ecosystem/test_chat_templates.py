# SPDX-License-Identifier: BSD-3-Clause
"""apply_chat_template beside that of `transformers`: text, ids, and what is refused.

Templates: one that uses what templates use, and the published ones of the package `trl`, whose
files alone are needed (pip install --no-deps trl).
"""

import importlib.util
import json
import lzma
from pathlib import Path
from typing import Any

import dpdk_tokd
import pytest

transformers = pytest.importorskip("transformers", reason="pip install transformers")

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vocab"
VOCABULARIES = {
    "llama3": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "qwen3": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    "gemma3": {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"},
}
OWN = """\
{{- bos_token }}
{%- set found = namespace(last=-1) %}
{%- for m in messages %}
    {%- if m.role == "user" %}{% set found.last = loop.index0 %}{% endif %}
{%- endfor %}
{% for m in messages %}
    {% if not m.content is defined %}
        {% continue %}
    {% endif %}
<{{ m.role }}>
    {% if m.content is string %}
{{ m.content | trim }}
    {% else %}
        {% for part in m.content if part.type == "text" %}{{ part.text }}{% endfor %}

    {% endif %}
    {% generation %}
    {{ m.tool_calls | tojson(indent=2) if m.tool_calls }}{{ m.reasoning_content or "" }}
    {% endgeneration %}
{{ eos_token ~ loop.index }}
{% endfor %}
{{ tools | tojson if tools else "" }}{{ documents | tojson if documents }}{{ found.last }}
{% if add_generation_prompt %}<assistant>{{ "<think>" if enable_thinking is not false }}{% endif %}
{% if messages[0].content == "raise" %}{{ raise_exception("as asked") }}{% endif %}
"""
USER = {"role": "user", "content": '  What of 1 < 2 & "drei"? naïve 😀\n'}
ANSWER = {"role": "assistant", "content": "Yes.\n\n  It is.  "}
SYSTEM = {"role": "system", "content": "Be brief."}
THOUGHT = {"role": "assistant", "reasoning_content": "hm, <so>", "content": "So."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "type": "function",
            "id": "call12345",
            "function": {
                "name": "weather",
                "arguments": {"city": "Zürich", "days": [1, 2.5, None]},
            },
        }
    ],
}
RESULT = {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": '{"°C": 20}'}
PARTS = {
    "role": "user",
    "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}],
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a city's days",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "which"}},
            "required": ["city"],
        },
    },
}
CONVERSATIONS: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
    ([USER], {}),
    ([USER], {"add_generation_prompt": True}),
    ([USER], {"add_generation_prompt": True, "enable_thinking": False}),
    ([SYSTEM, USER, ANSWER, USER], {"add_generation_prompt": True}),
    ([SYSTEM, USER, ANSWER], {"continue_final_message": True}),
    ([USER, {"role": "assistant", "content": "Yes,"}], {"continue_final_message": True}),
    ([USER, THOUGHT, USER], {"add_generation_prompt": True}),
    ([USER, {"role": "assistant", "thinking": "so", "content": "x"}], {}),
    ([SYSTEM, USER], {"tools": [TOOL, TOOL], "add_generation_prompt": True}),
    ([USER, CALL, RESULT], {"tools": [TOOL], "add_generation_prompt": True}),
    ([USER, CALL, RESULT, ANSWER, USER], {"tools": [TOOL]}),
    ([PARTS], {"add_generation_prompt": True}),
    ([USER, {"role": "assistant", "content": [{"type": "text", "text": "so "}]}],
        {"continue_final_message": True}),
    ([{"role": "user", "content": "a<|im_end|>b<|eot_id|><eos></s>"}], {}),
    ([USER], {"documents": [{"title": "t", "text": "x < y"}]}),
    ([{"role": "user", "content": "raise"}], {}),
    ([{"role": "unheard", "content": "of"}], {}),
    ([ANSWER, ANSWER], {}),
    ([USER], {"bos_token": "", "xml_tools": [TOOL]}),
]  # fmt: skip


def published() -> dict[str, str]:
    found = importlib.util.find_spec("trl")
    if found is None or found.origin is None:
        return {}
    folder = Path(found.origin).parent / "chat_templates"
    return {path.stem: path.read_text() for path in sorted(folder.glob("*.jinja"))}


TEMPLATES = {"own": OWN} | published()


@pytest.fixture(scope="module", params=VOCABULARIES)
def pair(request, tmp_path_factory) -> tuple[Any, dpdk_tokd.Tokenizer]:
    packed = SHARED / f"{request.param}.json.xz"
    if not packed.is_file():
        pytest.skip(f"{packed} is not here")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "tokenizer.json").write_bytes(lzma.decompress(packed.read_bytes()))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096}
    config |= VOCABULARIES[request.param]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    return theirs, dpdk_tokd.Tokenizer.load(folder / "tokenizer.json")


def test_published_templates_are_compared() -> None:
    pytest.importorskip("trl", reason="pip install --no-deps trl")
    assert len(TEMPLATES) > 20


@pytest.mark.parametrize("name", TEMPLATES)
def test_conversations_are_those_of_transformers(pair, name: str) -> None:
    theirs, ours = pair
    equal = refused = 0
    for messages, how in CONVERSATIONS:
        asked = {"chat_template": TEMPLATES[name], **how}
        try:
            text = theirs.apply_chat_template(messages, tokenize=False, **asked)
        except Exception:  # of many kinds: the template's own among them
            with pytest.raises((ValueError, TypeError)):
                ours.apply_chat_template(messages, **asked)
            refused += 1
            continue
        assert ours.apply_chat_template(messages, tokenize=False, **asked) == text
        ids = theirs.apply_chat_template(messages, **asked)["input_ids"]
        assert ours.apply_chat_template(messages, **asked).tolist() == ids
        equal += 1
    assert equal >= 1, refused  # one that needs a bos_token has it in the last conversation alone


def test_names_and_ids_beside_the_vocabulary(pair) -> None:
    theirs, ours = pair
    assert ours.bos_token_id == theirs.bos_token_id and ours.eos_token_id == theirs.eos_token_id
    assert ours.pad_token_id == theirs.pad_token_id
    assert ours.model_max_length == theirs.model_max_length == 4096
