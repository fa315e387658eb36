# SPDX-License-Identifier: BSD-3-Clause
"""Chat templates, rendered as `transformers` does: Jinja in its sandbox, and what templates use."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .config import Message

if TYPE_CHECKING:
    import jinja2

REASONING = ("reasoning_content", "thinking", "reasoning")  # names of the same, the standard first
OF_TRANSFORMERS = {
    "max_length",
    "padding",
    "return_assistant_tokens_mask",
    "return_dict",
    "return_tensors",
    "tokenizer_kwargs",
    "truncation",
}
MARK = "CONTINUE_FINAL_MESSAGE_TAG "


def plain(value: Any) -> Any:
    """A copy of JSON's types alone: other objects have methods that the sandbox does not know."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = map(plain, value)
        return tuple(items) if isinstance(value, tuple) else list(items)
    if isinstance(value, np.generic):
        return plain(value.item())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if callable(getattr(value, "model_dump", None)):
        return plain(value.model_dump())
    return f"<{type(value).__name__}>"  # an image, say, of which templates ask whether it is there


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own escapes HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


@lru_cache(maxsize=64)
def compiled(template: str) -> jinja2.Template:
    """ImportError: Jinja is not installed; ValueError: the template has a syntax error."""
    try:
        import jinja2
        from jinja2 import ext, nodes
        from jinja2.parser import Parser
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise ImportError(
            "chat templates need the package jinja2: pip install 'dpdk-tokd[chat]'"
        ) from error

    class Generation(ext.Extension):
        """`{% generation %}` marks what the assistant said; its text stays as it is."""

        tags = frozenset(["generation"])  # type: ignore[assignment]  # which is read alone

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        return environment.from_string(template)
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(f"chat template, line {error.lineno}: {error.message}") from None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def check_lists(given: Mapping[str, Any]) -> None:
    """TypeError for what is no list; only messages may be objects with fields instead of dicts."""
    for name, items in given.items():
        if items is None:
            continue
        if not isinstance(items, Sequence) or isinstance(items, str):
            raise TypeError(f"{name}: expected a list of dicts, got {type(items).__name__}")
        for i, item in enumerate(items):
            if not isinstance(item if name != "messages" else plain(item), Mapping):
                raise TypeError(f"{name}[{i}]: expected a dict, got {type(item).__name__}")


def check_variables(variables: Mapping[str, Any]) -> None:
    """ValueError for arguments of `transformers`' method that are none here."""
    for name in sorted(OF_TRANSFORMERS & variables.keys()):
        raise ValueError(
            f"{name}: no argument here, and no variable of templates: give tokenize=False, and the "
            "text to encode_batch with truncation or padding"
        )


def reject_special(name: str, items: Sequence[Any], special: Sequence[str]) -> None:
    """ValueError for the first of `items` with a text that spells a special token."""
    longest_first = sorted(filter(None, special), key=len, reverse=True)
    if not longest_first:
        return
    spelled = re.compile("|".join(map(re.escape, longest_first)))
    for i, item in enumerate(items):
        for text in _texts(plain(item)):
            if found := spelled.search(text):
                raise ValueError(
                    f"{name}[{i}] contains the special token {found[0]!r} at character "
                    f'{found.start()}: remove it, or give special_in_messages="allow"'
                )


def _final_text(message: dict[str, Any], field: str) -> tuple[dict[str, Any], str]:
    """Where the text that is to be continued is."""
    text = message.get(field)
    if isinstance(text, str):
        return message, field
    for part in reversed(text if isinstance(text, (list, tuple)) else ()):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            return part, "text"
    raise ValueError(f"continue_final_message: the final message has no text in {field!r}")


def _up_to_mark(rendered: str, text: str) -> str:
    at = rendered.rfind(MARK.strip())
    if at < 0 or text.strip() not in rendered:
        raise ValueError(
            "continue_final_message: the template changes or leaves out the final message: "
            f"{text.strip()!r} is not in what it renders"
        )
    if rendered.startswith(MARK, at):
        return rendered[:at]
    return rendered[:at].rstrip()  # the template strips what it is given


def render(
    template: str,
    messages: Sequence[Message],
    variables: Mapping[str, Any],
    *,
    continue_final_message: bool,
) -> str:
    """The text of a conversation. ValueError: the template raised an exception, or is wrong."""
    made = compiled(template)
    chat = [{k: v for k, v in plain(message).items() if v is not None} for message in messages]
    for message in chat:
        reasons = [message[name] for name in REASONING if name in message]
        if reasons:
            message.setdefault("thinking", reasons[0])
            message["reasoning_content"] = reasons[0]
    text = ""
    if continue_final_message:
        where, field = _final_text(chat[-1], "content")
        text = where[field]
        where[field] += MARK
    values = {**plain(variables), "messages": chat}
    try:
        rendered = made.render(values)
    except Exception as error:  # a template is a program: it may divide by zero
        raise ValueError(f"chat template: {error}") from error
    return _up_to_mark(rendered, text) if continue_final_message else rendered
