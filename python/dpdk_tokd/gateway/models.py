# SPDX-License-Identifier: BSD-3-Clause
"""The models that a gateway serves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import cached_property
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..hf import HFTokenizer
from ..tokenizer import Tokenizer
from ..tokenizer.batch import ID_MAX, Ids
from ..tokenizer.config import CONFIG, Config, config_of, object_of
from .errors import Refused, bad_request, unacceptable

if TYPE_CHECKING:
    from .appliances import Appliances

CONTEXT_DEFAULT = 1 << 20  # tokens, where neither an option nor a file says
TOKENS_MAX = 1 << 20  # of a request
BATCH_MAX = 1024  # texts of a request

# Names of the context's length in config.json; the least counts.
CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)

# Kinds of RoPE whose factor is in that length already.
SCALED = ("llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")

# What generation_config.json says of sampling; the last is vLLM's max_tokens.
GENERATION = (
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "max_new_tokens",
)


def _object(folder: str, name: str) -> dict[str, Any]:
    return object_of(os.path.join(folder, name))


def _context_of(folder: str) -> int | None:
    """Tokens, by config.json, as vLLM counts them; a multimodal model's are those of its text."""
    config = _object(folder, "config.json")
    text = config.get("text_config", config)
    found = [text[name] for name in CONTEXT if isinstance(text.get(name), int)]
    if not found:
        return None
    length = min(found)
    if isinstance(text.get("model_max_length"), int):
        length = text["model_max_length"]
    rope = text.get("rope_parameters") or text.get("rope_scaling") or {}
    by_layer = bool(rope) and all(isinstance(one, dict) for one in rope.values())
    factor: float = 1
    for one in rope.values() if by_layer else [rope]:
        kind = one.get("rope_type", one.get("type"))
        if kind in ("longrope", "su"):
            return int(text.get("original_max_position_embeddings", length))
        if kind not in SCALED:
            factor = one.get("factor") or factor
    return int(length * (1 if "gemma3" in str(config.get("model_type")) else factor))


class Model:
    """A vocabulary under the name by which clients ask for it.

    max_model_len: tokens of its context; by the first that says so of the argument, config.json,
    tokenizer_config.json, CONTEXT_DEFAULT.
    """

    def __init__(self, name: str, path: str, max_model_len: int | None = None) -> None:
        self.name, self.path = name, path
        self.appliances: Appliances | None = None  # where its prompts are tokenized, if not here
        self.tokenizer = Tokenizer.load(path)
        # A name of the search path is no path: its files are not in this process's folder.
        found = os.path.abspath(self.tokenizer.info.path)
        self.folder = folder = path if os.path.isdir(path) else os.path.dirname(found)
        self.max_model_len: int = (
            max_model_len
            or _context_of(folder)
            or self.tokenizer.model_max_length
            or CONTEXT_DEFAULT
        )
        self.tokens = 0  # in all requests and answers
        self._counting = Lock()
        self.kind = _object(folder, "config.json").get("model_type")
        self.config: Config = config_of(folder)
        self._said = _object(folder, CONFIG)
        said = _object(folder, "generation_config.json")
        self.generation: dict[str, Any] = {
            name: said[name]
            for name in GENERATION
            if isinstance(said.get(name), (int, float)) and not isinstance(said[name], bool)
        }
        if "max_new_tokens" in self.generation:
            self.generation["max_tokens"] = self.generation.pop("max_new_tokens")

    @cached_property
    def hf(self) -> HFTokenizer:
        """It neither truncates nor pads."""
        hf = self.tokenizer.as_hf()
        hf.no_truncation()
        hf.no_padding()
        return hf

    @cached_property
    def spellings(self) -> dict[int, str]:
        """Each id's token as `transformers` spells it."""
        found = ((i, self.hf.id_to_token(i)) for i in range(len(self.tokenizer)))
        return {i: token for i, token in found if token is not None}

    def knows(self, ids: list[int]) -> bool:
        """Are they all in the vocabulary?"""
        return all(map(self.spellings.__contains__, ids))

    def check_ids(self, ids: list[int], field: str) -> None:
        if not self.knows(ids):
            at = next(i for i, one in enumerate(ids) if one not in self.spellings)
            raise bad_request(
                f"{field}[{at}]: {ids[at]}: expected an id of the vocabulary, 0 to "
                f"{len(self.tokenizer) - 1}",
                field,
            )

    def count(self, tokens: int) -> None:
        """For the metrics, from any thread."""
        with self._counting:
            self.tokens += tokens

    @cached_property
    def _skipped(self) -> frozenset[int]:
        """Ids of special tokens; of those, as in vLLM, only what tokenizer_config.json names."""
        named: list[Any] = [*self.config.special.values()]
        for name in ("additional_special_tokens", "extra_special_tokens"):
            more = self._said.get(name) or ()
            for token in more.values() if isinstance(more, dict) else more:
                named.append(token.get("content") if isinstance(token, dict) else token)
        special = self.tokenizer.special_tokens
        return frozenset(special[name] for name in named or special if name in special)

    def prepare(self) -> None:
        """Make what the first request would wait for."""
        self.spellings, self._skipped, self.max_token_characters, self.hf.joins_bytes  # noqa: B018

    def without_special(self, ids: list[int], skip_special: bool) -> list[int]:
        return [id for id in ids if id not in self._skipped] if skip_special else ids

    def spelled(self, ids: list[int], skip_special: bool) -> list[str]:
        """Tokens of ids; "" for one that is not in the vocabulary."""
        return [self.spellings.get(id, "") for id in self.without_special(ids, skip_special)]

    @cached_property
    def max_token_characters(self) -> int:
        """Characters of the longest spelling."""
        return max(map(len, self.spellings.values()))

    def ids_of(self, given: list[int]) -> Ids:
        if max(given, default=0) > ID_MAX:
            raise unacceptable(f"Token id {max(given)} is out of vocabulary")
        return np.array(given, dtype=np.uint32)


