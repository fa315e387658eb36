# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: `tokenizers.Tokenizer` is ours, of the kind that $REPLACED_BY names, if
it names one."""

import json
import os
import sys
from typing import Any

import tokenizers
import tokenizers.implementations
from dpdk_tokd.hf import HFTokenizer, patch

reference: Any = tokenizers.Tokenizer


class Direct(HFTokenizer):
    """HFTokenizer that can also be made of a model, as `tokenizers.Tokenizer` is."""

    def __init__(self, document: Any, *others: Any) -> None:
        if isinstance(document, tokenizers.models.Model):
            document = json.loads(reference(document).to_str())
        super().__init__(document, *others)


class Made(type):
    def __getattr__(cls, name: str) -> Any:
        make = getattr(reference, name)
        return lambda *arguments, **named: cls(make(*arguments, **named))


class Patched(patch.Backend, metaclass=Made):
    """What a tokenizer of transformers holds after `patch_transformers()`."""

    def __init__(self, of: Any) -> None:
        super().__init__(reference(of) if isinstance(of, tokenizers.models.Model) else of)

    def __reduce__(self) -> tuple[Any, ...]:
        return patched, (self._reference.to_str(),)


def patched(text: str) -> Patched:
    return Patched(reference.from_str(text))


def replace(ours: Any) -> None:
    ours.__name__ = "Tokenizer"
    patch._replace_decode_stream()
    for module in list(sys.modules.values()):
        if module.__name__ != __name__ and getattr(module, "Tokenizer", None) is reference:
            module.Tokenizer = ours  # type: ignore[attr-defined]


if kind := os.environ["REPLACED_BY"]:
    replace({"HFTokenizer": Direct, "Backend": Patched}[kind])
