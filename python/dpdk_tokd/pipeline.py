# SPDX-License-Identifier: BSD-3-Clause
"""`Pipeline`: transformers.pipeline for feature extraction and text classification, whose ids come
from libtok or from an appliance. Imports transformers and torch when it starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from . import wire
from ._arguments import SIZE_MAX, check_number, check_path, check_several, check_type, check_word
from .client import Client
from .embedder.model import model_inputs, runs
from .tokenizer import Batch, Tokenizer
from .tokenizer.batch import Ids

Task: TypeAlias = Literal["feature-extraction", "text-classification"]


class Pipeline:
    """Texts to what a model makes of them, as `transformers.pipeline` gives it.

        with Pipeline("feature-extraction", "sentence-transformers/all-MiniLM-L6-v2") as pipe:
            pipe("Hello")
            pipe(["Hello", "and more"])

    Texts are truncated to the model's maximum. Those of a list are sorted by length and padded to
    the longest of their batch, which are of similar length; what is made of the padding is left out
    of the features.
    """

    def __init__(
        self,
        task: str,
        model: str | None = None,
        *,
        server: str | None = None,
        batch_size: int = 32,
        **options: Any,
    ) -> None:
        """`Pipeline(task, model)`; or `Pipeline(model)`, which takes the task from its
        configuration.

        model: a folder, or a name of the Hugging Face Hub.
        server: "host" or "host:port" of an appliance that has the model's vocabulary; None: libtok
        in this process. An appliance takes special tokens in a text as text, unless it is
        configured otherwise.
        options: of `transformers.pipeline`, such as device, dtype, or top_k for classification.
        """
        self._task = None if model is None else task
        self._model = task if model is None else model
        if self._task is not None:
            check_word("task", task, get_args(Task))
        self._model = check_path("model", self._model)
        check_number("batch_size", batch_size, SIZE_MAX, least=1)
        self._server = None if server is None else _address(server)
        self._batch_size, self._options = batch_size, options
        self._pipe: Any = None
        self._client: Client | None = None
        self._stopped = False

    def start(self) -> Self:
        """Load model and vocabulary, and connect. Calls do it where it is not done yet.

        ImportError: transformers or torch is missing; ValueError: libtok cannot load the model's
        vocabulary; OSError: no such model, or no such host.
        """
        if self._pipe is not None:
            return self
        import transformers

        self._stopped = False
        task = self._task or _task_of(transformers.AutoConfig.from_pretrained(self._model))
        self._tokenizer = Tokenizer.from_pretrained(self._model)
        if self._server is not None:
            self._client = Client(*self._server, vocab=self._tokenizer.checksum)
        pipe = transformers.pipeline(task, self._model, **self._options)
        self._most = min(
            pipe.tokenizer.model_max_length,
            getattr(pipe.model.config, "max_position_embeddings", None) or 2**31,
        )
        self._pipe = pipe
        return self

    def stop(self) -> None:
        """Close the connection and drop the model. `start` begins anew."""
        if self._client is not None:
            self._client.close()
        self._pipe = self._client = None
        self._stopped = True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, texts: str | Sequence[str], **options: Any) -> Any:
        """What transformers.pipeline gives for a text; for several texts, a list of that.

        options: of the task, such as top_k, function_to_apply or return_tensors. Errors of the
        appliance are those of `Client.tokenize`.
        """
        if not isinstance(texts, str):
            return self.batch(texts, **options)
        [result] = self.batch([texts], **options)
        # As transformers: one label of one text comes in a list.
        return [result] if isinstance(result, dict) else result

    def batch(self, texts: Sequence[str], **options: Any) -> list[Any]:
        """A result for each text, in order. Options and errors as for a call; RuntimeError: it is
        stopped."""
        check_several("texts", texts, "texts")
        if self._stopped:
            raise RuntimeError("the pipeline is stopped: call start()")
        self.start()
        pipe = self._pipe
        params = pipe._sanitize_parameters(**options)[2]
        params = pipe._postprocess_params | params
        rows = self._encode(list(texts))
        lengths = rows.lengths
        results: list[Any] = [None] * len(rows)
        for chosen in runs(lengths, texts=self._batch_size, tokens=sys.maxsize):
            outputs = pipe.forward(self._inputs([rows[int(i)] for i in chosen]))
            for row, i in enumerate(chosen):
                one = self._row(outputs, row, int(lengths[i]))
                results[i] = pipe.postprocess(one, **params)
        return results

    def _encode(self, texts: list[str]) -> Batch:
        """With the template, and at most what the model takes."""
        if self._client is None:
            return self._tokenizer.encode_batch(texts, truncation=self._most)
        before, after = (np.array(ids, np.uint32) for ids in self._tokenizer.template)
        most = self._most - len(before) - len(after)
        left = self._pipe.tokenizer.truncation_side == "left"
        rows = [
            np.concatenate((before, ids[-most:] if left else ids[:most], after))
            for ids in self._client.tokenize_many(texts)
        ]
        splits = np.cumsum([0, *map(len, rows)])
        return Batch(np.concatenate([*rows, before[:0]]), splits)

    def _inputs(self, rows: list[Ids]) -> dict[str, Any]:
        """Tensors as the model takes them, padded to the longest."""
        import torch

        tokenizer = self._pipe.tokenizer
        inputs, _ = model_inputs(
            rows,
            tokenizer.model_input_names,
            pad_id=tokenizer.pad_token_id or 0,
            side=tokenizer.padding_side,
        )
        return {name: torch.from_numpy(array) for name, array in inputs.items()}

    def _row(self, outputs: Any, row: int, n: int) -> Any:
        """Of one text, as transformers has it in a batch of one."""
        if self._pipe.task == "text-classification":
            return {"logits": outputs["logits"][row : row + 1]}
        first = outputs[0][row : row + 1]
        return (first[:, -n:] if self._pipe.tokenizer.padding_side == "left" else first[:, :n],)


def _task_of(config: Any) -> Task:
    names = config.architectures or [""]
    return "text-classification" if "SequenceClass" in names[0] else "feature-extraction"


def _address(server: str) -> tuple[str, int]:
    """Of "host", "host:port", "[address]:port"."""
    check_type("server", server, str, 'a str, "host" or "host:port"')
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = server, str(wire.PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f'server: {server!r}: expected "host" or "host:port"')
    return host.strip("[]"), int(port)
