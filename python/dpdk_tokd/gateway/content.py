# SPDX-License-Identifier: BSD-3-Clause
"""Messages as chat templates take them: with content as a text, or as a list of parts.

Which one is read from the template, as vLLM does: one that loops over a message's content takes
parts. A template that cannot be read takes texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import bad_request, not_implemented, unacceptable

if TYPE_CHECKING:
    from jinja2 import nodes

Message: TypeAlias = dict[str, Any]

# Types of parts that are text, and the field that has it.
TEXTS = {
    "text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
    "tool_reference": "name",
}
SKIPPED = ("text", "refusal")  # where the field is missing
MEDIA = (
    "image_url",
    "input_image",
    "image_pil",
    "image_embeds",
    "audio_url",
    "input_audio",
    "audio_embeds",
    "video_url",
    "video_embeds",
    "prompt_embeds",
)
BILLING = "x-anthropic-billing-header"  # differs in each request: it would defeat prefix caches


def _is(node: nodes.Node | None, name: str, key: str | None = None) -> bool:
    """Is it the variable, its `key` if given, or some of its elements?"""
    from jinja2 import nodes

    while isinstance(node, (nodes.Filter, nodes.Test)) or (
        isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice)
    ):
        node = node.node
    if key is not None:
        if isinstance(node, nodes.Getitem):
            if not (isinstance(node.arg, nodes.Const) and node.arg.value == key):
                return False
        elif not (isinstance(node, nodes.Getattr) and node.attr == key):
            return False
        node = node.node
    return isinstance(node, nodes.Name) and node.ctx == "load" and node.name == name


def _name(node: nodes.Node) -> str:
    from jinja2 import nodes

    if not isinstance(node, nodes.Name):
        raise ValueError("several variables are assigned at once")
    return node.name


def _messages(root: nodes.Template) -> list[str]:
    """Names of variables that loops over messages give a message to."""
    from jinja2 import nodes

    lists = ["messages"]
    for known in lists:  # grows
        for assign in root.find_all(nodes.Assign):
            if _is(assign.node, known) and (name := _name(assign.target)) not in lists:
                lists.append(name)
    loops = root.find_all(nodes.For)
    return [_name(loop.target) for loop in loops if any(_is(loop.iter, of) for of in lists)]


def _given_content(root: nodes.Template, macro: nodes.Macro, messages: list[str]) -> set[str]:
    """Parameters of a macro that calls give a message's content to."""
    from jinja2 import nodes

    names = [parameter.name for parameter in macro.args]
    found = set()
    for call in root.find_all(nodes.Call):
        if not (isinstance(call.node, nodes.Name) and call.node.name == macro.name):
            continue
        given = [*zip(names, call.args, strict=False)]
        given += [(pair.key, pair.value) for pair in call.kwargs if pair.key in names]
        found |= {name for name, value in given if any(_is(value, m, "content") for m in messages)}
    return found


def _loops_over_content(root: nodes.Template) -> Iterator[nodes.For]:
    from jinja2 import nodes

    messages = _messages(root)
    of_macro: dict[int, set[str]] = {}  # by loop: parameters that are content
    for macro in root.find_all(nodes.Macro):
        parameters = _given_content(root, macro, messages)
        for loop in macro.find_all(nodes.For):
            of_macro[id(loop)] = parameters or of_macro.get(id(loop), set())
    for loop in root.find_all(nodes.For):
        name = loop.iter.name if isinstance(loop.iter, nodes.Name) else None
        if any(_is(loop.iter, message, "content") for message in messages) or (
            name in of_macro.get(id(loop), ("content",))
        ):
            _name(loop.target)
            yield loop


@lru_cache(maxsize=64)
def takes_parts(template: str) -> bool:
    from ..tokenizer.chat import compiled

    try:
        root = compiled(template).environment.parse(template)
        return next(_loops_over_content(root), None) is not None
    except ValueError:
        return False


