# SPDX-License-Identifier: BSD-3-Clause
"""The models that a gateway serves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cached_property
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..tokenizer import Tokenizer
from .errors import Refused, bad_request

if TYPE_CHECKING:
    from ..hf import HFTokenizer

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
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)


def _context_of(folder: str) -> int | None:
    """Tokens, by config.json; a multimodal model's are those of its text part."""
    path = os.path.join(folder, "config.json")
    try:
        with open(path, encoding="utf-8") as file:
            config: Any = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path}: expected an object, got {type(config).__name__}")
    text = config.get("text_config", config)
    found = [text[name] for name in CONTEXT if isinstance(text.get(name), int)]
    return min(found, default=None)


class Model:
    """A vocabulary under the name by which clients ask for it.

    max_model_len: tokens of its context; by the first that says so of the argument, config.json,
    tokenizer_config.json, CONTEXT_DEFAULT.
    """

    def __init__(self, name: str, path: str, max_model_len: int | None = None) -> None:
        self.name, self.path = name, path
        self.tokenizer = Tokenizer.load(path)
        self.folder = folder = path if os.path.isdir(path) else os.path.dirname(path)
        self.max_model_len: int = (
            max_model_len
            or _context_of(folder)
            or self.tokenizer.model_max_length
            or CONTEXT_DEFAULT
        )
        self.tokens = 0  # in all requests and answers
        self._counting = Lock()
        self.hf.id_to_token(0)  # its tables take up to half a second: not in a request

    @cached_property
    def hf(self) -> HFTokenizer:
        """It neither truncates nor pads."""
        hf = self.tokenizer.as_hf()
        hf.no_truncation()
        hf.no_padding()
        return hf

    @cached_property
    def spellings(self) -> list[str | None]:
        """Each id's token as `transformers` spells it; None: there is no such id."""
        return [self.hf.id_to_token(i) for i in range(len(self.tokenizer))]

    def check_ids(self, ids: list[int], field: str) -> None:
        most = len(self.tokenizer)
        for at, one in enumerate(ids):
            if not 0 <= one < most:
                raise bad_request(f"{field}[{at}]: {one}: expected 0 to {most - 1}", field)

    def count(self, tokens: int) -> None:
        """For the metrics, from any thread."""
        with self._counting:
            self.tokens += tokens


class Models:
    """By name; the first is meant by a request that names none.

    max_tokens, max_batch: tokens and texts of a request.
    """

    def __init__(
        self,
        models: Iterable[Model],
        max_tokens: int = TOKENS_MAX,
        max_batch: int = BATCH_MAX,
    ) -> None:
        self.max_tokens, self.max_batch = max_tokens, max_batch
        self.by_name: dict[str, Model] = {}
        for model in models:
            if model.name in self.by_name:
                raise ValueError(f"--model {model.name}=…: the name is given twice")
            self.by_name[model.name] = model
        self.first = next(iter(self.by_name.values()))

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

    def check_tokens(self, tokens: int, field: str) -> None:
        if tokens > self.max_tokens:
            raise bad_request(
                f"{field}: {tokens} tokens: at most {self.max_tokens} in a request "
                "(--max-tokens): send parts of it",
                field,
            )
