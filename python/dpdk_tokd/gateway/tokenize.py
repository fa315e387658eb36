# SPDX-License-Identifier: BSD-3-Clause
"""/tokenize and /detokenize, as vLLM has them; a /tokenize of `inputs` is TEI's."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .._native import libtok
from ..tokenizer.batch import Uint32Ids
from . import tei
from .appliances import Appliances
from .block_keys import BlockKeys, json_keys
from .body import read
from .errors import Refused, as_tei, bad_request, unacceptable
from .models import Model, Models
from .render import ChatRequest, chat_text
from .window import fits

# Fields of a conversation, which is rendered as for /v1/chat/completions/render.
CHAT = (
    "add_generation_prompt", "chat_template", "chat_template_kwargs", "continue_final_message",
    "messages", "tools",
)  # fmt: skip


class TokenizeRequest(Struct):
    """Either of a prompt or of a conversation; fields of one are ignored in the other."""

    model: str | None = None
    inputs: msgspec.Raw | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    messages: list[dict[str, Any]] | UnsetType = UNSET
    add_special_tokens: bool | UnsetType = UNSET
    return_token_strs: bool | None = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    block_keys: BlockKeys | None = None


class DetokenizeRequest(Struct):
    tokens: list[int]
    model: str | None = None


def _ids_of_chat(models: Models, model: Model, asked: TokenizeRequest) -> Uint32Ids:
    given = {name: getattr(asked, name) for name in CHAT}
    try:
        chat = msgspec.convert(given, ChatRequest)
    except msgspec.ValidationError as error:
        raise bad_request(str(error), "messages") from None
    if chat.continue_final_message and chat.add_generation_prompt:
        raise unacceptable(
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True."
        )
    text = chat_text(models, model, chat)
    return model.tokenizer.encode(text, add_special_tokens=asked.add_special_tokens is True)


class _Which(Struct):
    inputs: msgspec.Raw | UnsetType = UNSET
    prompt: msgspec.Raw | UnsetType = UNSET
    messages: msgspec.Raw | UnsetType = UNSET
    block_keys: msgspec.Raw | UnsetType = UNSET

    @property
    def tei(self) -> bool:
        return self.inputs is not UNSET and self.prompt is UNSET and self.messages is UNSET


def is_prompt(body: bytes) -> bool:
    """Does it ask for one prompt's ids, and nothing that takes longer?"""
    try:
        which = msgspec.json.decode(body, type=_Which)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    plain = which.inputs is which.messages is which.block_keys is UNSET
    return plain and which.prompt is not UNSET and bytes(which.prompt).startswith(b'"')


def _read(body: bytes) -> TokenizeRequest:
    try:
        asked = read(body, TokenizeRequest)
    except Refused as refused:
        raise as_tei(refused) if read(body, _Which).tei else refused from None
    if asked.inputs is not UNSET:
        if asked.prompt is not UNSET or asked.messages is not UNSET:
            raise bad_request("give `inputs`, `prompt` or `messages`, not several of them")
        return asked
    if (asked.prompt is UNSET) == (asked.messages is UNSET):
        raise bad_request("give either `prompt` or `messages`, or TEI's `inputs`")
    return asked


def tokenize(models: Models, body: bytes) -> bytes | Awaitable[bytes]:
    """Plain prompts are tokenized by appliances, where the model has any."""
    asked = _read(body)
    if isinstance(asked.prompt, str):
        model = models.named(asked.model)
        if model.appliances is not None and model.appliances.takes(asked.prompt):
            return _there(models, model, model.appliances, asked, asked.prompt)
    return _here(models, body, asked)


async def _there(
    models: Models, model: Model, appliances: Appliances, asked: TokenizeRequest, prompt: str
) -> bytes:
    special = asked.add_special_tokens is not False
    ids = await appliances.encode(prompt, add_special_tokens=special)
    return _answer(models, model, asked, ids)


def _here(models: Models, body: bytes, asked: TokenizeRequest) -> bytes:
    if asked.inputs is not UNSET:
        try:
            return tei.tokenize(models, body)
        except Refused as refused:
            raise as_tei(refused) from None
    model = models.named(asked.model)
    if isinstance(asked.messages, list):
        ids = _ids_of_chat(models, model, asked)
    else:
        assert isinstance(asked.prompt, str)
        ids = model.tokenizer.encode(
            asked.prompt, add_special_tokens=asked.add_special_tokens is not False
        )
    return _answer(models, model, asked, ids)


def _answer(models: Models, model: Model, asked: TokenizeRequest, ids: Uint32Ids) -> bytes:
    models.check_tokens(len(ids), "prompt" if asked.messages is UNSET else "messages")
    model.count(len(ids))
    spelled = b"null"
    if asked.return_token_strs:
        spelled = msgspec.json.encode([model.spellings[i] for i in ids.tolist()])
    return b'{"count":%d,"max_model_len":%d,"tokens":%b,"token_strs":%b%b}' % (
        len(ids),
        model.max_model_len,
        libtok.json_ids(ids),
        spelled,
        json_keys(asked.block_keys, model, ids),
    )


def detokenize(models: Models, body: bytes) -> bytes | Awaitable[bytes]:
    """By appliances, where the model has any."""
    asked = read(body, DetokenizeRequest)
    model = models.named(asked.model)
    models.check_tokens(len(asked.tokens), "tokens")
    model.check_ids(asked.tokens, "tokens")
    model.count(len(asked.tokens))
    if model.appliances is not None and model.hf.joins_bytes:
        return _text(model, model.appliances, asked.tokens)
    return msgspec.json.encode({"prompt": model.hf.decode(asked.tokens, False)})


async def _text(model: Model, appliances: Appliances, ids: list[int]) -> bytes:
    text = await appliances.decode(ids)
    if not fits(text):
        text = await appliances.here(partial(model.hf.decode, ids, False))
    return msgspec.json.encode({"prompt": text})