def _text(part: Any) -> str | None:
    """Of a part; None: it has none, and is left out. Refused: it is no text."""
    if not isinstance(part, dict):
        raise unacceptable(f"content: a part is {type(part).__name__}: expected an object")
    kind = part.get("type")
    if kind is None or part.get("uuid") is not None:
        kind = next((name for name in (*MEDIA, "tool_reference") if name in part), kind)
    if kind is None:
        raise unacceptable("Missing 'type' field in multimodal part.", "type")
    if not isinstance(kind, str):
        raise unacceptable("Invalid 'type' field in multimodal part.", "type")
    if kind in MEDIA:
        raise not_implemented(f"content of type {kind!r}", "messages")
    if kind not in TEXTS:
        supported = ", ".join(sorted({*MEDIA, *TEXTS}))
        raise unacceptable(
            f"Unsupported chat content part type: {kind!r}. Supported types: {supported}.",
            "type",
            kind,
        )
    text = part.get(TEXTS[kind])
    if isinstance(text, str) or (text is None and kind in SKIPPED):
        return text
    raise unacceptable(f"{kind}: expected a text, got {type(text).__name__}", "messages")


def _without_billing(text: str) -> str | None:
    if not text.startswith(BILLING):
        return text
    return text.partition("\n")[2] or None


def _content(message: Message, parts: bool) -> str | list[dict[str, Any]]:
    content = message.get("content")
    if content is None:
        content = []
    elif isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif not isinstance(content, list):
        raise unacceptable(f"content: expected a text or a list, got {type(content).__name__}")
    found: list[tuple[dict[str, Any], str]] = []
    for part in content:
        text = _text(part)
        if text is not None and message["role"] == "system":
            text = _without_billing(text)
        if text is not None:
            found.append((part, text))
    if not parts or message["role"] == "tool":
        return "\n".join(text for _, text in found)
    return [
        {"type": "tool_reference", "name": text}
        if part.get("type") == "tool_reference"
        else {"type": "text", "text": text}
        for part, text in found
    ]


def _call(call: Any) -> Any:
    """A tool call with its arguments as an object, which templates want, and in vLLM's order, which
    those show that write it as JSON."""
    if not isinstance(call, dict):
        raise unacceptable("assistant tool_calls entries must be objects.", "tool_calls")
    function = call.get("function")
    if call.get("type", "function") != "function" or not isinstance(function, dict):
        raise unacceptable(
            "chat completions only support assistant tool_calls of type 'function'.", "tool_calls"
        )
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:  # said in an earlier turn: the conversation goes on
            arguments = None
    named = {"arguments": arguments if isinstance(arguments, dict) else {}}
    named |= {name: value for name, value in function.items() if name == "name"}
    given = call | {"function": named}
    return {name: given[name] for name in ("id", "function", "type") if name in given}


def conversation(messages: list[Message], template: str) -> list[Message]:
    """What the template is given. Refused: a message that is none."""
    parts = takes_parts(template)
    found = []
    for i, message in enumerate(messages):
        role = message.get("role")
        if not isinstance(role, str):
            raise bad_request(f"messages[{i}].role: expected a text", f"messages[{i}].role")
        made: Message = {"role": role, "content": _content(message, parts)}
        if role == "assistant":
            calls = message.get("tool_calls") or []
            if not isinstance(calls, list):
                where = f"messages[{i}].tool_calls"
                raise bad_request(f"{where}: expected a list, got {type(calls).__name__}", where)
            if calls:
                made["tool_calls"] = [_call(call) for call in calls]
            reasoning = message.get("reasoning")
            if reasoning is None:
                reasoning = message.get("reasoning_content")
            if reasoning is not None:
                made["reasoning"] = made["reasoning_content"] = reasoning
        elif role == "tool" and "tool_call_id" in message:
            made["tool_call_id"] = message["tool_call_id"]
        for name in ("name", "task"):
            if isinstance(message.get(name), str):
                made[name] = message[name]
        if role == "developer":
            made["tools"] = message.get("tools")
        found.append(made)
    developed = any(message["role"] == "developer" for message in found)
    if developed and not ('"developer"' in template or "'developer'" in template):
        return _systems_first(found)
    return found


def _systems_first(messages: list[Message]) -> list[Message]:
    """Developers become systems; if one is not the first message, all are made one."""
    systems, others, moved = [], [], False
    for i, message in enumerate(messages):
        if message["role"] not in ("developer", "system"):
            others.append(message)
            continue
        moved |= i > 0
        system = message | {"role": "system"}
        if message["role"] == "developer":
            system.pop("tools", None)
        systems.append(system)
    if not moved:
        return [*systems, *others]
    texts = []
    for system in systems:
        content = system["content"]
        if not isinstance(content, str):
            content = "\n".join(part["text"] for part in content if "text" in part)
        texts += [content] if content else []
    return [{"role": "system", "content": "\n\n".join(texts)}, *others]
