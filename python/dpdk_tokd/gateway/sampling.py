# SPDX-License-Identifier: BSD-3-Clause
"""Sampling parameters: what a request may ask for, and what vLLM's engine is told."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .block_keys import BlockKeys
from .errors import Refused, not_implemented, unacceptable

SEQUENCES_MAX = 16384  # of one prompt
STOPS_MAX = 4
SALT_MAX = 128
ID_DIGITS = 20  # and more than any id has; Python takes 4300
GREEDY = 1e-5  # a lower temperature is none
TEMPERATURE_MIN = 1e-2

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class StreamOptions(Struct):
    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class RepetitionDetection(Struct):
    max_pattern_size: int = 0
    min_pattern_size: int = 0
    min_count: int = 0


class StructuredOutputs(Struct):
    """One constraint of the first six, and how it is to be taken."""

    json: str | dict[str, Any] | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    structural_tag: str | None = None


CONSTRAINTS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")


class Sampling(Struct, kw_only=True):
    """Fields that completions and chats have in common; unknown ones are ignored."""

    model: str | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    presence_penalty: float | None = None
    response_format: dict[str, Any] | None = None
    seed: Int64 | None = None
    stop: str | Annotated[list[str], Meta(max_length=STOPS_MAX)] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    thinking_token_budget: int | None = None
    use_beam_search: bool = False
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    watermarking: bool | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    min_tokens: int = 0
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    truncate_prompt_tokens: Annotated[int, Meta(ge=-1, le=2**63 - 1)] | None = None
    truncation_side: Literal["left", "right"] | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] = []
    structured_outputs: StructuredOutputs | None = None
    priority: Int64 = 0
    request_id: str | UnsetType = UNSET
    return_token_ids: bool | None = None
    return_token_offsets: bool | None = False
    routed_experts_prompt_start: Count = 0
    cache_salt: str | None = None
    block_keys: BlockKeys | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    vllm_xargs: dict[str, Any] | None = None
    repetition_detection: RepetitionDetection | None = None
    stream_interval: Annotated[int, Meta(ge=1)] | None = None


# What a request may leave to the model's generation_config.json, and what holds if that leaves it.
DEFAULTS: dict[str, float] = {
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
}
DEFAULT_MAX_TOKENS = 16  # the engine's: left out of what it is told


def _outside(name: str, value: float, words: str, named: bool = False) -> Refused:
    if named:
        return unacceptable(f"{name} must be {words}, got {value}.", name, value)
    return unacceptable(f"{name} must be {words}, got {value}.")


def check_request(asked: Sampling) -> None:
    """What does not depend on the prompt, and vLLM refuses before it reads that."""
    if asked.stream_options and not asked.stream:
        raise unacceptable(
            "Stream options can only be defined when `stream=True`.", "stream_options"
        )
    if (salt := asked.cache_salt) is not None:
        if not salt:
            raise unacceptable(
                "Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt"
            )
        if len(salt) > SALT_MAX or any(c in salt for c in "@/\\\0"):
            raise unacceptable(
                f"Parameter 'cache_salt' must be at most {SALT_MAX} characters and must not "
                "contain '@', '/', '\\\\', or NUL.",
                "cache_salt",
            )
    if (n := asked.prompt_logprobs) is not None:
        if asked.stream and (n > 0 or n == -1):
            raise unacceptable(
                "`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs"
            )
        if n < -1:
            raise unacceptable(
                "`prompt_logprobs` must be a positive value or -1.", "prompt_logprobs", n
            )
    budget = asked.thinking_token_budget
    if budget is not None and budget < -1:
        raise unacceptable(
            "`thinking_token_budget` must be a non-negative integer or -1 for unlimited.",
            "thinking_token_budget",
            budget,
        )
    _check_repetition(asked.repetition_detection)
    format = asked.response_format
    if format is not None:
        kind = format.get("type")
        if kind == "json_schema":
            schema = format.get("json_schema")
            if schema is None:
                raise unacceptable(
                    "When response_format type is 'json_schema', the 'json_schema' field must be "
                    "provided.",
                    "response_format",
                )
            if not (isinstance(schema, dict) and isinstance(schema.get("schema"), dict)):
                raise unacceptable(
                    "response_format: json_schema: schema: expected an object", "response_format"
                )
        if kind == "structural_tag":
            raise not_implemented("response_format: structural_tag", "response_format")
        if kind not in ("text", "json_object", "json_schema"):
            raise unacceptable(
                f"response_format: type {kind!r}: expected text, json_object or json_schema",
                "response_format",
            )
    constraint = asked.structured_outputs
    if constraint is not None:
        given = [name for name in CONSTRAINTS if getattr(constraint, name) is not None]
        if "structural_tag" in given:
            raise not_implemented("structured_outputs: structural_tag", "structured_outputs")
        if len(given) != 1:
            raise unacceptable(
                "structured_outputs: give one of json, regex, choice, grammar, json_object; "
                f"got {', '.join(given) or 'none'}"
            )


def _check_repetition(of: RepetitionDetection | None) -> None:
    if of is None:
        return
    if not 0 <= of.min_pattern_size <= max(of.max_pattern_size, 0) or of.max_pattern_size < 0:
        raise unacceptable(
            "max_pattern_size, min_pattern_size must be >=0, with min_pattern_size <= "
            "max_pattern_size. Set both to 0 to disable repetitive pattern detection."
        )
    if of.max_pattern_size > 0 and of.min_count < 2:
        raise unacceptable(
            "min_count must be >= 2 to detect repetitive patterns in engine output. If you do not "
            "wish to detect repetitive patterns, set max_pattern_size to 0."
        )


def _structured(asked: Sampling) -> dict[str, Any] | None:
    constraint = asked.structured_outputs
    format = asked.response_format or {"type": "text"}
    if format["type"] != "text":
        constraint = constraint or StructuredOutputs()
        for name in CONSTRAINTS:
            setattr(constraint, name, None)
        if format["type"] == "json_object":
            constraint.json_object = True
        else:
            constraint.json = format["json_schema"]["schema"]
    if constraint is None:
        return None
    made = {name: getattr(constraint, name) for name in constraint.__struct_fields__}
    return made | {"_backend": None, "_backend_was_auto": False}  # the engine's own notes


def _biases(asked: dict[str, float]) -> dict[str, float]:
    wrong = [
        token
        for token in asked
        if len(token) > ID_DIGITS or not token.strip().removeprefix("-").isdecimal()
    ]
    if wrong:
        raise unacceptable(
            f"logit_bias contains key(s) that cannot be converted to integer token IDs: {wrong!r}",
            "logit_bias",
            wrong,
        )
    return {str(int(token)): min(100.0, max(-100.0, bias)) for token, bias in asked.items()}


def _check_extra(value: Any) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise unacceptable(
            "extra_args integers must be between -2**63 and 2**64 - 1.", "extra_args"
        )
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for item in value:
            _check_extra(item)


def _check(values: dict[str, Any]) -> None:
    n, temperature = values["n"], values["temperature"]
    if n < 1:
        raise unacceptable(f"n must be at least 1, got {n}.")
    if n > SEQUENCES_MAX:
        raise unacceptable(f"n must be at most {SEQUENCES_MAX}, got {n}.")
    for name in ("presence_penalty", "frequency_penalty"):
        if not -2 <= values[name] <= 2:
            raise _outside(name, values[name], "in [-2, 2]")
    if not (math.isfinite(values["repetition_penalty"]) and values["repetition_penalty"] > 0):
        raise _outside("repetition_penalty", values["repetition_penalty"], "greater than zero")
    if not temperature >= 0:
        raise _outside("temperature", temperature, "non-negative", named=True)
    if temperature > 2:
        raise _outside("temperature", temperature, "in [0, 2]", named=True)
    if not 0 < values["top_p"] <= 1:
        raise _outside("top_p", values["top_p"], "in (0, 1]", named=True)
    if values["top_k"] < -1:
        raise _outside("top_k", values["top_k"], "0 (disable), or at least 1")
    if not 0 <= values["min_p"] <= 1:
        raise _outside("min_p", values["min_p"], "in [0, 1]")
    most, least = values["max_tokens"], values["min_tokens"]
    if most < 1:
        raise _outside("max_tokens", most, "at least 1", named=True)
    if least < 0:
        raise _outside("min_tokens", least, "greater than or equal to 0")
    if least > most:
        raise _outside("min_tokens", least, f"less than or equal to max_tokens={most}")
    for name in ("logprobs", "prompt_logprobs"):
        if values[name] is not None and values[name] < -1:
            raise _outside(name, values[name], "non-negative or -1", named=True)
    if not all(values["stop"]):
        raise unacceptable("stop cannot contain an empty string.")
    if not all(values["bad_words"]):
        raise unacceptable(
            f"bad_words cannot contain an empty string. Got bad_words={values['bad_words']}"
        )


def sampling_params(
    asked: Sampling,
    *,
    n: int,
    max_tokens: int,
    logprobs: int | None,
    prompt_logprobs: int | None,
    defaults: dict[str, Any],
) -> dict[str, Any]:
    """As the engine reads them. defaults: those of the model's generation_config.json.

    Of what has the engine's own default only floats and lists are named, as vLLM does it.
    """
    chosen = {
        name: defaults.get(name, default) if (value := getattr(asked, name)) is None else value
        for name, default in DEFAULTS.items()
    }
    stop = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    extra = dict(asked.vllm_xargs or {})
    for name in ("kv_transfer_params", "ec_transfer_params"):
        if given := getattr(asked, name):
            extra[name] = given
    _check_extra(extra)
    held = max(map(len, stop), default=1) - 1 if not asked.include_stop_str_in_output else 0
    detection = asked.repetition_detection
    values: dict[str, Any] = {
        "n": n,
        **chosen,
        "watermarking": asked.watermarking,
        "seed": None if asked.seed == -1 else asked.seed,
        "stop": stop,
        "stop_token_ids": [*dict.fromkeys(asked.stop_token_ids or [])],
        "ignore_eos": asked.ignore_eos,
        "max_tokens": max_tokens,
        "min_tokens": asked.min_tokens,
        "logprobs": None if asked.logprob_token_ids else logprobs,
        "prompt_logprobs": prompt_logprobs,
        "logprob_token_ids": asked.logprob_token_ids or None,
        "skip_special_tokens": asked.skip_special_tokens,
        "spaces_between_special_tokens": asked.spaces_between_special_tokens,
        "include_stop_str_in_output": asked.include_stop_str_in_output,
        "output_kind": 1 if asked.stream else 2,  # what is new; at the end
        "stream_interval": asked.stream_interval,
        "skip_clone": True,
        "output_text_buffer_length": held,
        "structured_outputs": _structured(asked),
        "logit_bias": None if asked.logit_bias is None else _biases(asked.logit_bias),
        "allowed_token_ids": asked.allowed_token_ids,
        "extra_args": extra or None,
        "bad_words": [*dict.fromkeys(asked.bad_words)],
        "skip_reading_prefix_cache": prompt_logprobs is not None,
        "thinking_token_budget": None
        if asked.thinking_token_budget == -1
        else asked.thinking_token_budget,
        "repetition_detection": detection,
        "routed_experts_prompt_start": asked.routed_experts_prompt_start,
    }
    if 0 < values["temperature"] < TEMPERATURE_MIN:
        values["temperature"] = TEMPERATURE_MIN
    _check(values)
    if values["temperature"] < GREEDY:
        values |= {"top_p": None, "top_k": 0, "min_p": None}
        if n > 1:
            raise unacceptable(f"n must be 1 when using greedy sampling, got {n}.")
    return {name: value for name, value in values.items() if value != UNNAMED.get(name)}


# The engine's own, which it need not be told.
UNNAMED: dict[str, Any] = {
    "n": 1,
    "top_k": 0,
    "ignore_eos": False,
    "max_tokens": DEFAULT_MAX_TOKENS,
    "min_tokens": 0,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
    "include_stop_str_in_output": False,
    "output_text_buffer_length": 0,
    "routed_experts_prompt_start": 0,
}
