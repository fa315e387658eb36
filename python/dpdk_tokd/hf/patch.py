# SPDX-License-Identifier: BSD-3-Clause
"""`transformers` with libtok: two lines in a program, and its fast tokenizers encode by libtok."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any, cast

from .encoding import Encoding
from .tokenizer import HFTokenizer

_log = logging.getLogger("dpdk_tokd")
_CHANGES = ("add_tokens", "add_special_tokens", "train", "train_from_iterator")
_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
_LENGTHS = ("enable_truncation", "no_truncation", "enable_padding", "no_padding")

fallbacks: Counter[str] = Counter()
"""How often `tokenizers` did what libtok refused, by the reason."""


class Backend:
    """A `tokenizers.Tokenizer` whose texts libtok encodes.

    The reference stays the truth: all else is its doing, and what changes it makes libtok load it
    again before the next text. What libtok refuses, the reference encodes.
    """

    def __init__(self, reference: Any) -> None:
        self._reference = reference
        self._fast: HFTokenizer | None = None
        self._stale = True
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reference, name)
        if name in _CHANGES:
            return self._then_stale(found)
        return self._mirrored(name, found) if name in _LENGTHS else found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        setattr(self._reference, name, value)
        if name in _PARTS:
            self._stale = True
        elif self._fast is not None:
            setattr(self._fast, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Backend, (self._reference,)

    def __repr__(self) -> str:
        return f"libtok's {self._reference!r}"

    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Any:
        return self._call("encode", sequence, pair, is_pretokenized, add_special_tokens)

    def encode_batch(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Any:
        return self._call("encode_batch", input, is_pretokenized, add_special_tokens)

    encode_batch_fast = encode_batch

    def post_process(self, encoding: Any, pair: Any = None, add_special_tokens: bool = True) -> Any:
        owner = self._reference
        if isinstance(encoding, Encoding) and (fast := self._libtok()) is not None:
            owner = fast
        return owner.post_process(encoding, pair, add_special_tokens)

    def _call(self, name: str, *arguments: Any) -> Any:
        fast = self._libtok()
        if fast is not None:
            try:
                return getattr(fast, name)(*arguments)
            except ValueError as e:
                _fall_back(e)
        return getattr(self._reference, name)(*arguments)

    def _libtok(self) -> HFTokenizer | None:
        """The reference as libtok has it; None: libtok refuses it."""
        if self._stale:
            with self._lock:
                if self._stale:
                    self._fast = self._load()
                    self._stale = False
        if self._fast is None:
            fallbacks["the tokenizer was refused"] += 1
        return self._fast

    def _load(self) -> HFTokenizer | None:
        try:
            fast = HFTokenizer.from_str(self._reference.to_str())
        except (ValueError, KeyError) as e:
            _fall_back(e)
            return None
        fast.encode_special_tokens = self._reference.encode_special_tokens
        return fast

    def _then_stale(self, method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            before = self._reference.get_vocab_size()
            done = method(*arguments, **named)
            if done or self._reference.get_vocab_size() != before:
                self._stale = True
            return done

        return call

    def _mirrored(self, name: str, method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> None:
            method(*arguments, **named)
            if self._fast is not None:
                getattr(self._fast, name)(*arguments, **named)

        return call


def _fall_back(e: Exception) -> None:
    reason = str(e)
    if fallbacks[reason] == 0:
        _log.warning("tokenizers encodes what libtok refuses: %s", reason)
    fallbacks[reason] += 1


def _patched_class() -> Any:
    try:
        from transformers.tokenization_utils_tokenizers import TokenizersBackend as cls
    except ImportError:  # before version 5
        from transformers.tokenization_utils_fast import PreTrainedTokenizerFast as cls
    return cls


def _get(tokenizer: Any) -> Any:
    return tokenizer.__dict__.get("_tokenizer")


def _set(tokenizer: Any, reference: Any) -> None:
    wrap = reference is not None and not isinstance(reference, Backend)
    tokenizer.__dict__["_tokenizer"] = Backend(reference) if wrap else reference


class _DecodeStream:
    """`tokenizers.decoders.DecodeStream`, which also takes a Backend."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._stream = _decode_stream(*arguments, **named)

    def step(self, tokenizer: Any, id: Any) -> str | None:
        reference = tokenizer._reference if isinstance(tokenizer, Backend) else tokenizer
        return cast(str | None, self._stream.step(reference, id))


_decode_stream: Any = None


def patch_transformers() -> None:
    """Make every fast tokenizer that `transformers` loads from now on encode by libtok.

    What libtok refuses, a file or a text, `tokenizers` encodes as before; `fallbacks` counts it,
    and the logger "dpdk_tokd" warns once a reason. Calling it twice changes nothing; a forked
    process keeps it.
    """
    global _decode_stream
    cls = _patched_class()
    if isinstance(cls.__dict__.get("_tokenizer"), property):
        return
    import tokenizers.decoders

    _decode_stream = tokenizers.decoders.DecodeStream
    tokenizers.decoders.DecodeStream = _DecodeStream  # type: ignore[assignment,misc]
    cls._tokenizer = property(_get, _set)


def unpatch_transformers() -> None:
    """Undo `patch_transformers`. Tokenizers that were loaded meanwhile stay as they are."""
    cls = _patched_class()
    if isinstance(cls.__dict__.get("_tokenizer"), property):
        import tokenizers.decoders

        cls._tokenizer = None
        tokenizers.decoders.DecodeStream = _decode_stream  # type: ignore[misc]
