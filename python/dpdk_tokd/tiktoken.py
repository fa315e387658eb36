# SPDX-License-Identifier: BSD-3-Clause
"""The interface of the package `tiktoken` over libtok."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from itertools import groupby
from operator import index, itemgetter
from pathlib import Path
from threading import RLock
from types import NoneType
from typing import Any, Literal

from ._arguments import check_type, unsigned
from ._native import libtok
from .tokenizer import Tokenizer
from .tokenizer.batch import ID_MAX, Uint32Ids
from .tokenizer.decode import IdRangeError, ids_for

Allowed = Literal["all"] | AbstractSet[str]
Disallowed = Literal["all"] | Collection[str]

# What comes back by decoding is the text (or its form C, as Qwen's own tokenizer has it).
_NORMALIZERS = ("none", "nfc")


class Encoding:
    """What `tiktoken.Encoding` does, of a vocabulary of byte-level BPE. Made by `as_tiktoken`.

    All added tokens are special tokens here, as in files for tiktoken. Several threads may use it.
    """

    def __init__(self, tokenizer: Tokenizer, name: str, special_tokens: dict[str, int]) -> None:
        if "" in special_tokens:
            raise ValueError(f"{name}: special token '': expected at least one character")
        self.name = name
        self._tokenizer = tokenizer
        self._special_tokens = special_tokens
        # What a text with a special token has somewhere: searched first, as most texts have none.
        by_first = groupby(sorted(self._special_tokens), key=lambda token: token[0])
        self._leads = [_common(list(tokens)) for _, tokens in by_first]

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Encoding, (self._tokenizer, self.name, self._special_tokens)

    # ---- encoding ----

    def encode_ordinary(self, text: str) -> list[int]:
        """Ids of a text; special tokens in it are text."""
        try:
            return libtok.list_of(self._ordinary(text))
        except UnicodeEncodeError:
            return libtok.list_of(self._ordinary(_repaired(text)))

    def encode(
        self,
        text: str,
        *,
        allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> list[int]:
        """Ids of a text.

        allowed_special: special tokens that are recognised. disallowed_special: those (by default
        all others) that are a ValueError. The rest is text.
        """
        try:
            ids = self.encode_to_numpy(
                text, allowed_special=allowed_special, disallowed_special=disallowed_special
            )
        except UnicodeEncodeError:
            ids = self.encode_to_numpy(
                _repaired(text),
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
            )
        return libtok.list_of(ids)

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> Uint32Ids:
        """As `encode`; ids as an array. UnicodeEncodeError: the text has surrogates."""
        _check_text(text)
        _check_allowed(allowed_special)
        ordinary = disallowed_special == "all" or not disallowed_special
        if ordinary and not any(lead in text for lead in self._leads):
            return self._ordinary(text)
        allowed, disallowed = self._choice(allowed_special, disallowed_special)
        if disallowed and (found := _any_of(disallowed).search(text)):
            raise ValueError(
                f"the text has the special token {found.group()!r}, which is not allowed: allow it "
                f"by allowed_special={{{found.group()!r}}}, or take it as text by "
                "disallowed_special=()"
            )
        return self._with_special(text, allowed)

    def encode_ordinary_batch(
        self, text: Iterable[str], *, num_threads: int = 8
    ) -> list[list[int]]:
        """As `encode_ordinary` of each."""
        texts = list(map(_encodable, text))
        batch = self._tokenizer.encode_batch(
            texts,
            add_special_tokens=False,
            tokens_in_text="none",
            threads=min(num_threads, libtok.THREADS_MAX),
        )
        return batch.tolist()

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int = 8,
        allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:
        """As `encode` of each."""
        texts = list(map(_check_text, text))
        _check_allowed(allowed_special)
        ordinary = disallowed_special == "all" or not disallowed_special
        if ordinary and not any(lead in one for lead in self._leads for one in texts):
            return self.encode_ordinary_batch(texts, num_threads=num_threads)
        return [
            self.encode(one, allowed_special=allowed_special, disallowed_special=disallowed_special)
            for one in texts
        ]

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of a token, special ones included. KeyError: there is none."""
        id = self._tokenizer.token_to_id(text_or_bytes)
        if id is None:
            raise KeyError(text_or_bytes)
        return id

    def _ordinary(self, text: str) -> Uint32Ids:
        return self._tokenizer.encode(
            _check_text(text), add_special_tokens=False, tokens_in_text="none"
        )

    def _choice(
        self, allowed: Allowed, disallowed: Disallowed
    ) -> tuple[frozenset[str], frozenset[str]]:
        special = self._special_tokens.keys()
        may = frozenset(special if allowed == "all" else allowed)
        return may, frozenset(special - may if disallowed == "all" else disallowed or ())

    def _with_special(self, text: str, allowed: frozenset[str]) -> Uint32Ids:
        import numpy as np

        parts, begin, at = [], 0, 0
        special = _any_of(frozenset(self._special_tokens))
        while found := special.search(text, at):
            at = found.start() + 1
            if found.group() in allowed:
                parts.append(self._ordinary(text[begin : found.start()]))
                parts.append(np.array([self._special_tokens[found.group()]], np.uint32))
                begin = at = found.end()
        return np.concatenate([*parts, self._ordinary(text[begin:])])

    # ---- decoding ----

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Bytes of ids. KeyError: an id is unknown. TypeError: these are no ids. OverflowError: one
        is not an unsigned 32-bit number."""
        try:
            ids = ids_for(tokens)
        except IdRangeError as e:
            raise OverflowError(str(e)) from None
        except ValueError as e:  # perhaps bytes, or bools: numbers as well
            if isinstance(tokens, str) or not isinstance(tokens, Sequence):
                raise TypeError(str(e)) from None
            try:
                ids = ids_for([*map(index, tokens)])
            except TypeError:
                raise TypeError(str(e)) from None
        try:
            return self._tokenizer.decode_bytes(ids)
        except ValueError as e:
            raise KeyError(str(e)) from None

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Text of ids; `errors`, as in `bytes.decode`, is for parts of characters."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Bytes of one id. KeyError: it is unknown. OverflowError as in `decode_bytes`."""
        return self._tokenizer.token(unsigned("token", token, ID_MAX))

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """Bytes of each id."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """Text of ids, and the character with which each begins (of which it may be a part).
        UnicodeDecodeError: the bytes are not UTF-8."""
        offsets, n, parts = [], 0, self.decode_tokens_bytes(tokens)
        for part in parts:
            offsets.append(max(0, n - (0x80 <= part[0] < 0xC0)))
            n += sum(not 0x80 <= byte < 0xC0 for byte in part)
        return b"".join(parts).decode(), offsets

    def decode_batch(
        self, batch: Iterable[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """As `decode` of each; num_threads is not used."""
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(
        self, batch: Iterable[Sequence[int]], *, num_threads: int = 8
    ) -> list[bytes]:
        """As `decode_bytes` of each; num_threads is not used."""
        return [self.decode_bytes(tokens) for tokens in batch]

    # ---- vocabulary ----

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all tokens but special ones, sorted."""
        special = set(self._special_tokens.values())
        ids = (id for id in range(self.n_vocab) if id not in special)
        return sorted(token for id in ids if (token := self._tokenizer.id_to_token(id)) is not None)

    @property
    def eot_token(self) -> int:
        return self._special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        return token in self._special_tokens.values()

    @property
    def max_token_value(self) -> int:
        return self._tokenizer.vocab_size - 1

    @property
    def n_vocab(self) -> int:
        return self._tokenizer.vocab_size


