# SPDX-License-Identifier: BSD-3-Clause
"""/v1/embeddings as OpenAI and vLLM have it, /embed and POST / as TEI does."""

from __future__ import annotations

import base64
import logging
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from ..embedder import Embedder, NoEmbedder
from ..embedder.model import Vectors, normalized
from ..tokenizer.batch import Ids
from .batches import Batches, Full
from .body import read
from .errors import Refused, TeiRefused, bad_request, busy
from .models import Model, Models

# A text, ids of one, or several of either.
Input: TypeAlias = str | list[str | int | list[int]]

log = logging.getLogger("tokd-gateway")


class EmbeddingRequest(Struct):
    input: Input
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class EmbedRequest(Struct):
    inputs: Input
    truncate: bool | None = False
    truncation_direction: Literal["Left", "Right", "left", "right"] = "Right"
    prompt_name: str | None = None
    normalize: bool = True
    dimensions: int | None = None


def _listed(given: Input, field: str) -> list[str] | list[list[int]]:
    """Texts, or ids of texts; none of them empty."""
    several: list[Any] = [given] if isinstance(given, str) else given
    if len({*map(type, several)}) > 1:
        raise bad_request(f"{field}: expected texts, ids, or lists of ids, not both", field)
    if several and isinstance(several[0], int):
        several = [several]
    if not (several and all(several)):
        raise bad_request(f"`{field}` cannot be empty", field)
    return several


def _shaped(vectors: Vectors, dimensions: int | None, normalize: bool) -> Vectors:
    """Their first dimensions, of length 1 if the whole ones were to be."""
    shaped = vectors[:, :dimensions]
    return normalized(shaped) if normalize else shaped


