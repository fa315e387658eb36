# SPDX-License-Identifier: BSD-3-Clause
"""Tokenizers of the conventional server: calls from the bytes of a text to its ids as bytes (uint32,
little-endian). The fastest call of each is used."""

import importlib.util
import statistics
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from bench.baseline.gpt2_encoder import Encoder
from bench.texts import reference  # sets tokenizers to one thread

Call = Callable[[memoryview], bytes]
ROUNDS = 5
# The module that each needs, and how to install it.
NEEDS = {
    "tokenizers": ("tokenizers", "run tools/setup"),
    "python": ("regex", "run tools/setup"),
    "tiktoken": ("tiktoken", "run tools/setup"),
    "libtok": ("dpdk_tokd", "run tools/setup"),
    "gigatoken": (
        "gigatoken",
        "build/venv/bin/pip install --no-deps -r tools/requirements-tests.txt",
    ),
}


def obstacle(engine: str) -> str | None:
    """Why an engine cannot be used here; None: it can."""
    module, remedy = NEEDS[engine]
    if importlib.util.find_spec(module) is None:
        return f"the Python package {module} is not installed: {remedy}"
    return None


def write_json(ranks: Path, to: Path) -> None:
    """GPT-2's tokenizer.json, whose merges take seconds to derive."""
    reference.load_gpt2(ranks).save(str(to))


def _text(data: memoryview) -> str:
    return str(data, "utf-8", "replace")


def _from_list(ids: list[int]) -> bytes:
    """array() takes a third of NumPy's time for a list."""
    found = array("I", ids)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def _from_array(ids: np.ndarray) -> bytes:
    return ids.astype("<u4", copy=False).tobytes()


def _tokenizers(_ranks: Path, tokenizer_json: Path) -> dict[str, Call]:
    own = Tokenizer.from_file(str(tokenizer_json))
    own.encode_special_tokens = True
    found: dict[str, Call] = {
        "encode": lambda data: _from_list(own.encode(_text(data), add_special_tokens=False).ids)
    }
    if hasattr(own, "encode_batch_fast"):
        found["encode_batch_fast"] = lambda data: _from_list(
            own.encode_batch_fast([_text(data)], add_special_tokens=False)[0].ids
        )
    if hasattr(own, "encode_fast"):
        found["encode_fast"] = lambda data: _from_list(
            own.encode_fast(_text(data), add_special_tokens=False).ids
        )
    return found


def _python(_ranks: Path, tokenizer_json: Path) -> dict[str, Call]:
    own = Encoder.load(tokenizer_json)
    return {"encode": lambda data: _from_list(own.encode(_text(data)))}


def _tiktoken(ranks: Path, _json: Path) -> dict[str, Call]:
    own = reference.load_tiktoken(ranks)
    return {
        "encode_ordinary": lambda data: _from_list(own.encode_ordinary(_text(data))),
        "encode_to_numpy": lambda data: _from_array(
            own.encode_to_numpy(_text(data), disallowed_special=())
        ),
    }


def _libtok(ranks: Path, _json: Path) -> dict[str, Call]:
    import dpdk_tokd

    own = dpdk_tokd.Tokenizer.load(str(ranks))
    return {
        "encode": lambda data: _from_array(
            own.encode(data, add_special_tokens=False, added_tokens="text")
        )
    }


def _gigatoken(ranks: Path, _json: Path) -> dict[str, Call]:
    import gigatoken

    own = gigatoken.Tokenizer.from_tiktoken(str(ranks), pretokenizer="gpt2")
    return {
        "encode": lambda data: _from_array(own.encode(_text(data))),
        "encode, of bytes": lambda data: _from_array(own.encode(bytes(data))),
    }


LOADERS: dict[str, Callable[[Path, Path], dict[str, Call]]] = {
    "tokenizers": _tokenizers,
    "python": _python,
    "tiktoken": _tiktoken,
    "libtok": _libtok,
    "gigatoken": _gigatoken,
}


def _seconds(call: Call, samples: list[memoryview]) -> float:
    begin = time.perf_counter()
    for text in samples:
        call(text)
    return time.perf_counter() - begin


def fastest(calls: dict[str, Call], samples: list[memoryview]) -> tuple[str, dict[str, float]]:
    """The name of the fastest call, and each call's ns per byte: the median of interleaved rounds
    after a warm-up."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS + 1):
        for name, call in calls.items():
            took[name].append(_seconds(call, samples))
    size = sum(len(text) for text in samples)
    ns = {name: 1e9 * statistics.median(times[1:]) / size for name, times in took.items()}
    return min(ns, key=lambda name: ns[name]), ns
