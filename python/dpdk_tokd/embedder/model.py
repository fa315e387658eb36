# SPDX-License-Identifier: BSD-3-Clause
"""A sentence embedding model in a folder of sentence-transformers, run by ONNX Runtime."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Container, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._arguments import check_path, check_several
from ..tokenizer import Batch, Tokenizer
from ..tokenizer.batch import Ids, NDArray, Side

Vectors: TypeAlias = NDArray[np.float32]

MODULES = "modules.json"
ONNX = ("onnx/model.onnx", "model.onnx")
WEIGHTS = "model.safetensors"
# Modules after the network: Dense and others are refused.
KNOWN = ("Transformer", "Pooling", "Normalize")
POOLINGS = ("mean", "cls")

RUN_TOKENS = 16384  # of one run, padding included: what is between two layers stays below 200 MB
LEAST_NORM = 1e-12


class NoEmbedder(Exception):
    """The folder is no embedding model that can run here; the message says what is missing."""


def _read(folder: str, name: str) -> Any:
    """A JSON file's content; None: there is none."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise NoEmbedder(f"{path}: {error}") from None


def _pooling(folder: str, config: dict[str, Any]) -> str:
    """Its name. Older files have a switch for each kind."""
    switches = [name for name, on in config.items() if name.startswith("pooling_mode_") and on]
    named = config.get("pooling_mode")
    found = named if named else "+".join(s.removeprefix("pooling_mode_") for s in switches)
    kind = str(found).removesuffix("_tokens").removesuffix("_token")
    if kind not in POOLINGS:
        raise NoEmbedder(f"{folder}: pooling {found!r}: implemented: {', '.join(POOLINGS)}")
    return kind


def runs(
    lengths: NDArray[np.int64], *, texts: int = sys.maxsize, tokens: int = RUN_TOKENS
) -> Iterator[NDArray[np.int64]]:
    """Rows for one run each, of similar length, so that little is computed for padding.

    texts, tokens: of a run at most, padding included; a longer text is alone.
    """
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        width = int(lengths[order[begin]])
        end, given = begin, 0
        while end < len(order) and end - begin < texts:
            more = given + int(lengths[order[end]])
            padded = width * (end + 1 - begin)
            if end > begin and (padded > tokens or padded - more > more // 8 + 16):
                break
            end, given = end + 1, more
        yield order[begin:end]
        begin = end


def model_inputs(
    rows: Sequence[Ids], names: Container[str], *, pad_id: int = 0, side: Side = "right"
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.uint8]]:
    """Of texts' ids what a model takes, by the names that transformers has for it, padded to the
    longest; and the mask of `Padded`."""
    if len({*map(len, rows)}) == 1:  # nothing to pad, as with one text
        ids = np.stack(rows)
        mask = np.ones(ids.shape, np.uint8)
    else:
        splits = np.cumsum([0, *map(len, rows)])
        ids, mask = Batch(np.concatenate(rows), splits).padded(pad_id=pad_id, side=side)
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return {name: given[name].astype(np.int64) for name in given if name in names}, mask


