# SPDX-License-Identifier: BSD-3-Clause
"""Tokens back to text, as the decoder of a `tokenizer.json` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

Json = dict[str, Any]
Tokens = list[str]
Step = Callable[[Tokens], Tokens]

# GPT-2's spelling of bytes: printable Latin-1 as it is, the others from U+0100 on.
_PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
SPELLING = [
    chr(byte) if byte in _PRINTABLE else chr(256 + _OTHERS.index(byte)) for byte in range(256)
]
_BYTE_OF = {c: byte for byte, c in enumerate(SPELLING)}

_CLEANED = {
    " .": ".", " ?": "?", " !": "!", " ,": ",", " ' ": "'", " n't": "n't", " 'm": "'m",
    " do not": " don't", " 's": "'s", " 've": "'ve", " 're": "'re",
}  # fmt: skip


def _byte_level(tokens: Tokens) -> Tokens:
    try:
        return [bytes(map(_BYTE_OF.__getitem__, "".join(tokens))).decode("utf-8", "replace")]
    except KeyError:  # an added token, which is spelled as it is
        pass
    found = bytearray()
    for token in tokens:
        try:
            found += bytes(map(_BYTE_OF.__getitem__, token))
        except KeyError:
            found += token.encode()
    return [found.decode("utf-8", "replace")]


CACHED = 32  # characters: a client's own tokens, which are longer, would fill gigabytes


def _word_piece(prefix: str, cleanup: bool) -> Step:
    def one(first: bool, token: str) -> str:
        if not first:
            token = token.removeprefix(prefix) if token.startswith(prefix) else " " + token
        if cleanup:
            for dirty, clean in _CLEANED.items():
                token = token.replace(dirty, clean)
        return token

    cached = lru_cache(maxsize=1 << 18)(one)  # tokens need not be the vocabulary's

    return lambda tokens: [
        (cached if len(token) <= CACHED else one)(i == 0, token) for i, token in enumerate(tokens)
    ]


def _metaspace(replacement: str, first_is_none: bool) -> Step:
    def one(i: int, token: str) -> str:
        return token.replace(replacement, "" if i == 0 and first_is_none else " ")

    return lambda tokens: [one(i, token) for i, token in enumerate(tokens)]


_DIGITS = "0123456789abcdefABCDEF"
_FALLBACK = {f"<0x{a}{b}>": int(a + b, 16) for a in _DIGITS for b in _DIGITS}


def _byte_fallback(tokens: Tokens) -> Tokens:
    found: Tokens = []
    held = bytearray()

    def give_out() -> None:
        try:
            text = held.decode()
        except UnicodeDecodeError:
            found.extend("\ufffd" * len(held))
        else:
            found.extend([text] * (len(held) > 0))
        held.clear()

    for token in tokens:
        byte = _FALLBACK.get(token)
        if byte is None:
            give_out()
            found.append(token)
        else:
            held.append(byte)
    give_out()
    return found


def _strip(content: str, start: int, stop: int) -> Step:
    def one(token: str) -> str:
        leading = len(token) - len(token.lstrip(content))
        token = token[min(leading, start) :]
        trailing = len(token) - len(token.rstrip(content))
        return token[: len(token) - min(trailing, stop)]

    return lambda tokens: list(map(one, tokens))


def _replace(pattern: Json, content: str) -> Step:
    if "String" in pattern:
        return lambda tokens: [token.replace(pattern["String"], content) for token in tokens]
    raise ValueError(f"decoder Replace: the pattern {pattern} is not implemented; strings are")


def _bpe(suffix: str) -> Step:
    def step(tokens: Tokens) -> Tokens:
        last = len(tokens) - 1
        return [t.replace(suffix, "" if i == last else " ") for i, t in enumerate(tokens)]

    return step


def _in_turn(steps: list[Step]) -> Step:
    def step(tokens: Tokens) -> Tokens:
        for one in steps:
            tokens = one(tokens)
        return tokens

    return step


def decoder(json: Json | None) -> Callable[[Tokens], str]:
    """The one that a `tokenizer.json` asks for. ValueError: it is of an unknown kind."""
    if json is None:
        return " ".join
    step = _step(json)
    return lambda tokens: "".join(step(tokens))


# Gemma's: blanks, then bytes.
_PIECES = [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
]


def errors_of(json: Json | None) -> str | None:
    """Where the text is the bytes of all tokens, as libtok has them: how `bytes.decode` is to take
    errors. None: it is not."""
    if json is not None and json["type"] == "ByteLevel":
        return "replace"
    # Of bytes that are no text this one makes another number of U+FFFD.
    return "strict" if json is not None and json.get("decoders") == _PIECES else None


def _step(json: Json) -> Step:
    kind = json["type"]
    if kind == "Sequence":
        return _in_turn(list(map(_step, json["decoders"])))
    if kind == "ByteLevel":
        return _byte_level
    if kind == "WordPiece":
        return _word_piece(json["prefix"], json["cleanup"])
    if kind == "Metaspace":
        scheme = json.get("prepend_scheme")
        if scheme is None:
            scheme = "always" if json.get("add_prefix_space", True) else "never"
        return _metaspace(json["replacement"], scheme != "never")
    if kind == "ByteFallback":
        return _byte_fallback
    if kind == "Fuse":
        return lambda tokens: ["".join(tokens)]
    if kind == "Strip":
        return _strip(json["content"], json["start"], json["stop"])
    if kind == "Replace":
        return _replace(json["pattern"], json["content"])
    if kind == "BPEDecoder":
        return _bpe(json["suffix"])
    raise ValueError(f"decoder: {kind!r} is not implemented")
