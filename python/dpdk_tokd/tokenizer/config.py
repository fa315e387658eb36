# SPDX-License-Identifier: BSD-3-Clause
"""What a model's files beside its vocabulary say: named special tokens, length, chat templates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from .._arguments import check_word
from .batch import LENGTH_MAX, Side

Message: TypeAlias = Mapping[str, Any]  # of a conversation

CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"
TEMPLATE = "chat_template.jinja"
MORE_TEMPLATES = "additional_chat_templates"
FILES = (CONFIG, SPECIAL_TOKENS, TEMPLATE, f"{MORE_TEMPLATES}/*.jinja")

NAMES = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))


@dataclass(frozen=True, slots=True)
class Config:
    """special: text of `bos_token`, `pad_token` and so on; templates: by name, "default" first;
    sides: where to truncate and to pad, None: it does not say."""

    folder: str
    special: dict[str, str]
    model_max_length: int | None
    templates: dict[str, str]
    truncation_side: Side | None = None
    padding_side: Side | None = None

    def template(self, asked: str | None, with_tools: bool) -> str:
        """`asked` is a name, or a template itself."""
        if asked is not None and not isinstance(asked, str):
            raise TypeError(f"chat_template: expected a text or a name, got {type(asked).__name__}")
        if asked is None:
            asked = "tool_use" if with_tools and "tool_use" in self.templates else "default"
        elif asked not in self.templates and ("{" in asked or "\n" in asked):
            return asked
        if asked in self.templates:
            return self.templates[asked]
        names = ", ".join(self.templates) or "none"
        raise ValueError(
            f"{self.folder} has no chat template {asked!r} (it has {names}): put a {TEMPLATE} there"
        )


def object_of(path: str) -> dict[str, Any]:
    """The object in a file; empty where there is none."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected an object, got {type(found).__name__}")
    return found


def _special(path: str, document: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name in NAMES:
        token = document.get(name)
        text = token.get("content") if isinstance(token, dict) else token
        if text is not None and not isinstance(text, str):
            raise ValueError(f"{path}: {name}: expected a text, got {type(text).__name__}")
        if text is not None:
            found[name] = text
    return found


def _templates(folder: str, path: str, value: object) -> dict[str, str]:
    """Files have precedence over the configuration, where `value` is one or a list of named."""
    try:
        if isinstance(value, list):
            found = {str(one["name"]): str(one["template"]) for one in value}
        else:
            found = {} if value is None else {"default": str(value)}
    except (KeyError, TypeError):
        raise ValueError(
            f"{path}: chat_template: expected a text, or names and templates"
        ) from None
    files = {}
    more = os.path.join(folder, MORE_TEMPLATES)
    if os.path.isdir(more):
        names = sorted(name for name in os.listdir(more) if name.endswith(".jinja"))
        files = {name.removesuffix(".jinja"): os.path.join(more, name) for name in names}
    default = os.path.join(folder, TEMPLATE)
    if os.path.isfile(default):
        files = {"default": default} | files
    if not files:
        return found
    texts = {}
    for name, file in files.items():
        with open(file, encoding="utf-8") as opened:
            texts[name] = opened.read()
    return texts


def config_of(folder: str) -> Config:
    """ValueError names the file that cannot be read."""
    path = os.path.join(folder, CONFIG)
    document = object_of(path)
    special = _special(path, document)
    if "added_tokens_decoder" not in document:  # written by older versions, which read the other
        other = os.path.join(folder, SPECIAL_TOKENS)
        special |= _special(other, object_of(other))
    length = document.get("model_max_length")
    known = isinstance(length, int) and 0 < length <= LENGTH_MAX  # 10**30 stands for no limit
    templates = _templates(folder, path, document.get("chat_template"))
    truncation, padding = document.get("truncation_side"), document.get("padding_side")
    for name, side in (("truncation_side", truncation), ("padding_side", padding)):
        if side is not None:
            check_word(f"{path}: {name}", side, get_args(Side))
    return Config(folder, special, length if known else None, templates, truncation, padding)
