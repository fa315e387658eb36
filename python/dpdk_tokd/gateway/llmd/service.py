# SPDX-License-Identifier: BSD-3-Clause
"""The calls of llm-d's TokenizationService, each from a request's bytes to the answer's.

llm-d's own server loads whatever model a client names; this one has those it was started with.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ..._native import libtok
from ...hf.arrays import ArrayEncoder
from ..errors import Refused, bad_request
from ..models import Model, Models
from ..render import render_chat, render_completion
from .proto import message_class

TokenizeRequest = message_class("TokenizeRequest")
TokenizeResponse = message_class("TokenizeResponse")
InitializeTokenizerRequest = message_class("InitializeTokenizerRequest")
InitializeTokenizerResponse = message_class("InitializeTokenizerResponse")
ChatTemplateRequest = message_class("ChatTemplateRequest")
ChatTemplateResponse = message_class("ChatTemplateResponse")
RenderChatCompletionRequest = message_class("RenderChatCompletionRequest")
RenderChatCompletionResponse = message_class("RenderChatCompletionResponse")
RenderCompletionRequest = message_class("RenderCompletionRequest")
RenderCompletionResponse = message_class("RenderCompletionResponse")

PACKED = 2  # wire type of a repeated number
TEMPLATE_SETTINGS: dict[str, Any] = {"enable_thinking": False, "add_generation_prompt": True}


def _with(made: Any, **fields: npt.ArrayLike) -> bytes:
    """A message with lists of numbers, which it takes longer to pack than to tokenize the text."""
    whole: bytes = made.SerializeToString()
    for name, numbers in fields.items():
        number = made.DESCRIPTOR.fields_by_name[name].number
        packed = libtok.varints(numbers)
        whole += libtok.varints([number << 3 | PACKED, len(packed)]) + packed
    return whole


def _json(message: Any, field: str) -> Any:
    text = getattr(message, field)
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError as error:
        raise bad_request(f"{field}: not JSON: {error}", field) from None


def _part(part: Any) -> dict[str, Any]:
    made = {"type": part.type}
    if part.HasField("text"):
        made["text"] = part.text
    if part.HasField("image_url"):
        made["image_url"] = {"url": part.image_url.url}
    return made


def _said(message: Any) -> dict[str, Any]:
    """A message of a conversation as in JSON."""
    said: dict[str, Any] = {"role": message.role}
    if message.content_parts:
        said["content"] = list(map(_part, message.content_parts))
    elif message.HasField("content"):
        said["content"] = message.content
    if calls := _json(message, "tool_calls_json"):
        said["tool_calls"] = calls
    return said


class _Rendered(msgspec.Struct):
    request_id: str
    token_ids: list[int]


class Service:
    """`calls`: by name."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.encoders = {name: ArrayEncoder(model.hf) for name, model in models.by_name.items()}
        self.template_settings: dict[str, dict[str, Any]] = {}  # by InitializeTokenizer
        self.calls = {
            "Tokenize": self.tokenize,
            "RenderChatTemplate": self.render_chat_template,
            "InitializeTokenizer": self.initialize_tokenizer,
            "RenderChatCompletion": self.render_chat_completion,
            "RenderCompletion": self.render_completion,
        }

    def _named(self, name: str) -> Model:
        if not name:
            raise bad_request("model_name is empty", "model_name")
        return self.models.named(name)

    def tokenize(self, body: bytes) -> bytes:
        asked = TokenizeRequest.FromString(body)
        model = self._named(asked.model_name)
        ids, offsets = self.encoders[model.name].encode(asked.input, asked.add_special_tokens)
        self.models.check_tokens(len(ids), "input")
        model.count(len(ids))
        flat = offsets.astype(np.uint32).ravel()
        return _with(TokenizeResponse(success=True), input_ids=ids, offset_pairs=flat)

    def initialize_tokenizer(self, body: bytes) -> bytes:
        asked = InitializeTokenizerRequest.FromString(body)
        made = InitializeTokenizerResponse(success=True)
        try:
            model = self._named(asked.model_name)
        except Refused as refused:
            made = InitializeTokenizerResponse(error_message=str(refused))
        else:
            self.template_settings[model.name] = {
                "enable_thinking": asked.enable_thinking,
                "add_generation_prompt": asked.add_generation_prompt,
            }
        whole: bytes = made.SerializeToString()
        return whole

    def render_chat_template(self, body: bytes) -> bytes:
        """Of the request, as llm-d's, only the messages: settings are InitializeTokenizer's."""
        asked = ChatTemplateRequest.FromString(body)
        model = self._named(asked.model_name)
        said = [_said(one) for turn in asked.conversation_turns for one in turn.messages]
        settings = self.template_settings.get(model.name, TEMPLATE_SETTINGS)
        text = model.tokenizer.apply_chat_template(said, tokenize=False, **settings)
        whole: bytes = ChatTemplateResponse(rendered_prompt=text, success=True).SerializeToString()
        return whole

    def render_chat_completion(self, body: bytes) -> bytes:
        asked = RenderChatCompletionRequest.FromString(body)
        model = self._named(asked.model_name)
        same = {
            "model": model.name,
            "messages": list(map(_said, asked.messages)),
            "tools": _json(asked, "tools_json"),
            "tool_choice": "none",  # nobody here reads the answer's calls
            "chat_template": asked.chat_template or None,
            "add_generation_prompt": not asked.HasField("add_generation_prompt")
            or asked.add_generation_prompt,
            "continue_final_message": asked.continue_final_message,
            "chat_template_kwargs": _json(asked, "chat_template_kwargs"),
        }
        answer = render_chat(self.models, msgspec.json.encode(same))
        rendered = msgspec.json.decode(answer, type=_Rendered)
        made = RenderChatCompletionResponse(request_id=rendered.request_id, success=True)
        return _with(made, token_ids=rendered.token_ids)

    def render_completion(self, body: bytes) -> bytes:
        asked = RenderCompletionRequest.FromString(body)
        same = {"model": self._named(asked.model_name).name, "prompt": asked.prompt}
        answer = render_completion(self.models, msgspec.json.encode(same))
        (rendered,) = msgspec.json.decode(answer, type=list[_Rendered])
        made = RenderCompletionResponse(request_id=rendered.request_id, success=True)
        return _with(made, token_ids=rendered.token_ids)
