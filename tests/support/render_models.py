# SPDX-License-Identifier: BSD-3-Clause
"""Folders of models, without weights, that vLLM's render server and tokd-gateway both serve.

Vocabularies are those of published models where they are (../shared/vocab beside the repository),
and a small one with byte fallback that is made here. Templates are of this project, in the manner
of the published ones.
"""

import json
import lzma
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vocab"
CONTEXT = 512

CHATML = """\
{%- if tools %}{{ '<|im_start|>system\\n' }}{% for tool in tools %}{{ tool | tojson }}{{ '\\n' }}\
{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n' }}{% endif %}
{{- m.content }}
{%- for call in m.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}
{{- '<|im_end|>' }}
{% endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}"""

PARTS = """\
{{- bos_token }}
{%- macro said(content) %}
{%- if content is string %}{{ content }}{% else %}
{%- for part in content %}{{ '[' ~ part.type ~ ']' ~ part.text }}{% endfor %}{% endif %}
{%- endmacro %}
{%- for m in messages %}
{{- m.role + ':' }}{{ said(m.content) }}{{ m.name or '' }}{{ m.tool_call_id or '' }}{{ eos_token }}
{%- endfor %}
{%- if documents %}{{ documents | tojson }}{% endif %}
{%- if reasoning_effort %}{{ reasoning_effort ~ enable_thinking }}{% endif %}
{%- if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"""

TURNS = """\
{{- bos_token }}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('roles must alternate') }}
{%- endif %}
{%- if m.role == 'user' %}{{ '[INST] ' + m.content | trim + ' [/INST]' }}
{%- else %}{{ ' ' + m.content | trim + eos_token }}{% endif %}
{%- endfor %}"""

WORDS = (
    "the of and to in is that for it was on are as with his they be at one have this from or had"
)

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 1,
    "num_hidden_layers": 1,
    "max_position_embeddings": CONTEXT,
}


def _special(*names: str) -> list[dict[str, Any]]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [{"id": i, "content": name, **flags, "special": True} for i, name in enumerate(names)]


def _sequence(what: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", what: [*steps]}


def llama_document(vocab: dict[str, int], merges: list[list[str]]) -> dict[str, Any]:
    """A tokenizer.json like Llama 2's: pieces with a mark for the blank, and bytes. The first three
    are <unk>, <s> and </s>."""
    replaced = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    template: dict[str, Any] = {"type": "TemplateProcessing", "single": [bos, first]}
    template |= {"pair": [first, second]}
    template |= {"special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    model: dict[str, Any] = {"type": "BPE", "dropout": None, "unk_token": "<unk>"}
    model |= {"continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _special("<unk>", "<s>", "</s>"),
        "normalizer": _sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, replaced),
        "pre_tokenizer": None,
        "post_processor": template,
        "decoder": _sequence("decoders", back, {"type": "ByteFallback"}, {"type": "Fuse"}, strip),
        "model": model | {"byte_fallback": True, "vocab": vocab, "merges": merges},
    }


def byte_fallback() -> dict[str, Any]:
    """Such a tokenizer.json of a few words."""
    merges = []
    vocab = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    vocab += ["▁", *map(chr, range(0x21, 0x7F)), "é", "日"]
    for word in WORDS.split():
        piece = "▁"
        for letter in word:
            if piece + letter not in vocab:
                merges.append([piece, letter])
                vocab.append(piece + letter)
            piece += letter
    return llama_document({piece: i for i, piece in enumerate(vocab)}, merges)


# Of each: its vocabulary (None: byte_fallback), template, special tokens, generation_config.
MODELS: dict[str, tuple[str | None, str, dict[str, Any], dict[str, Any] | None]] = {
    "turns": (None, TURNS, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, None),
    "parts": (
        "gpt2",
        PARTS,
        {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"},
        {"temperature": 0.6, "top_k": 50, "top_p": 0.95, "max_new_tokens": 100, "eos_token_id": 7},
    ),
    "chatml": (
        "qwen3",
        CHATML,
        {"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]},
        None,
    ),
    "gemma": (
        "gemma3",
        PARTS,
        {"bos_token": "<bos>", "eos_token": "<eos>", "extra_special_tokens": ["<unk>"]},
        None,
    ),
}


def vocabulary_of(name: str) -> Path | None:
    """The file that a model's vocabulary is unpacked from; None: it is made here."""
    vocabulary = MODELS[name][0]
    return None if vocabulary is None else SHARED / f"{vocabulary}.json.xz"


def make(name: str, folder: Path) -> Path:
    """Write the files of a model into `folder`, which is returned."""
    _, template, special, generation = MODELS[name]
    packed = vocabulary_of(name)
    text = json.dumps(byte_fallback())
    if packed is not None:
        text = lzma.decompress(packed.read_bytes()).decode()
    size = len(json.loads(text)["model"]["vocab"])
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 10 * CONTEXT}
    files = {
        "config.json": CONFIG | {"vocab_size": size},
        "tokenizer_config.json": tokenizer | special,
        "generation_config.json": generation,
    }
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(text)
    (folder / "chat_template.jinja").write_text(template)
    for file, content in files.items():
        if content is not None:
            (folder / file).write_text(json.dumps(content))
    return folder
