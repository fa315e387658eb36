# SPDX-License-Identifier: BSD-3-Clause
"""Tokenizers that a conventional server can have: each one's ways from a text to its ids."""

import importlib.util
import json
import statistics
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from bench.baseline.gpt2_encoder import Encoder
from bench.texts import reference  # sets tokenizers to one thread

Call = Callable[[memoryview], bytes]  # a text's bytes to its ids as bytes (uint32, little-endian)
ROUNDS = 5
PEERS = "build/venv/bin/pip install --no-deps -r tools/requirements-tests.txt"
# What each needs, and how one comes by it.
NEEDS = {
    "tokenizers": ("tokenizers", "run tools/setup"),
    "python": ("regex", "run tools/setup"),
    "tiktoken": ("tiktoken", "run tools/setup"),
    "sentencepiece": ("sentencepiece", "run tools/setup"),
    "libtok": ("dpdk_tokd", "run tools/setup"),
    "gigatoken": ("gigatoken", PEERS),
    "fastokens": ("fastokens", PEERS),
    "nanotoken": ("nanotoken", PEERS),
    "quicktok": ("quicktok", PEERS),
    "bpe-openai": ("bpe_openai", PEERS),
}


class CannotLoad(Exception):
    """An engine is not for this vocabulary; the message says why."""


@dataclass(frozen=True)
class Files:
    """A vocabulary: its name in bench.texts.encode_texts, the file that libtok reads, and
    Hugging Face's tokenizer.json of it."""

    name: str
    file: Path
    json: Path


def from_list(ids: list[int]) -> bytes:
    """array() does it in a third of the time that numpy takes for a list."""
    found = array("I", ids)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def from_array(ids: np.ndarray) -> bytes:
    return ids.astype("<u4", copy=False).tobytes()


@dataclass(frozen=True)
class Way:
    """One of a library's calls: what it takes (str or bytes), and its ids as it gives them."""

    encode: Callable[[Any], Any]
    takes: type = str
    as_bytes: Callable[[Any], bytes] = from_list

    def text(self, data: memoryview) -> str | bytes:
        return str(data, "utf-8", "replace") if self.takes is str else bytes(data)

    def served(self) -> Call:
        """With what turns bytes to its text and its ids to bytes."""
        encode, text, as_bytes = self.encode, self.text, self.as_bytes
        return lambda data: as_bytes(encode(text(data)))


def _rows_of_lists(result: list[list[int]]) -> bytes:
    return from_list([token for row in result for token in row])


def _rows_of_arrays(result: list[np.ndarray]) -> bytes:
    return b"".join(map(from_array, result))


@dataclass(frozen=True)
class Batch:
    """A library's call for many texts, by so many threads at most; as_bytes: of all its ids."""

    encode: Callable[[list[str], int], Any]
    as_bytes: Callable[[Any], bytes] = _rows_of_lists


@dataclass(frozen=True)
class Engine:
    """A library with a vocabulary. Batches: ids as it gives them, and as lists; None: it has
    none."""

    ways: dict[str, Way]
    batch: Batch | None = None
    lists: Batch | None = None


def obstacle(engine: str) -> str | None:
    """Why an engine cannot be used here; None: it can."""
    module, remedy = NEEDS[engine]
    if importlib.util.find_spec(module) is None:
        return f"the Python package {module} is not installed: {remedy}"
    return None


def write_json(ranks: Path, to: Path) -> None:
    """GPT-2's tokenizer.json, whose merges take seconds to derive."""
    reference.load_gpt2(ranks).save(str(to))


def _tokenizers(files: Files) -> Engine:
    own = Tokenizer.from_file(str(files.json))
    own.encode_special_tokens = True
    own.no_truncation()
    own.no_padding()
    batch = partial(own.encode_batch_fast, add_special_tokens=False)
    ways = {
        "encode": Way(lambda text: own.encode(text, add_special_tokens=False).ids),
        "encode_batch_fast": Way(lambda text: batch([text])[0].ids),
    }
    return Engine(ways, lists=Batch(lambda texts, _: [found.ids for found in batch(texts)]))


def _python(files: Files) -> Engine:
    if files.name != "gpt2":
        raise CannotLoad("it has GPT-2 alone")
    return Engine({"encode": Way(Encoder.load(files.json).encode)})


def _tiktoken(files: Files) -> Engine:
    if files.name not in reference.PATTERNS:
        raise CannotLoad("it reads .tiktoken files alone")
    own = reference.load_tiktoken(files.file, files.name)
    to_numpy = partial(own.encode_to_numpy, disallowed_special=())
    ways = {
        "encode_ordinary": Way(own.encode_ordinary),
        "encode_to_numpy": Way(to_numpy, as_bytes=from_array),
    }
    return Engine(ways, lists=Batch(lambda t, n: own.encode_ordinary_batch(t, num_threads=n)))


def _sentencepiece(files: Files) -> Engine:
    from sentencepiece import SentencePieceProcessor

    model = files.file.with_name(f"{files.name}-spiece.model")
    if not model.is_file():
        raise CannotLoad(f"it reads .model files alone, and {model.name} is not here")
    own = SentencePieceProcessor(model_file=str(model))
    return Engine(
        {"encode": Way(own.encode)}, lists=Batch(lambda t, n: own.encode(t, num_threads=n))
    )


