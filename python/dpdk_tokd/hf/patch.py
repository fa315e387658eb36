# SPDX-License-Identifier: BSD-3-Clause
"""`transformers` with libtok: two lines in a program, and its fast tokenizers encode by libtok."""

from __future__ import annotations

import copy
import logging
import re
import sys
from collections import Counter
from typing import Any

from .encoding import Encoding
from .stream import DecodeStream
from .tokenizer import HFTokenizer

_log = logging.getLogger("dpdk_tokd")
_CHANGES = ("add_tokens", "add_special_tokens", "train", "train_from_iterator")
_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
# Parts of an error that differ from call to call: the text's number, bytes, folders.
_VARIES = re.compile(r"""^text \d+: | \(after \d+ [^)]*\)$|[^\s:"]*/(?=tokenizer\.json)""")
_LENGTHS = ("enable_truncation", "no_truncation", "enable_padding", "no_padding")

fallbacks: Counter[str] = Counter()
"""How many calls `tokenizers` or `tiktoken` answered because libtok refused them, by the reason."""


def fell_back(package: str, reason: str) -> None:
    """Count a call that the package answered; of the first for a reason, warn."""
    if reason not in fallbacks:
        _log.warning("%s encodes what libtok refuses: %s", package, reason)
    fallbacks[reason] += 1


class Backend:
    """A `tokenizers.Tokenizer` whose texts libtok encodes.

    The reference stays the truth: all else is its doing, and what changes it makes libtok load it
    again before the next text. What libtok refuses, the reference encodes. No locks: a process may
    fork while another thread loads, and two threads that load the same do no harm.
    """

    def __init__(self, reference: Any) -> None:
        self._reference = reference
        self._version = object()  # another one after each change
        self._loaded: tuple[object, HFTokenizer | str] = (None, "not loaded")
        self._lent: dict[str, Any] = {}  # parts that the caller has, as they were
        self.__dict__["decode"] = reference.decode  # called for each id: __getattr__ takes longer

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reference, name)
        if name in _PARTS and found is not None:
            self._lent.setdefault(name, _state(found))
        if name in _CHANGES:
            return self._then_changed(found)
        return self._mirrored(name, found) if name in _LENGTHS else found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        setattr(self._reference, name, value)
        if name in _PARTS:
            self._version = object()
        elif (fast := self._mirror) is not None:
            setattr(fast, name, value)

    def __copy__(self) -> Backend:
        return Backend(copy.copy(self._reference))

    def __reduce__(self) -> tuple[Any, ...]:
        return Backend, (self._reference,)

    def __repr__(self) -> str:
        return repr(self._reference)

    def __str__(self) -> str:
        return str(self._reference)

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
        fast = self._libtok() if isinstance(encoding, Encoding) else None
        owner = fast if isinstance(fast, HFTokenizer) else self._reference
        return owner.post_process(encoding, pair, add_special_tokens)

    def _call(self, name: str, *arguments: Any) -> Any:
        fast = self._libtok()
        if isinstance(fast, HFTokenizer):
            try:
                return getattr(fast, name)(*arguments)
            except (ValueError, TypeError) as e:
                reason = _reason(e)
        else:
            reason = fast
        found = getattr(self._reference, name)(*arguments)  # or its own error
        fell_back("tokenizers", reason)
        return found

    def _libtok(self) -> HFTokenizer | str:
        """The reference as libtok has it, or why libtok refuses it."""
        for name, before in list(self._lent.items()):
            now = _state(getattr(self._reference, name))
            if now != before:
                self._lent[name] = now
                self._version = object()
        version = self._version
        if self._loaded[0] is not version:
            self._loaded = (version, self._load())
        return self._loaded[1]

    def _load(self) -> HFTokenizer | str:
        try:
            fast = HFTokenizer.from_str(self._reference.to_str())
        except Exception as e:  # `tokenizers` raises that for parts written in Python
            return _reason(e)
        fast.encode_special_tokens = self._reference.encode_special_tokens
        if (normalizer := self._reference.normalizer) is not None:
            fast._normalized = {
                id: normalizer.normalize_str(token["content"])
                for id, token in fast._added.items()
                if token["normalized"] and self._reference.model.id_to_token(id) is None
            }
        return fast

    @property
    def _mirror(self) -> HFTokenizer | None:
        """What settings are to be made in as well."""
        fast = self._loaded[1]
        return fast if isinstance(fast, HFTokenizer) else None

    def _then_changed(self, method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            before = self._reference.get_vocab_size()
            done = method(*arguments, **named)
            if done or self._reference.get_vocab_size() != before:
                self._version = object()
            return done

        return call

    def _mirrored(self, name: str, method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> None:
            method(*arguments, **named)
            if (fast := self._mirror) is not None:
                getattr(fast, name)(*arguments, **named)

        return call


def _state(part: Any) -> Any:
    """What of a part its caller may change. None: it is written in Python, and cannot be told."""
    if not hasattr(part, "tokenize"):
        try:
            return part.__getstate__()
        except Exception:  # what `tokenizers` raises
            return None
    values = {name: getattr(part, name) for name in dir(part) if not name.startswith("_")}
    return {name: value for name, value in values.items() if not callable(value)}


def _reason(e: Exception) -> str:
    kind = "" if isinstance(e, ValueError) else f"{type(e).__name__}: "
    return kind + _VARIES.sub("", str(e))


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


def patch_transformers() -> None:
    """Make every fast tokenizer that `transformers` loads from now on encode by libtok.

    Those loaded before stay as they are. What libtok refuses, a file or a text, `tokenizers`
    encodes as before; `fallbacks` counts it, and the logger "dpdk_tokd" warns once a reason.
    Calling it twice changes nothing; a forked process keeps it. ImportError: no `transformers`.
    """
    cls = _patched_class()
    if not isinstance(cls.__dict__.get("_tokenizer"), property):
        _replace_decode_stream()
        cls._tokenizer = property(_get, _set)


def unpatch_transformers() -> None:
    """Undo `patch_transformers`. Tokenizers that were loaded meanwhile stay as they are, and with
    them `DecodeStream`, which takes them and those of `tokenizers`."""
    cls = _patched_class()
    if isinstance(cls.__dict__.get("_tokenizer"), property):
        cls._tokenizer = None


def _replace_decode_stream() -> None:
    """That of `tokenizers` takes no Backend. Also where it was imported by name."""
    import tokenizers.decoders

    original: Any = tokenizers.decoders.DecodeStream
    if original is DecodeStream:
        return
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("DecodeStream") is original:
            module.DecodeStream = DecodeStream  # type: ignore[attr-defined]
