# SPDX-License-Identifier: BSD-3-Clause
"""The models that a gateway serves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from ..tokenizer import Tokenizer
from .errors import Refused

if TYPE_CHECKING:
    from .appliances import Appliances

CONTEXT_DEFAULT = 1 << 20  # tokens, where neither an option nor a file says

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
        self.appliances: Appliances | None = None  # where its prompts are tokenized, if not here
        self.tokenizer = Tokenizer.load(path)
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        self.max_model_len: int = (
            max_model_len
            or _context_of(folder)
            or self.tokenizer.model_max_length
            or CONTEXT_DEFAULT
        )

    @cached_property
    def spellings(self) -> list[str | None]:
        """Each id's token as `transformers` spells it; None: there is no such id."""
        hf = self.tokenizer.as_hf()
        return [hf.id_to_token(i) for i in range(len(self.tokenizer))]


class Models:
    """By name; the first is meant by a request that names none."""

    def __init__(self, models: Iterable[Model]) -> None:
        self.by_name: dict[str, Model] = {}
        for model in models:
            if model.name in self.by_name:
                raise ValueError(f"--model {model.name}=…: the name is given twice")
            self.by_name[model.name] = model
        self.first = next(iter(self.by_name.values()))

    async def check(self) -> None:
        """Refused: a model's prompts cannot be tokenized now."""
        for model in self.by_name.values():
            if model.appliances is not None:
                await model.appliances.check()

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
