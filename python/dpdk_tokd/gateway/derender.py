# SPDX-License-Identifier: BSD-3-Clause
"""/v1/completions/derender and /v1/chat/completions/derender, as vLLM has them: what its
/inference/v1/generate answers becomes what the OpenAI API does, whole or chunk by chunk.

Nothing is kept between chunks: a client carries `stream_state`, to whichever server it asks next.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from .appliances import Appliances
from .body import read
from .errors import bad_request, unacceptable
from .models import Model, Models
from .render import ChatRequest, CompletionRequest, check_tools
from .sampling import SEQUENCES_MAX, Count, Int64
from .window import UNFINISHED, UNFINISHED_MAX, Said, Window, after_prompt, fits

TOP_MAX = 20  # candidates of a position
CONTEXT = 4  # ids before one that is part of a character
TOKEN_MAX = 1024  # characters
WINDOW_MAX = 1024
AT_ONCE = 64  # texts of an answer that appliances decode: some of what they may is left for others

Ids = list[Count]


class Candidate(Struct):
    token_id: int
    logprob: float


class Position(Candidate):
    top_logprobs: list[Candidate] = []


class Logprobs(Struct):
    content: list[Position] | None = None


class StreamChoice(Struct, kw_only=True):
    index: int
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    token_ids: list[int] | None = None
    logprobs: Logprobs | None = None


class Choice(StreamChoice, kw_only=True):
    finish_reason: str | None = "stop"
    token_ids: Ids | None = None


class PromptLogprob(Struct):
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


class Generated(Struct, kw_only=True):
    """An answer of /inference/v1/generate; what is not used is ignored."""

    choices: list[Choice]
    request_id: str | UnsetType = UNSET
    output_mode: Literal["tokens"] = "tokens"
    prompt_logprobs: list[dict[int, PromptLogprob] | None] | None = None
    prompt_token_ids: Ids | None = None
    metrics: dict[str, Any] | None = None
    kv_transfer_params: dict[str, Any] | None = None


class Used(Struct):
    prompt_tokens: Int64 = 0
    completion_tokens: Int64 | None = 0


class Chunk(Struct, kw_only=True):
    """One of a stream of it."""

    choices: list[StreamChoice]
    request_id: str | UnsetType = UNSET
    output_mode: Literal["tokens"] = "tokens"
    usage: Used | None = None
    prompt_token_ids: Ids | None = None
    metrics: dict[str, Any] | None = None


class StreamState(Struct):
    """Carried by the client. Of the last five only parsers make use, which there are none of."""

    prev_tokens: Annotated[list[str], Meta(max_length=WINDOW_MAX)] = []
    prefix_offset: Count = 0
    read_offset: Count = 0
    role_sent: bool = False
    logprob_context_token_ids: Annotated[list[int], Meta(max_length=CONTEXT)] = []
    logprob_text_offset: Count = 0
    output_token_ids: list[int] = []
    output_chunk_lens: list[Annotated[int, Meta(gt=0, le=2**63 - 1)]] = []
    tools_streamed: bool = False
    last_tool_call_ids: list[str] = []


class Stream(Struct):
    stream: bool = False


class ChatWhole(Struct, kw_only=True):
    generate_response: Generated
    model: str | None = None
    prompt_tokens: Int64 | None = None
    prompt_token_ids: Ids | None = None
    chat_request: ChatRequest | None = None


class CompletionWhole(Struct, kw_only=True):
    generate_responses: list[Generated]
    model: str | None = None
    prompt_tokens: list[Int64] | None = None
    prompt_token_ids: list[Ids | None] | None = None
    completion_request: CompletionRequest | None = None


class ChatChunk(Struct, kw_only=True):
    generate_chunk: Chunk
    model: str | None = None
    stream_state: StreamState | None = None
    prompt_tokens: Int64 | None = None
    prompt_token_ids: Ids | None = None
    chat_request: ChatRequest | None = None


class CompletionChunk(Struct, kw_only=True):
    generate_chunk: Chunk
    model: str | None = None
    stream_state: StreamState | None = None
    prompt_tokens: Int64 | None = None
    prompt_token_ids: Ids | None = None
    completion_request: CompletionRequest | None = None


def _check_choices(model: Model, choices: Sequence[StreamChoice]) -> None:
    """Limits before work."""
    most = model.max_model_len
    if len(choices) > SEQUENCES_MAX:
        raise unacceptable(
            f"choices count ({len(choices)}) exceeds server maximum ({SEQUENCES_MAX})."
        )
    for choice in choices:
        content = choice.logprobs.content if choice.logprobs else None
        for name, items in (("token_ids", choice.token_ids), ("logprobs.content", content)):
            if items and len(items) > most:
                raise unacceptable(
                    f"{name} length ({len(items)}) in choice {choice.index} exceeds "
                    f"max_model_len ({most})."
                )
        for position in content or ():
            if len(position.top_logprobs) > TOP_MAX:
                raise unacceptable(
                    f"top_logprobs count ({len(position.top_logprobs)}) in choice "
                    f"{choice.index} exceeds max_logprobs ({TOP_MAX})."
                )


def _check_answers(model: Model, answers: list[Generated]) -> None:
    most = model.max_model_len
    if len(answers) > SEQUENCES_MAX:
        raise unacceptable(
            f"generate_responses count ({len(answers)}) exceeds server maximum ({SEQUENCES_MAX})."
        )
    for answer in answers:
        _check_choices(model, answer.choices)
        if answer.prompt_logprobs and len(answer.prompt_logprobs) > most:
            raise unacceptable(
                f"prompt_logprobs length ({len(answer.prompt_logprobs)}) exceeds max_model_len "
                f"({most})."
            )


def _check_prompt(model: Model, ids: list[int] | None) -> None:
    if ids is not None and len(ids) > model.max_model_len:
        raise unacceptable(
            f"prompt_token_ids length ({len(ids)}) exceeds max_model_len ({model.max_model_len})."
        )


def _skips(request: ChatRequest | CompletionRequest | None) -> bool:
    return request is None or request.skip_special_tokens


def _ids_of(choice: Choice, where: str = "") -> list[int]:
    if not choice.token_ids:
        raise unacceptable(f"choice {choice.index}{where} has empty or null token_ids")
    return choice.token_ids


# ---- logarithms of probabilities ----


def _completed(model: Model, id: int, before: list[int]) -> str:
    """What an id that is part of a character adds to those before it; "" while it is not whole."""
    decode = model.hf.decode
    for n in range(1, min(len(before), CONTEXT) + 1):
        context = before[-n:]
        text = decode([*context, id], False)
        if text.endswith(UNFINISHED):
            continue
        whole = len(context)
        while whole and decode([context[whole - 1]], False).endswith(UNFINISHED):
            whole -= 1
        prefix = decode(context[:whole], False) if whole else ""
        same = 0
        while same < min(len(prefix), len(text)) and prefix[same] == text[same]:
            same += 1
        return text[same:]
    return ""


def _token(model: Model, id: int, before: list[int]) -> tuple[str, list[int] | None]:
    """Text and bytes of one id."""
    (spelled,) = model.spelled([id], False)
    if not spelled:
        return "", None
    text = model.hf.decode([id], False)
    if blank := model.hf.blank:  # decoding drops those in front
        blanks = len(spelled) - len(spelled.lstrip(blank))
        text = " " * (blanks - (len(text) - len(text.lstrip(" ")))) + text
    if text.endswith(UNFINISHED):
        text = _completed(model, id, before)
    return text, [*text.encode()]


def _logprobs(model: Model, given: Logprobs, before: list[int]) -> list[dict[str, Any]] | None:
    """Of each position, as chats have them."""
    if given.content is None:
        return None
    before = [*before]
    found = []
    for position in given.content:
        top = []
        for one in position.top_logprobs:
            text, raw = _token(model, one.token_id, before)
            top.append({"token": text, "logprob": one.logprob, "bytes": raw})
        text, raw = _token(model, position.token_id, before)
        found.append(
            {"token": text, "logprob": position.logprob, "bytes": raw, "top_logprobs": top}
        )
        before.append(position.token_id)
    return found


def _chat_logprobs(
    model: Model, given: Logprobs | None, before: list[int]
) -> dict[str, Any] | None:
    return None if given is None else {"content": _logprobs(model, given, before)}


def _completion_logprobs(
    model: Model, given: Logprobs | None, before: list[int], offset: int
) -> dict[str, list[Any]] | None:
    if given is None:
        return None
    made: dict[str, list[Any]] = {
        "text_offset": [],
        "token_logprobs": [],
        "tokens": [],
        "top_logprobs": [],
    }
    for one in _logprobs(model, given, before) or ():
        made["text_offset"].append(offset)
        made["token_logprobs"].append(one["logprob"])
        made["tokens"].append(one["token"])
        top = {other["token"]: other["logprob"] for other in one["top_logprobs"]}
        made["top_logprobs"].append(top or None)
        offset += len(one["token"])
    return made


# ---- answers ----

# A field that is to be filled in.
Text: TypeAlias = tuple[dict[str, Any], str, Said]
Whole: TypeAlias = tuple[Model, dict[str, Any], list[Text]]


def _counted(models: Models, model: Model, texts: list[Text]) -> int:
    """Tokens; not too many."""
    tokens = sum(len(said.ids) for _, _, said in texts)
    models.check_tokens(tokens, "token_ids")
    model.count(tokens)
    return tokens


def _usage(prompt: int, completion: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }


def _metrics(given: dict[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    names = ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms")
    return dict.fromkeys((*names, "tokens_per_second", "speculative_decoding")) | given


def _answer(kind: str, name: str | UnsetType, model: Model, **more: Any) -> dict[str, Any]:
    return {
        "id": uuid.uuid4().hex if name is UNSET else name,
        "object": kind,
        "created": int(time.time()),
        "model": model.name,
        **more,
    }


def _whole_chat(models: Models, body: bytes) -> Whole:
    asked = read(body, ChatWhole)
    model = models.named(asked.model)
    answer, request = asked.generate_response, asked.chat_request
    _check_answers(model, [answer])
    _check_prompt(model, asked.prompt_token_ids)
    if request is not None:
        check_tools(request)
    prompt = asked.prompt_token_ids
    prompt = answer.prompt_token_ids if prompt is None else prompt
    choices: list[dict[str, Any]] = []
    texts: list[Text] = []
    for choice in answer.choices:
        ids = _ids_of(choice)
        message = {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": None,
        }
        texts.append((message, "content", Said(model, prompt, ids, _skips(request))))
        choices.append(
            {
                "index": choice.index,
                "message": message,
                "logprobs": _chat_logprobs(model, choice.logprobs, []),
                "finish_reason": choice.finish_reason,
                "stop_reason": choice.stop_reason,
                "token_ids": ids if request is not None and request.return_token_ids else None,
                "routed_experts": None,
            }
        )
    made = _answer(
        "chat.completion",
        answer.request_id,
        model,
        choices=choices,
        service_tier=None,
        system_fingerprint=None,
        usage=_usage(asked.prompt_tokens or 0, _counted(models, model, texts)),
        prompt_logprobs=answer.prompt_logprobs,
        prompt_token_ids=None,
        prompt_text=None,
        kv_transfer_params=answer.kv_transfer_params,
        ec_transfer_params=None,
        metrics=_metrics(answer.metrics),
    )
    return model, made, texts


def _whole_completion(models: Models, body: bytes) -> Whole:
    asked = read(body, CompletionWhole)
    answers, n = asked.generate_responses, len(asked.generate_responses)
    for name in ("prompt_tokens", "prompt_token_ids"):
        given = getattr(asked, name)
        if given is not None and len(given) != n:
            raise bad_request(
                f"{name} length ({len(given)}) must equal generate_responses length ({n})", name
            )
    model = models.named(asked.model)
    if not answers:
        raise unacceptable("generate_responses must not be empty")
    _check_answers(model, answers)
    prompts = asked.prompt_token_ids or [None] * n
    for prompt in prompts:
        _check_prompt(model, prompt)
    skips = _skips(asked.completion_request)
    choices: list[dict[str, Any]] = []
    texts: list[Text] = []
    for answer, prompt in zip(answers, prompts, strict=True):
        prompt = answer.prompt_token_ids if prompt is None else prompt
        for choice in answer.choices:
            ids = _ids_of(choice, f" in response {answer.request_id}")
            choices.append(
                {
                    "index": len(choices),
                    "text": None,
                    "logprobs": _completion_logprobs(model, choice.logprobs, [], 0),
                    "finish_reason": choice.finish_reason,
                    "stop_reason": choice.stop_reason,
                    "token_ids": None,
                    "prompt_logprobs": None,
                    "prompt_token_ids": None,
                    "routed_experts": None,
                }
            )
            texts.append((choices[-1], "text", Said(model, prompt, ids, skips)))
    transfer = answers[0].kv_transfer_params
    same = all(answer.kv_transfer_params == transfer for answer in answers)
    made = _answer(
        "text_completion",
        answers[0].request_id,
        model,
        choices=choices,
        service_tier=None,
        system_fingerprint=None,
        usage=_usage(sum(asked.prompt_tokens or ()), _counted(models, model, texts)),
        kv_transfer_params=transfer if same else None,
        ec_transfer_params=None,
        metrics=_metrics(answers[0].metrics) if n == 1 else None,
    )
    return model, made, texts


async def _text(appliances: Appliances, said: Said) -> str:
    ids = said.joined()
    text = await appliances.decode(ids) if ids else None
    return text if fits(text) else await appliances.here(said.by_window)


async def _by_appliances(
    appliances: Appliances, answer: dict[str, Any], texts: list[Text]
) -> bytes:
    waiting = iter(texts)

    async def fill() -> None:
        for into, field, said in waiting:
            into[field] = await _text(appliances, said)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(texts))):
                group.create_task(fill())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # the others were then cancelled
    return msgspec.json.encode(answer)


def _filled(model: Model, answer: dict[str, Any], texts: list[Text]) -> bytes | Awaitable[bytes]:
    if model.appliances is not None:
        return _by_appliances(model.appliances, answer, texts)
    for into, field, said in texts:
        into[field] = said.text()
    return msgspec.json.encode(answer)


def _resumed(
    model: Model, asked: ChatChunk | CompletionChunk, skips: bool
) -> tuple[StreamState, Window]:
    state = asked.stream_state
    if state is None:
        prompt = asked.prompt_token_ids
        prompt = asked.generate_chunk.prompt_token_ids if prompt is None else prompt
        return StreamState(), after_prompt(model, prompt, skips)
    if sum(state.output_chunk_lens) != len(state.output_token_ids):
        raise bad_request(
            "output_chunk_lens must sum to len(output_token_ids) "
            f"(got sum={sum(state.output_chunk_lens)}, "
            f"len(output_token_ids)={len(state.output_token_ids)})",
            "stream_state",
        )
    longest = max(map(len, state.prev_tokens), default=0)
    if longest > TOKEN_MAX:
        raise bad_request(
            f"prev_tokens: a token of {longest} characters: at most {TOKEN_MAX}", "stream_state"
        )
    most = len(state.prev_tokens) + UNFINISHED_MAX  # farther, a Window would grow
    if not state.prefix_offset <= state.read_offset <= most:
        raise bad_request(
            f"prefix_offset {state.prefix_offset}, read_offset {state.read_offset}: expected the "
            f"first to be the lower, and at most {most}",
            "stream_state",
        )
    return state, Window(state.prev_tokens, state.prefix_offset, state.read_offset)


def _streamed(
    kind: str,
    model: Model,
    asked: ChatChunk | CompletionChunk,
    choices: list[dict[str, Any]],
    state: StreamState,
    window: Window,
    more: dict[str, None],
) -> dict[str, Any]:
    """The chunk, and what the client is to bring with the next."""
    chunk, usage = asked.generate_chunk, None
    new = [id for choice in chunk.choices for id in choice.token_ids or ()]
    model.count(len(new))
    state.prev_tokens = window.tokens
    state.prefix_offset, state.read_offset = window.prefix, window.read
    state.logprob_context_token_ids = [*state.logprob_context_token_ids, *new][-CONTEXT:]
    if chunk.usage is not None:
        prompt = asked.prompt_tokens
        prompt = chunk.usage.prompt_tokens if prompt is None else prompt
        usage = _usage(prompt, chunk.usage.completion_tokens or 0)
    made = _answer(
        kind,
        chunk.request_id,
        model,
        choices=choices,
        usage=usage,
        system_fingerprint=None,
        **more,
        metrics=_metrics(chunk.metrics),
    )
    return {"chunk": made, "stream_state": state}


def _chat_chunk(models: Models, body: bytes) -> dict[str, Any]:
    asked = read(body, ChatChunk)
    model = models.named(asked.model)
    chunk, request = asked.generate_chunk, asked.chat_request
    if (n := len(chunk.choices)) > 1:
        raise unacceptable(f"derender_chat_stream expects at most one choice per chunk (got {n}).")
    if request is not None:
        check_tools(request)
    lengths = (
        len(asked.prompt_token_ids or ()),
        len(asked.stream_state.output_token_ids) if asked.stream_state else 0,
        sum(len(choice.token_ids or ()) for choice in chunk.choices),
    )
    if sum(lengths) > model.max_model_len:
        prompt, before, new = lengths
        raise unacceptable(
            f"prompt_token_ids length ({prompt}) plus output_token_ids length ({before}) plus "
            f"delta ({new}) exceeds max_model_len ({model.max_model_len})."
        )
    _check_choices(model, chunk.choices)
    state, window = _resumed(model, asked, _skips(request))
    choices = []
    for choice in chunk.choices:
        ids = choice.token_ids or []
        text = window.feed(model, ids, _skips(request))
        delta = {
            "role": None if state.role_sent else "assistant",
            "content": text or None,
            "reasoning": None,
        }
        choices.append(
            {
                "index": choice.index,
                "delta": delta,
                "logprobs": _chat_logprobs(model, choice.logprobs, state.logprob_context_token_ids),
                "finish_reason": choice.finish_reason,
                "stop_reason": choice.stop_reason,
                "token_ids": choice.token_ids
                if request is not None and request.return_token_ids
                else None,
            }
        )
        state.role_sent = True
    more = {"prompt_token_ids": None, "prompt_text": None}
    return _streamed("chat.completion.chunk", model, asked, choices, state, window, more)


def _completion_chunk(models: Models, body: bytes) -> dict[str, Any]:
    asked = read(body, CompletionChunk)
    model = models.named(asked.model)
    chunk, skips = asked.generate_chunk, _skips(asked.completion_request)
    _check_prompt(model, asked.prompt_token_ids)
    if len(chunk.choices) > 1:
        raise unacceptable("derender_completion_stream expects at most one choice per chunk")
    for choice in chunk.choices:
        if choice.token_ids and len(choice.token_ids) > model.max_model_len:
            raise unacceptable(
                f"token_ids length ({len(choice.token_ids)}) exceeds max_model_len "
                f"({model.max_model_len})."
            )
    _check_choices(model, chunk.choices)
    state, window = _resumed(model, asked, skips)
    choices = []
    for choice in chunk.choices:
        ids = choice.token_ids or []
        text = window.feed(model, ids, skips)
        choices.append(
            {
                "index": choice.index,
                "text": text,
                "logprobs": _completion_logprobs(
                    model,
                    choice.logprobs,
                    state.logprob_context_token_ids,
                    state.logprob_text_offset,
                ),
                "finish_reason": choice.finish_reason,
                "stop_reason": choice.stop_reason,
                "prompt_token_ids": None,
                "token_ids": None,
            }
        )
        state.logprob_text_offset += len(text)
    return _streamed("text_completion", model, asked, choices, state, window, {})


def derender_chat(models: Models, body: bytes) -> bytes | Awaitable[bytes]:
    if read(body, Stream).stream:
        return msgspec.json.encode(_chat_chunk(models, body))
    return _filled(*_whole_chat(models, body))


def derender_completion(models: Models, body: bytes) -> bytes | Awaitable[bytes]:
    if read(body, Stream).stream:
        return msgspec.json.encode(_completion_chunk(models, body))
    return _filled(*_whole_completion(models, body))