class Embedder:
    """Texts to vectors, as sentence-transformers makes them.

        Embedder("all-MiniLM-L6-v2").embed(["one text", "another"])  # float32, (2, 384)

    dimensions: of a vector. max_tokens: of a text, special tokens included; the rest of a longer
    one is cut off. normalizes: vectors have length 1. prompts: texts to put before, by name.

    Several threads may use one.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, tokenizer: Tokenizer | None = None
    ) -> None:
        """folder: of the model, with modules.json, and its network as onnx/model.onnx or, of a
        BERT, model.safetensors. tokenizer: None: the folder's.

        NoEmbedder says what is missing; ValueError: libtok cannot load the vocabulary.
        """
        self.folder = folder = check_path("folder", folder)
        modules = _read(folder, MODULES)
        if modules is None:
            raise NoEmbedder(
                f"{folder} has no {MODULES}: it is no embedding model as sentence-transformers "
                "writes it"
            )
        paths = {}
        for module in modules:
            kind = module["type"].rpartition(".")[2]
            if kind not in KNOWN:
                raise NoEmbedder(f"{folder}/{MODULES}: {kind}: implemented: {', '.join(KNOWN)}")
            paths[kind] = os.path.join(folder, module["path"])
        if not {"Transformer", "Pooling"} <= paths.keys():
            raise NoEmbedder(f"{folder}/{MODULES}: expected Transformer and Pooling")
        self.normalizes = "Normalize" in paths
        pooling = _read(paths["Pooling"], "config.json") or {}
        self.pooling = _pooling(paths["Pooling"], pooling)
        general = _read(folder, "config_sentence_transformers.json") or {}
        self.prompts: dict[str, str] = general.get("prompts") or {}
        self.default_prompt: str | None = general.get("default_prompt_name")
        if self.prompts and not pooling.get("include_prompt", True):
            raise NoEmbedder(f"{folder}: pooling without the prompt is not implemented")
        network = paths["Transformer"]
        settings = _read(network, "sentence_bert_config.json") or {}
        if settings.get("do_lower_case"):
            raise NoEmbedder(f"{folder}: do_lower_case is not implemented")
        config = _read(network, "config.json") or {}
        self.tokenizer = tokenizer or Tokenizer.from_pretrained(network)
        lengths = (config.get("max_position_embeddings"), self.tokenizer.model_max_length)
        known = [length for length in lengths if length]
        self.max_tokens: int = settings.get("max_seq_length") or min(known, default=512)
        self._session = _session(network, config)
        self._takes = {given.name for given in self._session.get_inputs()}
        self.dimensions: int = self._run([np.zeros(1, np.uint32)]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text: float32, shape (texts, dimensions)."""
        check_several("texts", texts, "texts")
        prompt = self.prompts.get(self.default_prompt or "", "")
        given = [prompt + text for text in texts] if prompt else texts
        vectors = self.vectors(self.tokenizer.encode_batch(given, truncation=self.max_tokens))
        return normalized(vectors) if self.normalizes else vectors

    def vectors(self, rows: Batch | Sequence[Ids]) -> Vectors:
        """Vectors of texts' ids, special tokens included, before they are normalized. Each text
        has at least one id."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        made = np.empty((len(rows), self.dimensions), np.float32)
        for chosen in runs(lengths):
            made[chosen] = self._run([rows[int(i)] for i in chosen])
        return made

    def _run(self, rows: list[Ids]) -> Vectors:
        inputs, mask = model_inputs(rows, self._takes)
        hidden = self._session.run(None, inputs)[0]
        if self.pooling == "cls":
            return np.asarray(hidden[:, 0], np.float32)
        weights = mask / mask.sum(1, keepdims=True, dtype=np.float32)
        return np.asarray(np.matmul(weights[:, None], hidden)[:, 0], np.float32)


def normalized(vectors: Vectors) -> Vectors:
    """Of length 1."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, LEAST_NORM), np.float32)


def _session(folder: str, config: dict[str, Any]) -> Any:
    """The network, loaded by ONNX Runtime."""
    onnx = [path for name in ONNX if os.path.isfile(path := os.path.join(folder, name))]
    weights = os.path.join(folder, WEIGHTS)
    if not onnx and not os.path.isfile(weights):
        raise NoEmbedder(f"{folder} has no weights: neither {ONNX[0]} nor {WEIGHTS}")
    try:
        import onnxruntime

        from . import bert

        model = onnx[0] if onnx else bert.network(config, bert.read_weights(weights))
    except ImportError as missing:
        raise NoEmbedder(
            f"{missing.name} is missing: pip install 'dpdk-tokd[embeddings]'"
        ) from None
    except ValueError as error:
        raise NoEmbedder(
            f"{folder} has no {ONNX[0]}, and its network cannot be built from {WEIGHTS}: {error}: "
            f"export it, for example: optimum-cli export onnx --model {folder} {folder}/onnx"
        ) from None
    options = onnxruntime.SessionOptions()
    # Its threads wait in the kernel: spinning takes the CPU from what makes the next batch.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
