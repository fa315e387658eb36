# SPDX-License-Identifier: BSD-3-Clause
"""/tokenize and /detokenize, as vLLM has them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .._native import libtok
from ..tokenizer.batch import Uint32Ids
from .appliances import Appliances
from .errors import bad_request
from .models import Model, Models

Shape = TypeVar("Shape", bound=Struct)


class TokenizeRequest(Struct):
    """Either of a prompt or of a conversation; fields of one are ignored in the other."""

    model: str | None = None
    prompt: str | UnsetType = UNSET
    messages: list[dict[str, Any]] | UnsetType = UNSET
    add_special_tokens: bool | UnsetType = UNSET
    return_token_strs: bool | None = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None


class DetokenizeRequest(Struct):
    tokens: list[int]
    model: str | None = None


# What a template's own variables may not be: arguments of Tokenizer.apply_chat_template.
ARGUMENTS = ("chat_template", "messages", "special_in_messages", "tokenize", "tools")
OWN_TEMPLATE = "a request's own template is not accepted"


def read(body: bytes, shape: type[Shape]) -> Shape:
    """A request's body as one of the shapes; Refused names the field."""
    try:
        return msgspec.json.decode(body, type=shape, strict=False)
    except msgspec.ValidationError as error:
        message, at, path = str(error).partition(" - at `$.")
        missing = "required field `"
        field = path.rstrip("`") if at else message.partition(missing)[2].rstrip("`")
        raise bad_request(str(error), field or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not JSON: {error}") from None


def _ids_of_chat(model: Model, asked: TokenizeRequest, messages: list[dict[str, Any]]) -> Any:
    if asked.continue_final_message and asked.add_generation_prompt:
        raise bad_request(
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True."
        )
    if asked.chat_template is not None:
        raise bad_request(f"chat_template: {OWN_TEMPLATE}", "chat_template")
    variables = asked.chat_template_kwargs or {}
    for name in ARGUMENTS:
        if name in variables:
            why = OWN_TEMPLATE if name == "chat_template" else "not a variable of templates"
            raise bad_request(f"chat_template_kwargs: {name}: {why}", "chat_template_kwargs")
    given = {
        "add_generation_prompt": asked.add_generation_prompt,
        "continue_final_message": asked.continue_final_message,
    }
    try:
        text = model.tokenizer.apply_chat_template(
            messages, tools=asked.tools, tokenize=False, **(variables | given)
        )
    except (TypeError, ValueError) as error:
        raise bad_request(str(error), "messages") from None
    return model.tokenizer.encode(text, add_special_tokens=asked.add_special_tokens is True)


def tokenize(models: Models, body: bytes) -> bytes | Awaitable[bytes]:
    asked = read(body, TokenizeRequest)
    model = models.named(asked.model)
    if (asked.prompt is UNSET) == (asked.messages is UNSET):
        raise bad_request("give either `prompt` or `messages`")
    if isinstance(asked.messages, list):
        ids = _ids_of_chat(model, asked, asked.messages)
    else:
        assert isinstance(asked.prompt, str)
        special = asked.add_special_tokens is not False
        if model.appliances is not None and model.appliances.takes(asked.prompt):
            return _by_appliances(model.appliances, model, asked, asked.prompt, special)
        ids = model.tokenizer.encode(asked.prompt, add_special_tokens=special)
    return _answer(model, asked, ids)


async def _by_appliances(
    appliances: Appliances, model: Model, asked: TokenizeRequest, prompt: str, special: bool
) -> bytes:
    ids = await appliances.encode(prompt, add_special_tokens=special)
    return _answer(model, asked, ids)


def _answer(model: Model, asked: TokenizeRequest, ids: Uint32Ids) -> bytes:
    spelled = b"null"
    if asked.return_token_strs:
        spelled = msgspec.json.encode([model.spellings[i] for i in ids.tolist()])
    return b'{"count":%d,"max_model_len":%d,"tokens":%b,"token_strs":%b}' % (
        len(ids),
        model.max_model_len,
        libtok.json_ids(ids),
        spelled,
    )


def detokenize(models: Models, body: bytes) -> bytes:
    asked = read(body, DetokenizeRequest)
    model = models.named(asked.model)
    most = len(model.tokenizer)
    for at, one in enumerate(asked.tokens):
        if not 0 <= one < most:
            raise bad_request(f"tokens[{at}]: {one}: expected 0 to {most - 1}", "tokens")
    return msgspec.json.encode({"prompt": model.tokenizer.decode(asked.tokens)})
