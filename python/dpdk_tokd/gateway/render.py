# SPDX-License-Identifier: BSD-3-Clause
"""/v1/completions/render and /v1/chat/completions/render, as vLLM has them: requests become what
its /inference/v1/generate takes."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType

from .._native import libtok
from ..tokenizer.batch import Ids
from .block_keys import json_keys
from .body import read
from .content import conversation
from .deadline import TooLong, deadline
from .errors import Refused, not_implemented, unacceptable
from .models import Model, Models
from .sampling import DEFAULT_MAX_TOKENS, Count, Sampling, check_request, sampling_params

ANSWER_MAX = 64 << 20  # bytes
PROMPTS_MAX = 1024  # of a request
TEMPLATE_S = 5.0  # a template of the request may take
NO_PROMPT = "Either prompt or prompt_embeds must be provided and non-empty."
UNTRUSTED = (
    "Chat template is passed with request, but --trust-request-chat-template is not set. "
    "Refused request with untrusted chat template."
)

# A client's own name of the request being answered: x-request-id.
request_name: ContextVar[str | None] = ContextVar("request_name", default=None)


class CompletionRequest(Sampling, kw_only=True):
    prompt: str | list[Any] | None = None
    prompt_embeds: Any = None
    echo: bool | None = False
    logprobs: int | None = None
    max_tokens: int | None = DEFAULT_MAX_TOKENS
    n: int = 1
    suffix: str | None = None
    add_special_tokens: bool = True


class Function(Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    defer_loading: bool | None = None


class Tool(Struct, kw_only=True):
    type: Literal["function"] = "function"
    function: Function
    defer_loading: bool | None = None


class ChatRequest(Sampling, kw_only=True):
    messages: list[dict[str, Any]]
    echo: bool = False
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = 1
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, Any] | UnsetType | None = UNSET
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    include_reasoning: bool = True
    add_generation_prompt: bool | UnsetType = UNSET
    continue_final_message: bool = False
    add_special_tokens: bool = False
    documents: list[dict[str, str]] | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    media_io_kwargs: dict[str, Any] | None = None
    mm_processor_kwargs: dict[str, Any] | None = None


def _name_of(asked: Sampling, kind: str) -> str:
    name = request_name.get()
    if name is None:
        name = uuid.uuid4().hex if asked.request_id is UNSET else asked.request_id
    return f"{kind}-{name}"


def _generate(
    model: Model,
    asked: Sampling,
    name: str,
    ids: Ids,
    offsets: list[tuple[int, int]] | None,
    params: dict[str, Any],
    reasoning_ended: bool | None,
) -> bytes:
    """One GenerateRequest; its ids are written in C."""
    before = msgspec.json.encode({"request_id": name})
    options = asked.stream_options if asked.stream else None
    after = msgspec.json.encode(
        {
            "token_offsets": offsets,
            "features": None,
            "content_parts": None,
            "sampling_params": params,
            "model": asked.model,
            "reasoning_ended": reasoning_ended,
            "reasoning_parser_kwargs": None,
            "return_token_ids": None,
            "output_mode": "tokens",
            "stream": bool(asked.stream),
            "stream_options": options,
            "cache_salt": asked.cache_salt,
            "priority": asked.priority,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
        }
    )
    keys = json_keys(asked.block_keys, model, ids, asked.cache_salt)
    return b'%b,"token_ids":%b%b,%b' % (before[:-1], libtok.json_ids(ids), keys, after[1:])


def _check_lengths(model: Model, asked: Sampling, max_tokens: int | None, param: str) -> None:
    most = model.max_model_len
    if max_tokens is not None and max_tokens > most:
        raise unacceptable(
            f"{param}={max_tokens} cannot be greater than max_model_len={most}. "
            "Please request fewer output tokens.",
            param,
            max_tokens,
        )
    kept = asked.truncate_prompt_tokens
    if kept is not None and kept > most:
        raise unacceptable(
            f"truncate_prompt_tokens={kept} cannot be greater than max_model_len = {most}. "
            "Please request a smaller truncation size.",
            "truncate_prompt_tokens",
            kept,
        )


def _kept(model: Model, asked: Sampling, max_tokens: int | None) -> int | None:
    """Ids that truncation leaves; None: all."""
    if asked.truncate_prompt_tokens != -1:
        return asked.truncate_prompt_tokens
    return max(0, model.max_model_len - 1) if max_tokens else model.max_model_len


def _encoded(
    model: Model, asked: Sampling, text: str, special: bool, max_tokens: int | None
) -> tuple[Ids, list[tuple[int, int]] | None]:
    most, kept, side = model.max_model_len, _kept(model, asked, max_tokens), asked.truncation_side
    cut = 0  # characters
    if len(text) > most and (kept is None or side is not None):
        characters = most * model.max_token_characters
        if len(text) > characters and kept is None:
            raise unacceptable(
                f"This model's maximum context length is {most} tokens. However, your prompt "
                f"contains {len(text)} characters (more than {characters} characters, which is the "
                f"upper bound for {most} input tokens). Please reduce the length of the input "
                "prompt.",
                "input_text",
                len(text),
            )
        if len(text) > characters and side == "left":
            cut = len(text) - characters
        text = text[cut:][:characters]
    if asked.return_token_offsets:
        encoding = model.hf.encode(text, add_special_tokens=special)
        ids = model.tokenizer.encode(text, add_special_tokens=special)
        try:
            found = encoding.offsets
        except ValueError as error:  # a vocabulary without them
            raise unacceptable(str(error), "return_token_offsets") from None
        offsets = [(a + cut, b + cut) if (a, b) != (0, 0) else (0, 0) for a, b in found]
    else:
        ids, offsets = model.tokenizer.encode(text, add_special_tokens=special), None
    if kept is None or kept >= len(ids):
        return ids, offsets
    first, template = 0, model.tokenizer.template
    if side is None and special and kept >= len(template.before) + len(template.after):
        first = len(template.before)  # what is around the text stays
    elif side == "right":
        first = kept
    last = first + len(ids) - kept
    ids = np.concatenate((ids[:first], ids[last:]))
    return ids, None if offsets is None else offsets[:first] + offsets[last:]


def _checked(model: Model, ids: Ids) -> Ids:
    most = model.max_model_len
    if len(ids) > most:
        raise unacceptable(
            f"This model's maximum context length is {most} tokens. However, your prompt contains "
            f"at least {most + 1} input tokens, which exceeds this limit even without any output "
            "tokens. Please reduce the length of the input prompt.",
            "input_tokens",
            most + 1,
        )
    if len(ids) == 0:
        raise unacceptable("No token_ids rendered")
    return ids


def _max_tokens(model: Model, asked: Sampling, given: int | None, length: int) -> int:
    kept = asked.truncate_prompt_tokens
    if kept is not None:
        length = min(length, model.max_model_len if kept == -1 else kept)
    wanted = model.generation.get("max_tokens") if given is None else given
    left = model.max_model_len - length
    return left if wanted is None else min(left, wanted)


def _prompts(given: str | list[Any] | None, most: int) -> list[str | list[int]]:
    if given is None or given == "":
        raise unacceptable(NO_PROMPT, "prompt")
    if isinstance(given, str):
        return [given]
    if not given:
        raise unacceptable("You must pass at least one prompt")
    if not isinstance(given[0], (str, list)):
        return [_ids(given)]
    if len(given) > most:
        raise unacceptable(
            f"prompt list length {len(given)} exceeds the maximum allowed count of {most}.",
            "prompt",
        )
    if isinstance(given[0], list):
        return [_ids(one) for one in given]
    return [*msgspec.convert(given, list[str])]


def _ids(given: Any) -> list[int]:
    return msgspec.convert(given, list[Count], strict=False)


def render_completion(models: Models, body: bytes) -> bytes:
    asked = read(body, CompletionRequest)
    check_request(asked)
    if asked.prompt_embeds:
        raise not_implemented("prompt_embeds", "prompt_embeds")
    if asked.logprobs is not None and asked.logprobs < -1:
        raise unacceptable("`logprobs` must be a positive value or -1.", "logprobs", asked.logprobs)
    if asked.logprob_token_ids and asked.logprobs is None:
        raise unacceptable(
            "when using `logprob_token_ids`, `logprobs` must be set.", "logprob_token_ids"
        )
    try:
        prompts = _prompts(asked.prompt, min(PROMPTS_MAX, models.max_batch))
    except msgspec.ValidationError as error:
        raise unacceptable(f"prompt: {error}", "prompt") from None
    model = models.named(asked.model)
    if asked.use_beam_search:
        raise unacceptable("Beam search is not supported by the render endpoint")
    if asked.suffix is not None:
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            "suffix is only supported for models with FIM completion rendering",
            kind="BadRequestError",
            param="suffix",
        )
    given = DEFAULT_MAX_TOKENS if asked.max_tokens is None else asked.max_tokens
    _check_lengths(model, asked, given, "max_tokens")
    name = _name_of(asked, "cmpl")
    answers: list[bytes] = []
    tokens = size = 0
    for i, prompt in enumerate(prompts):
        if isinstance(prompt, str):
            ids, offsets = _encoded(model, asked, prompt, asked.add_special_tokens, given)
        else:
            ids, offsets = model.ids_of(prompt), None
            kept = _kept(model, asked, given)
            if kept is not None and kept < len(ids):
                ids = ids[:kept] if asked.truncation_side == "right" else ids[len(ids) - kept :]
        ids = _checked(model, ids)
        tokens += len(ids)
        models.check_tokens(tokens, "prompt")
        most = _max_tokens(model, asked, given, len(ids))
        params = sampling_params(
            asked,
            n=asked.n,
            max_tokens=1 if asked.echo and given == 0 else most,
            logprobs=asked.logprobs,
            prompt_logprobs=asked.logprobs
            if asked.prompt_logprobs is None and asked.echo
            else asked.prompt_logprobs,
            defaults=model.generation,
        )
        one = name if len(prompts) == 1 else f"{name}-{i}"
        answers.append(_generate(model, asked, one, ids, offsets, params, None))
        size += len(answers[-1])
        if size > ANSWER_MAX:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the answer has more than {ANSWER_MAX} bytes: send fewer prompts at once",
                param="prompt",
            )
    model.count(tokens)
    return b"[%b]" % b",".join(answers)


def check_tools(asked: ChatRequest) -> None:
    """Refused: the answer would have to be parsed for calls of tools."""
    if asked.tools == []:
        raise unacceptable(
            "`tools` must not be an empty array. Either provide at least one tool or omit the "
            "field entirely.",
            "tools",
        )
    choice = asked.tool_choice
    if choice is UNSET:
        choice = "auto" if asked.tools else "none"
    if choice is None or choice == "none":
        return
    if asked.tools is None:
        raise unacceptable("When using `tool_choice`, `tools` must be set.", "tool_choice")
    if choice not in ("auto", "required") and not isinstance(choice, dict):
        raise unacceptable(
            f'Invalid value for `tool_choice`: {choice}! Only named tools, "none", "auto" or '
            '"required" are supported.',
            "tool_choice",
        )
    raise not_implemented(
        f'tool_choice {choice!r} needs a parser of tool calls (give "none" to render tools alone)',
        "tool_choice",
    )


def _check_chat(asked: ChatRequest) -> None:
    check_request(asked)
    top = asked.top_logprobs or 0
    if top < -1:
        raise unacceptable("`top_logprobs` must be a positive value or -1.", "top_logprobs", top)
    if top and not asked.logprobs:
        raise unacceptable(
            "when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs"
        )
    if asked.logprob_token_ids and not asked.logprobs:
        raise unacceptable(
            "when using `logprob_token_ids`, `logprobs` must be set to true.", "logprob_token_ids"
        )
    check_tools(asked)
    if asked.continue_final_message and asked.add_generation_prompt is True:
        raise unacceptable(
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True."
        )
    for name in ("media_io_kwargs", "mm_processor_kwargs"):
        if getattr(asked, name):
            raise not_implemented(name, name)


# What a template's own variables may not be: arguments of Tokenizer.apply_chat_template.
ARGUMENTS = ("messages", "special_in_messages", "tokenize", "tools")


def chat_text(models: Models, model: Model, asked: ChatRequest) -> str:
    """A conversation by the model's template."""
    variables = dict(asked.chat_template_kwargs or {})
    own = variables.pop("chat_template", None)
    if asked.chat_template is not None:
        own = asked.chat_template
    if own is not None and not models.trust_request_chat_template:
        raise unacceptable(UNTRUSTED)
    if refused := variables.keys() & {*ARGUMENTS}:
        raise unacceptable(
            f"Found unexpected chat template kwargs from request: {refused}", "chat_template_kwargs"
        )
    given: dict[str, Any] = {
        "add_generation_prompt": asked.add_generation_prompt is not False,
        "continue_final_message": asked.continue_final_message,
    }
    if asked.documents is not None:
        given["documents"] = asked.documents
    if asked.reasoning_effort is not None:
        given["reasoning_effort"] = asked.reasoning_effort
        given.setdefault("enable_thinking", asked.reasoning_effort != "none")
        if "enable_thinking" in variables:
            del given["enable_thinking"]
    if not asked.messages:
        raise unacceptable(
            "Cannot apply chat template to an empty conversation. Provide at least one message."
        )
    tools = None if asked.tools is None else [_tool(tool) for tool in asked.tools]
    try:
        template = model.config.template(own, tools is not None)
        with nullcontext() if own is None else deadline(TEMPLATE_S):
            return model.tokenizer.apply_chat_template(
                conversation(asked.messages, template),
                tools=tools,
                chat_template=template,
                tokenize=False,
                **(variables | given),
            )
    except (TypeError, ValueError) as error:
        raise unacceptable(str(error).removeprefix("chat template: ")) from None
    except ImportError as error:
        raise Refused(HTTPStatus.NOT_IMPLEMENTED, str(error), kind="NotImplementedError") from None
    except TooLong:
        raise unacceptable(f"the chat template takes more than {TEMPLATE_S:g} s") from None