class Embeddings:
    """The endpoints, for those of the models that are embedding models."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.embedders: dict[str, Embedder] = {}
        self.batches: dict[str, Batches] = {}
        self.missing: dict[str, str] = {}
        for model in models.by_name.values():
            if not os.path.isdir(model.path):
                self.missing[model.name] = "--model names a file, not a folder with weights"
                continue
            try:
                self.add(model.name, Embedder(model.folder, tokenizer=model.tokenizer))
            except NoEmbedder as why:
                self.missing[model.name] = str(why)
                log.info("model %s: no embeddings: %s", model.name, why)
            except (
                Exception
            ) as why:  # of ONNX Runtime, or of a file: tokens are served all the same
                self.missing[model.name] = f"its weights cannot be loaded: {why}"
                log.warning("model %s: no embeddings: %s", model.name, why)
        self.work: dict[str, Callable[[Models, bytes], Awaitable[bytes]]] = {
            "/": self.tei,
            "/embed": self.tei,
            "/v1/embeddings": self.openai,
        }

    def add(self, name: str, embedder: Embedder) -> None:
        self.embedders[name] = embedder
        self.batches[name] = Batches(embedder.vectors)

    def _model(self, name: str | None) -> Model:
        """The first that makes embeddings, where none is named."""
        return self.models.named(name or next(iter(self.embedders), None))

    def _embedder(self, model: Model, dimensions: int | None) -> Embedder:
        found = self.embedders.get(model.name)
        if found is None:
            raise Refused(
                HTTPStatus.NOT_IMPLEMENTED,
                f"The model `{model.name}` makes no embeddings: {self.missing[model.name]}",
                param="model",
            )
        if dimensions is not None and not 1 <= dimensions <= found.dimensions:
            raise bad_request(
                f"dimensions: {dimensions}: expected 1 to {found.dimensions}", "dimensions"
            )
        return found

    def _rows(
        self,
        model: Model,
        given: Input,
        field: str,
        prompt: str,
        *,
        truncate: bool = False,
        left: bool = False,
    ) -> Sequence[Ids]:
        """Ids of each text, with special tokens; ids that were given are taken as they are."""
        several = _listed(given, field)
        self.models.check_batch(len(several), field)
        most = self.embedders[model.name].max_tokens
        rows: list[Ids]
        if isinstance(several[0], str):
            texts = [f"{prompt}{text}" for text in several]
            batch = model.tokenizer.encode_batch(
                texts,
                truncation=most if truncate else None,
                truncation_side="left" if truncate and left else None,
            )
            rows = [*batch]
        else:
            rows = []
            for i, ids in enumerate(several):
                assert isinstance(ids, list)
                model.check_ids(ids, f"{field}[{i}]")
                rows.append(np.array(ids, np.uint32))
            if truncate:
                rows = [row[-most:] if left else row[:most] for row in rows]
        tokens = sum(map(len, rows))
        self.models.check_tokens(tokens, field)
        model.count(tokens)
        return rows

    async def _vectors(self, model: Model, rows: Sequence[Ids]) -> Vectors:
        try:
            return await self.batches[model.name].vectors(rows)
        except Full as full:
            raise busy(str(full)) from None

    def openai(self, _: Models, body: bytes) -> Awaitable[bytes]:
        """The ids are made at once, the vectors when they are waited for."""
        asked = read(body, EmbeddingRequest)
        model = self._model(asked.model)
        embedder = self._embedder(model, asked.dimensions)
        prompt = embedder.prompts.get(embedder.default_prompt or "", "")
        rows = self._rows(model, asked.input, "input", prompt)
        most, longest = embedder.max_tokens, max(map(len, rows))
        if longest > most:
            raise bad_request(
                f"This model's maximum context length is {most} tokens. However, you requested "
                f"{longest} tokens in the input. Please reduce the length of the input.",
                "input",
            )
        return self._openai(asked, model, embedder, rows)

    async def _openai(
        self, asked: EmbeddingRequest, model: Model, embedder: Embedder, rows: Sequence[Ids]
    ) -> bytes:
        vectors = await self._vectors(model, rows)
        shaped = _shaped(vectors, asked.dimensions, embedder.normalizes)
        made: list[Any] = shaped.tolist()
        if asked.encoding_format == "base64":
            made = [base64.b64encode(one.astype("<f4").tobytes()).decode() for one in shaped]
        tokens = sum(map(len, rows))
        return msgspec.json.encode(
            {
                "id": f"embd-{uuid.uuid4().hex}",
                "object": "list",
                "created": int(time.time()),
                "model": model.name,
                "data": [
                    {"object": "embedding", "index": i, "embedding": one}
                    for i, one in enumerate(made)
                ],
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
        )

    def tei(self, _: Models, body: bytes) -> Awaitable[bytes]:
        """As `openai`, for TEI's requests."""
        asked = read(body, EmbedRequest)
        model = self._model(None)
        embedder = self._embedder(model, asked.dimensions)
        name = asked.prompt_name or embedder.default_prompt or ""
        if asked.prompt_name and name not in embedder.prompts:
            known = ", ".join(embedder.prompts) or "none"
            raise bad_request(f"prompt_name: {name}: the model has {known}", "prompt_name")
        if not asked.inputs:
            raise TeiRefused(HTTPStatus.BAD_REQUEST, "`inputs` cannot be empty", "Empty")
        rows = self._rows(
            model,
            asked.inputs,
            "inputs",
            embedder.prompts.get(name, ""),
            truncate=bool(asked.truncate),
            left=asked.truncation_direction.lower() == "left",
        )
        most, longest = embedder.max_tokens, max(map(len, rows))
        if longest > most:
            raise TeiRefused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"`inputs` must have at most {most} tokens. Given: {longest}",
                "Validation",
            )
        return self._tei(asked, model, rows)

    async def _tei(self, asked: EmbedRequest, model: Model, rows: Sequence[Ids]) -> bytes:
        vectors = await self._vectors(model, rows)
        return msgspec.json.encode(_shaped(vectors, asked.dimensions, asked.normalize).tolist())
