# SPDX-License-Identifier: BSD-3-Clause
"""Maps of characters as sentencepiece writes them into models."""

import io
from typing import Any

import sentencepiece


def field(message: bytes, number: int) -> bytes:
    """The last value of a field of bytes in a protocol buffer's message."""
    at, found = 0, b""

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            varint()
        elif key & 7 == 2:
            size = varint()
            found = message[at : at + size] if key >> 3 == number else found
            at += size
        else:
            at += 4 if key & 7 == 5 else 8
    return found


def trained_map(**rules: Any) -> bytes:
    """The map that sentencepiece writes into a model: normalizer_spec.precompiled_charsmap."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e"] * 9),
        model_writer=model,
        vocab_size=10,
        hard_vocab_limit=False,
        minloglevel=2,
        **rules,
    )
    return field(field(model.getvalue(), 3), 2)