class Models:
    """By name; the first is meant by a request that names none.

    max_tokens, max_batch: tokens and texts of a request. trust_request_chat_template: a request may
    bring a template of its own.
    """

    def __init__(
        self,
        models: Iterable[Model],
        max_tokens: int = TOKENS_MAX,
        max_batch: int = BATCH_MAX,
        *,
        trust_request_chat_template: bool = False,
    ) -> None:
        self.max_tokens, self.max_batch = max_tokens, max_batch
        self.trust_request_chat_template = trust_request_chat_template
        self._check: asyncio.Future[list[None]] | None = None
        self.by_name: dict[str, Model] = {}
        for model in models:
            if model.name in self.by_name:
                raise ValueError(f"--model {model.name}=…: the name is given twice")
            self.by_name[model.name] = model
        self.first = next(iter(self.by_name.values()))

    async def check(self) -> None:
        """Refused: a model's prompts cannot be tokenized now. Askers share an answer."""
        if self._check is None:
            remote = [m.appliances for m in self.by_name.values() if m.appliances is not None]
            checks = asyncio.gather(*(one.check() for one in remote))
            self._check = asyncio.ensure_future(checks)
            self._check.add_done_callback(lambda _: setattr(self, "_check", None))
        try:
            await asyncio.shield(self._check)
        except Refused as refused:  # each is to raise one of its own
            raise Refused(refused.status, refused.message, headers=refused.headers) from None

    def named(self, name: str | None) -> Model:
        if not name:
            return self.first
        model = self.by_name.get(name)
        if model is None:
            raise Refused(
                HTTPStatus.NOT_FOUND,
                f"The model `{name}` does not exist. Valid aliases: {', '.join(self.by_name)}.",
                kind="NotFoundError",
                param="model",
            )
        return model

    def check_batch(self, texts: int, field: str) -> None:
        if texts > self.max_batch:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"batch size {texts} > maximum allowed batch size {self.max_batch}",
                param=field,
            )

    def check_tokens(self, tokens: int, field: str) -> None:
        if tokens > self.max_tokens:
            raise bad_request(
                f"{field}: {tokens} tokens: at most {self.max_tokens} in a request "
                "(--max-tokens): send parts of it",
                field,
            )