def _libtok(files: Files) -> Engine:
    import dpdk_tokd

    own = dpdk_tokd.Tokenizer.load(str(files.file))
    encode, how = own.encode, {"add_special_tokens": False, "tokens_in_text": "not-special"}
    batch: Callable[..., Any] = partial(own.encode_batch, **how)

    def one(text: str | bytes) -> np.ndarray:  # partial() takes three times as long as this
        return encode(text, add_special_tokens=False, tokens_in_text="not-special")

    return Engine(
        {f"encode, of {t.__name__}": Way(one, t, from_array) for t in (str, bytes)},
        Batch(lambda texts, n: batch(texts, threads=n), lambda found: from_array(found.ids)),
        Batch(lambda texts, n: batch(texts, threads=n).tolist()),
    )


def _gigatoken(files: Files) -> Engine:
    import gigatoken

    if files.name in reference.PATTERNS:
        pretokenizer = files.name.removesuffix("_base")
        own = gigatoken.Tokenizer.from_tiktoken(str(files.file), pretokenizer=pretokenizer)
    else:
        own = gigatoken.Tokenizer(str(files.json))
    return Engine(
        {f"encode, of {t.__name__}": Way(own.encode, t, from_array) for t in (str, bytes)},
        Batch(lambda texts, n: own.encode_batch(texts, parallel=n > 1), _rows_of_arrays),
        Batch(lambda texts, n: own.encode_batch_list(texts, parallel=n > 1)),
    )


def _fastokens(files: Files) -> Engine:
    import fastokens

    own = fastokens.Tokenizer.from_file(str(files.json))
    added = json.loads(files.json.read_text())["added_tokens"]
    if any(not token["special"] for token in added):  # which encode_ordinary leaves out
        ways = {"encode": Way(lambda text: own.encode(text, False, True).ids)}
    else:
        ways = {"encode_ordinary": Way(lambda text: own.encode_ordinary(text).ids)}
    return Engine(
        ways,
        Batch(lambda texts, _: own.encode_batch_flat(texts, False, True), lambda found: found[0]),
        Batch(lambda texts, _: [found.ids for found in own.encode_batch(texts, False, True)]),
    )


def _nanotoken(files: Files) -> Engine:
    import nanotoken

    own = nanotoken.Tokenizer(str(files.json))
    encode = partial(own.encode, add_special_tokens=False)
    return Engine(
        {f"encode, of {t.__name__}": Way(encode, t, from_array) for t in (str, bytes)},
        Batch(
            lambda texts, n: own.encode_batch(texts, add_special_tokens=False, parallel=n > 1),
            lambda found: from_array(found.ids),
        ),
        Batch(
            lambda texts, n: own.encode_batch_list(texts, add_special_tokens=False, parallel=n > 1)
        ),
    )


def _quicktok(files: Files) -> Engine:
    import quicktok

    own = quicktok.get_encoding(files.name)
    ways = {"encode_ordinary": Way(own.encode_ordinary)}
    return Engine(ways, Batch(own.encode_batch, lambda found: from_array(found[0])))


def _bpe_openai(files: Files) -> Engine:
    import bpe_openai

    if files.name not in ("cl100k_base", "o200k_base"):
        raise CannotLoad("it has cl100k_base and o200k_base alone")
    own = bpe_openai.get_encoding(files.name)
    return Engine(
        {"encode_ordinary": Way(own.encode_ordinary)},
        lists=Batch(lambda texts, n: own.encode_ordinary_batch(texts, num_threads=n)),
    )


LOADERS: dict[str, Callable[[Files], Engine]] = {
    "tokenizers": _tokenizers,
    "python": _python,
    "tiktoken": _tiktoken,
    "sentencepiece": _sentencepiece,
    "libtok": _libtok,
    "gigatoken": _gigatoken,
    "fastokens": _fastokens,
    "nanotoken": _nanotoken,
    "quicktok": _quicktok,
    "bpe-openai": _bpe_openai,
}


def load(engine: str, files: Files) -> Engine:
    """CannotLoad: why. The libraries say it by exceptions of many kinds, a panic of Rust among
    them."""
    try:
        return LOADERS[engine](files)
    except CannotLoad as error:
        raise CannotLoad(f"{engine} cannot load {files.name}: {error}") from error
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        why = " ".join(str(error).split())[:160]
        raise CannotLoad(f"{engine} cannot load {files.name}: {why}") from error


def _seconds(call: Callable[[Any], Any], samples: list[Any]) -> float:
    begin = time.perf_counter()
    for text in samples:
        call(text)
    return time.perf_counter() - begin


def fastest(
    calls: dict[str, Callable[[Any], Any]], samples: dict[str, list[Any]]
) -> tuple[str, dict[str, float]]:
    """The name of the fastest, and of each its ns for all of its samples: the median of some rounds
    after one to warm up, the calls taking turns."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS + 1):
        for name, call in calls.items():
            took[name].append(_seconds(call, samples[name]))
    ns = {name: 1e9 * statistics.median(times[1:]) for name, times in took.items()}
    return min(ns, key=lambda name: ns[name]), ns
