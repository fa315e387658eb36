# SPDX-License-Identifier: BSD-3-Clause
"""/tokenize of `inputs`, /decode and /info, as text-embeddings-inference (TEI) has them.

A request may name a `model`, which TEI's do not. Refused is in vLLM's shape here: the callers, who
answer in TEI's, use errors.as_tei.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from .. import __version__
from .._cpus import cpus
from ..embedder import Embedder
from .batches import BATCH_TOKENS
from .body import read
from .errors import Refused, TeiRefused, bad_request
from .models import Model, Models

CHARACTERS_PER_TOKEN = 250  # TEI refuses longer inputs before it tokenizes them


class TokenizeRequest(Struct):
    inputs: str | list[str]
    add_special_tokens: bool = True
    prompt_name: str | None = None
    model: str | None = None


class DecodeRequest(Struct):
    ids: list[int | list[int]]
    skip_special_tokens: bool = True
    model: str | None = None


class Token(Struct):
    """start, stop: bytes of the input's UTF-8, as TEI counts; None: a token of the template."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


def _empty(field: str) -> Refused:
    return TeiRefused(HTTPStatus.BAD_REQUEST, f"`{field}` cannot be empty", "Empty")


def _bytes_before(text: str) -> Any:
    """[i]: bytes of UTF-8 before character i, of which the last is the text's end."""
    if text.isascii():
        return range(len(text) + 1)
    raw = np.frombuffer(text.encode(), np.uint8)
    return [*np.flatnonzero((raw & 0xC0) != 0x80).tolist(), len(raw)]


def _tokens(model: Model, text: str, add_special_tokens: bool) -> list[Token]:
    if not text:
        raise _empty("inputs")
    limit = model.max_model_len * CHARACTERS_PER_TOKEN
    if len(text) > limit:
        raise bad_request(
            f"`inputs` must have less than {limit} characters. Given: {len(text)}", "inputs"
        )
    try:
        encoding = model.hf.encode(text, add_special_tokens=add_special_tokens)
        offsets = encoding.offsets
    except ValueError as error:
        raise TeiRefused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), "Tokenizer") from None
    at = _bytes_before(text)
    return [
        Token(id, token, True, None, None)
        if special
        else Token(id, text[begin:end], False, at[begin], at[end])
        for id, token, special, (begin, end) in zip(
            encoding.ids, encoding.tokens, encoding.special_tokens_mask, offsets, strict=True
        )
    ]


def tokenize(models: Models, body: bytes) -> bytes:
    asked = read(body, TokenizeRequest)
    if asked.prompt_name is not None:
        raise bad_request(f"prompt_name: {asked.prompt_name!r}: there are no prompts here")
    model = models.named(asked.model)
    texts = [asked.inputs] if isinstance(asked.inputs, str) else asked.inputs
    if not texts:
        raise _empty("inputs")
    models.check_batch(len(texts), "inputs")
    answer, count = [], 0
    for text in texts:
        answer.append(_tokens(model, text, asked.add_special_tokens))
        count += len(answer[-1])
        models.check_tokens(count, "inputs")
    model.count(count)
    return msgspec.json.encode(answer)


def decode(models: Models, body: bytes) -> bytes:
    asked = read(body, DecodeRequest)
    model = models.named(asked.model)
    lists = [one for one in asked.ids if isinstance(one, list)]
    if lists and len(lists) < len(asked.ids):
        raise bad_request("ids: expected a list of numbers, or a list of such lists", "ids")
    several = lists or [[one for one in asked.ids if isinstance(one, int)]]
    models.check_batch(len(several), "ids")
    count = sum(map(len, several))
    models.check_tokens(count, "ids")
    for at, ids in enumerate(several):
        if not ids:
            raise _empty("input_ids")
        model.check_ids(ids, f"ids[{at}]" if lists else "ids")
    model.count(count)
    return msgspec.json.encode([model.hf.decode(ids, asked.skip_special_tokens) for ids in several])


def info(models: Models, embedders: Mapping[str, Embedder], requests: int) -> bytes:
    """Of the model that /embed uses. Without one of the first; null: what is of weights.

    requests: at once.
    """
    model = models.named(next(iter(embedders), None))
    embedder = embedders.get(model.name)
    return msgspec.json.encode(
        {
            "model_id": model.path,
            "model_sha": None,
            "model_dtype": embedder and "float32",
            "served_model_name": model.name,
            "model_type": embedder and {"embedding": {"pooling": embedder.pooling}},
            "max_concurrent_requests": requests,
            "max_input_length": embedder.max_tokens if embedder else model.max_model_len,
            "max_batch_tokens": BATCH_TOKENS if embedder else models.max_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": models.max_batch,
            "auto_truncate": False,
            "tokenization_workers": cpus(),
            "version": __version__,
            "sha": None,
            "docker_label": None,
        }
    )
