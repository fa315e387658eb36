# SPDX-License-Identifier: BSD-3-Clause
"""Chat templates: where they come from, what they may use, what is refused. That whole
conversations are as `transformers` has them: tests/ecosystem/test_chat_templates.py."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dpdk_tokd
import pytest

pytest.importorskip("jinja2", reason="pip install jinja2")

END = 50256
TEMPLATE = """\
{%- for m in messages %}
    {%- if m.role == "system" and tools %}{{ tools | tojson }}{% endif %}
    {{- m.role + ": " + m.content + eos_token }}
{% endfor %}
{%- if add_generation_prompt %}
assistant:{% endif %}
"""
SAY = [{"role": "user", "content": "one two"}]
Made = Callable[..., dpdk_tokd.Tokenizer]


@pytest.fixture
def model(gpt2_file: Path, tmp_path: Path) -> Made:
    """GPT-2's vocabulary beside files of these names."""
    shutil.copy(gpt2_file, tmp_path)

    def made(**files: object) -> dpdk_tokd.Tokenizer:
        for name, content in files.items():
            path = tmp_path / name.replace("__", ".").replace("_in_", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return dpdk_tokd.Tokenizer.load(tmp_path / gpt2_file.name)

    return made


@pytest.fixture
def tok(model: Made) -> dpdk_tokd.Tokenizer:
    config = {"chat_template": TEMPLATE, "eos_token": {"content": "<|endoftext|>"}}
    return model(tokenizer_config__json=config)


def test_a_conversation_becomes_text_and_ids(tok) -> None:
    text = "user: one two<|endoftext|>\nassistant:"
    assert tok.apply_chat_template(SAY, add_generation_prompt=True, tokenize=False) == text
    ids = tok.apply_chat_template(SAY, add_generation_prompt=True)
    assert ids.tolist() == tok.encode(text).tolist() and END in ids
    said = [*SAY, {"role": "assistant", "content": " three "}]
    text = tok.apply_chat_template(said, continue_final_message=True, tokenize=False)
    assert text == "user: one two<|endoftext|>\nassistant:  three "
    assert said[-1]["content"] == " three "
    said[-1]["content"] = [{"type": "text", "text": "three"}]
    parts = "{% for m in messages %}{% for p in m.content %}{{ p.text | trim }}{% endfor %}{% endfor %}."
    got = tok.apply_chat_template(
        said[1:], chat_template=parts, continue_final_message=True, tokenize=False
    )
    assert got == "three"


def test_several_conversations_become_a_batch(tok) -> None:
    said = [SAY, [*SAY, {"role": "assistant", "content": "three"}]]
    texts = [tok.apply_chat_template(one, tokenize=False) for one in said]
    assert tok.apply_chat_template(said, tokenize=False) == texts
    assert tok.apply_chat_template(said).tolist() == tok.encode_batch(texts).tolist()
    with pytest.raises(ValueError, match="^conversation 1: messages: none"):
        tok.apply_chat_template([SAY, []])
    with pytest.raises(ValueError, match=r"^conversation 1: messages\[0\] contains the special"):
        tok.apply_chat_template(
            [SAY, [{"role": "user", "content": "<|endoftext|>"}]], special_in_messages="reject"
        )


def test_what_templates_use(tok) -> None:
    def shown(template: str, **variables: object) -> str:
        return tok.apply_chat_template(SAY, chat_template=template, tokenize=False, **variables)

    assert shown("{{ x | tojson }}", x={"é": "<a>"}) == '{"é": "<a>"}'
    assert shown("{{ x | tojson(indent=1) }}", x=[1]) == "[\n 1\n]"
    assert len(shown("{{ strftime_now('%Y-%m-%d') }}")) == 10
    assert (
        shown("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}")
        == "1"
    )
    assert shown("a\n    {% generation %}\n b {% endgeneration %}\nc") == "a\n b c"
    assert shown("{% set n = namespace(x=1) %}{% set n.x = 2 %}{{ n.x }}{{ bos_token }}") == "2"
    assert shown("{{ image }}", image=object()) == "<object>"
    assert shown("{{ eos_token }}", eos_token="mine") == "mine"
    assert shown("{{ variables }}", variables=1) == "1"
    assert shown("{{ messages[0].thinking }}{{ messages[0].none is defined }}") == "False"
    documents = [{"title": "t", "text": "x"}]
    assert shown("{{ documents[0].title }}{{ tools }}", documents=documents) == "tNone"


def test_what_a_template_refuses(tok) -> None:
    for template, says in (
        ("{{ raise_exception('no system here') }}", "^chat template: no system here$"),
        ("\n{% if %}", "^chat template, line 2: Expected"),
        ("{{ ().__class__.__mro__ }}", "^chat template: access to attribute '__class__'"),
        ("{{ messages.append(1) }}", "^chat template: .*append"),
        ("{{ none.of.this }}", "^chat template: 'none' is undefined|has no attribute"),
        ("{{ 1 / 0 }}", "^chat template: division by zero"),
        ("{{ 'a' + 1 }}", "^chat template: can only concatenate"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "^chat template: maximum recursion"),
    ):
        with pytest.raises(ValueError, match=says):
            tok.apply_chat_template(SAY, chat_template=template)
    with pytest.raises(ValueError, match="the template changes or leaves out the final message"):
        tok.apply_chat_template(SAY, chat_template="{{ 1 }}", continue_final_message=True)


def test_arguments_that_cannot_be(tok, gpt2) -> None:
    for none in ([], None):
        with pytest.raises(ValueError, match="^messages: none: give at least one"):
            tok.apply_chat_template(none)
    with pytest.raises(TypeError, match="^chat_template: expected a text or a name, got int"):
        tok.apply_chat_template(SAY, chat_template=5)
    with pytest.raises(TypeError, match="^messages: expected a list of dicts, got dict"):
        tok.apply_chat_template(SAY[0])
    with pytest.raises(TypeError, match="^messages: expected a list of dicts, got str"):
        tok.apply_chat_template("one two")
    with pytest.raises(TypeError, match=r"^messages\[1\]: expected a dict, got str"):
        tok.apply_chat_template([*SAY, "one"])
    with pytest.raises(TypeError, match="^tools: expected a list of dicts, got dict"):
        tok.apply_chat_template(SAY, tools={})
    with pytest.raises(TypeError, match=r"^tools\[0\]: expected a dict, got function"):
        tok.apply_chat_template(SAY, tools=[lambda x: x])
    with pytest.raises(ValueError, match="either add_generation_prompt or continue_final_message"):
        tok.apply_chat_template(SAY, add_generation_prompt=True, continue_final_message=True)
    with pytest.raises(ValueError, match="the final message has no text in 'content'"):
        tok.apply_chat_template([{"role": "user"}], continue_final_message=True)
    for name in ("return_tensors", "truncation", "max_length", "padding", "return_dict"):
        with pytest.raises(ValueError, match=f"^{name}: no argument here, and no variable"):
            tok.apply_chat_template(SAY, **{name: True})
    with pytest.raises(ValueError, match='^special_in_messages: True: expected "allow" or "rej'):
        tok.apply_chat_template(SAY, special_in_messages=True)
    with pytest.raises(ValueError, match="has no chat template 'other' .it has default.: put a"):
        tok.apply_chat_template(SAY, chat_template="other")
    with pytest.raises(ValueError, match="has no chat template 'default' .it has none."):
        gpt2.apply_chat_template(SAY)


def test_a_message_with_a_special_token_is_refused_where_asked(tok) -> None:
    bad = {"role": "user", "content": [{"type": "text", "text": "hi<|endoftext|>"}]}
    nested = {"role": "user", "content": "", "tool_calls": [{"<|endoftext|>": 1}]}
    for message, at in ((bad, 2), (nested, 0)):
        with pytest.raises(
            ValueError, match=rf"^messages\[1\] .* special token '<.endoftext.>' at character {at}:"
        ):
            tok.apply_chat_template([*SAY, message], special_in_messages="reject")
    with pytest.raises(ValueError, match=r"^documents\[0\] contains the special token"):
        tok.apply_chat_template(
            SAY, documents=[{"text": "<|endoftext|>"}], special_in_messages="reject"
        )
    tok.apply_chat_template(SAY, special_in_messages="reject")  # its own are the template's
    allowed = [{"role": "user", "content": "hi<|endoftext|>"}]
    assert tok.apply_chat_template(allowed).tolist().count(END) == 2


def test_templates_by_name_and_by_file(model: Made) -> None:
    named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    tok = model(tokenizer_config__json={"chat_template": named})

    def shown(**how: object) -> str:
        return tok.apply_chat_template(SAY, tokenize=False, **how)

    assert (shown(), shown(tools=[]), shown(chat_template="tool_use")) == ("d", "t", "t")
    assert shown(tools=[], chat_template="default") == "d"
    tok = model(chat_template__jinja="file")
    assert shown() == shown(tools=[]) == "file"  # instead of those of the configuration
    tok = model(additional_chat_templates_in_rag__jinja="rag")
    assert (shown(), shown(chat_template="rag")) == ("file", "rag")


def test_ids_and_length_beside_the_vocabulary(model: Made, gpt2) -> None:
    assert (gpt2.pad_token_id, gpt2.bos_token_id, gpt2.model_max_length) == (None, None, None)
    config = {"eos_token": "<|endoftext|>", "pad_token": {"content": "!"}, "model_max_length": 1024}
    tok = model(tokenizer_config__json=config)
    assert (tok.eos_token_id, tok.pad_token_id, tok.model_max_length) == (END, 0, 1024)
    assert tok.encode_batch(["one two", "a"], padding=True).ids.tolist() == [[505, 734], [64, 0]]
    tok = model(special_tokens_map__json={"pad_token": "<|endoftext|>"})
    assert (tok.eos_token_id, tok.pad_token_id) == (END, END)
    config |= {"added_tokens_decoder": {}, "model_max_length": 10**30}
    tok = model(tokenizer_config__json=config)  # which says all of it
    assert (tok.pad_token_id, tok.model_max_length) == (0, None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "Expecting"),
        ([], "expected an object, got list"),
        ({"eos_token": 5}, "eos_token: expected a text, got int"),
        ({"chat_template": [{"name": "a"}]}, "chat_template: expected a text, or names"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(model: Made, content: object, says: str) -> None:
    tok = model(tokenizer_config__json=content)
    with pytest.raises(ValueError, match=f"tokenizer_config.json: {says}"):
        tok.apply_chat_template(SAY)


def test_without_jinja_the_error_says_what_to_install(gpt2_file: Path) -> None:
    code = "import sys; sys.modules['jinja2'] = None; import dpdk_tokd; "
    code += f"tok = dpdk_tokd.Tokenizer.load({str(gpt2_file)!r}); "
    code += "tok.apply_chat_template([{}], chat_template='{{ 1 }}')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: chat templates need the package jinja2: pip install" in done.stderr