def _common(tokens: Sequence[str]) -> str:
    """The longest beginning of sorted tokens."""
    first, last = tokens[0], tokens[-1]
    n = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:n]


@lru_cache(maxsize=128)
def _any_of(tokens: frozenset[str]) -> re.Pattern[str]:
    longest_first = sorted(tokens, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) if tokens else r"(?!)")


def _check_text(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"text: expected a str, got {type(text).__name__}")
    return text


def _check_allowed(allowed: Allowed) -> None:
    if allowed != "all" and not isinstance(allowed, (set, frozenset)):
        name = type(allowed).__name__
        raise TypeError(f'allowed_special: expected "all" or a set of tokens, got {name}')


def _encodable(text: str) -> str:
    _check_text(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _repaired(text)
    return text


def _repaired(text: str) -> str:
    """Surrogate pairs as the characters they stand for, others as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def as_tiktoken(tokenizer: Tokenizer, name: str | None = None) -> Encoding:
    """A tokenizer with the interface of `tiktoken.Encoding`.

    name: by default that of the vocabulary.
    ValueError: tokens in a row are not the text, which that interface takes for granted.
    TypeError: it is no Tokenizer.
    """
    check_type("tokenizer", tokenizer, Tokenizer, "what Tokenizer.load makes")
    check_type("name", name, (str, NoneType), "a str or None")
    info = tokenizer.info
    if info.normalizer not in _NORMALIZERS:
        raise ValueError(
            f"{info.path}: expected a vocabulary of byte-level BPE, got one with the normalizer "
            f"{info.normalizer}"
        )
    added = [tokenizer.token(token["id"]) for token in tokenizer._added()]
    ids = {token.decode(): tokenizer.token_to_id(token) for token in added}
    special = {token: id for token, id in ids.items() if id is not None}
    name = Path(info.name).stem if name is None else name
    return Encoding(tokenizer, name, tokenizer.special_tokens | special)


# ---- tiktoken itself, with libtok ----


# One thread loads ranks, others wait for it: tiktoken's encode_batch() begins with eight. A process
# that is forked meanwhile has a free lock.
_loading = RLock()
os.register_at_fork(
    before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release
)


class _Core:
    """The `CoreBPE` of a `tiktoken.Encoding`, whose texts libtok encodes. All else is the
    reference's doing, and so are texts of an encoding that libtok refuses."""

    def __init__(self, reference: Any, of: Any) -> None:
        self._reference, self._of = reference, of
        self._libtok: Encoding | str | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by copy, before there is a reference
            raise AttributeError(name)
        return getattr(self._reference, name)

    def encode(self, text: str, allowed_special: AbstractSet[str]) -> Any:
        return self._encoded("encode", libtok.list_of, text, allowed_special)

    def encode_ordinary(self, text: str) -> Any:
        return self._encoded("encode_ordinary", libtok.list_of, text)

    def encode_to_tiktoken_buffer(self, text: str, allowed_special: AbstractSet[str]) -> Any:
        return self._encoded("encode_to_tiktoken_buffer", memoryview, text, allowed_special)

    def _encoded(
        self, method: str, made: Callable[[Any], Any], text: str, *allowed: AbstractSet[str]
    ) -> Any:
        if self._libtok is None:
            with _loading:
                self._libtok = self._libtok or self._load()
        if isinstance(self._libtok, str):
            from .hf.patch import fell_back

            fell_back("tiktoken", self._libtok)
            return getattr(self._reference, method)(text, *allowed)
        some = allowed[0] if allowed else frozenset[str]()
        return made(self._libtok.encode_to_numpy(text, allowed_special=some, disallowed_special=()))

    def _load(self) -> Encoding | str:
        """The encoding as libtok has it, or why libtok refuses it."""
        of = self._of
        ranks = sorted(of._mergeable_ranks.items(), key=itemgetter(1))
        document = {  # a tekken.json: ranks and an expression, as tiktoken has them
            "config": {
                # Possessive or not is the same here: nothing has to match after the digits.
                "pattern": of._pat_str.replace("{1,3}+", "{1,3}"),
                "default_vocab_size": len(ranks),
                "default_num_special_tokens": 0,
                "version": "v3",
            },
            "vocab": [{"rank": n, "token_bytes": b64encode(t).decode()} for t, n in ranks],
        }
        try:
            made = Tokenizer(of.name, None, None, None, False, json.dumps(document).encode())
            return Encoding(made, of.name, of._special_tokens)
        except ValueError as error:
            return str(error)


def _get(encoding: Any) -> Any:
    try:
        return encoding.__dict__["_core_bpe"]
    except KeyError:
        raise AttributeError("_core_bpe") from None


def _set(encoding: Any, reference: Any) -> None:
    encoding.__dict__["_core_bpe"] = _Core(reference, encoding)


def patch_tiktoken() -> None:
    """Make every encoding that `tiktoken` makes from now on, as by `get_encoding` and
    `encoding_for_model`, encode by libtok.

    Those that the program has stay as they are. Decoding is tiktoken's. An encoding that libtok
    refuses encodes as before; `hf.fallbacks` counts it, and the logger "dpdk_tokd" warns once a
    reason. Calling it twice changes nothing; a forked process keeps it. ImportError: no `tiktoken`.
    """
    import tiktoken.registry

    with tiktoken.registry._lock:
        if "_core_bpe" not in vars(tiktoken.Encoding):
            tiktoken.Encoding._core_bpe = property(_get, _set)
            tiktoken.registry.ENCODINGS.clear()  # what get_encoding would give out again


def unpatch_tiktoken() -> None:
    """Undo `patch_tiktoken`. Encodings that the program has stay as they are."""
    import tiktoken.registry

    with tiktoken.registry._lock:
        if "_core_bpe" in vars(tiktoken.Encoding):
            del tiktoken.Encoding._core_bpe  # type: ignore[misc]
            tiktoken.registry.ENCODINGS.clear()