def _tool(tool: Tool) -> dict[str, Any]:
    """As templates get it; unknown fields are left out."""
    made: dict[str, Any] = msgspec.to_builtins(tool)
    function = made["function"]
    if function["defer_loading"] is None:
        function["defer_loading"] = tool.defer_loading
    for of, name in ((function, "strict"), (function, "defer_loading"), (made, "defer_loading")):
        if of[name] is None:
            del of[name]
    return made


def render_chat(models: Models, body: bytes) -> bytes:
    asked = read(body, ChatRequest)
    _check_chat(asked)
    model = models.named(asked.model)
    if model.kind == "gpt_oss":
        raise not_implemented(f"Harmony, which chats of {model.name} are rendered in")
    if asked.use_beam_search:
        raise unacceptable("Beam search is not supported by the render endpoint")
    given, param = asked.max_completion_tokens, "max_completion_tokens"
    if given is None:
        given, param = asked.max_tokens, "max_tokens"
    _check_lengths(model, asked, given, param)
    text = chat_text(models, model, asked)
    ids, offsets = _encoded(model, asked, text, asked.add_special_tokens, given)
    ids = _checked(model, ids)
    models.check_tokens(len(ids), "messages")
    model.count(len(ids))
    prompt_logprobs = asked.prompt_logprobs
    if prompt_logprobs is None and asked.echo:
        prompt_logprobs = asked.top_logprobs or 0
    params = sampling_params(
        asked,
        n=1 if asked.n is None else asked.n,
        max_tokens=_max_tokens(model, asked, given, len(ids)),
        logprobs=(asked.top_logprobs or 0) if asked.logprobs else None,
        prompt_logprobs=prompt_logprobs,
        defaults=model.generation,
    )
    ended = None if asked.include_reasoning else True
    name = _name_of(asked, "chatcmpl")
    return _generate(model, asked, name, ids, offsets, params, ended)


def messages_render(models: Models, body: bytes) -> bytes:
    raise not_implemented("/v1/messages/render")


def responses_render(models: Models, body: bytes) -> bytes:
    raise not_implemented("/v1/responses/render")
