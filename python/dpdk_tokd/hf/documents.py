# SPDX-License-Identifier: BSD-3-Clause
"""The `tokenizer.json` of a vocabulary in another format, made of libtok's tables."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

from ..tokenizer import Tokenizer
from .decoders import SPELLING

Json = dict[str, Any]

_BPE = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
}
_WORD_PIECE = {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
}


def document_of(tokenizer: Tokenizer) -> tuple[Json, str | None]:
    """The document without model.vocab and model.merges, which `complete` adds; and why no
    `tokenizer.json` can be exactly that, or None."""
    info = tokenizer.info
    document: Json = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokenizer),
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": _template(tokenizer),
        "decoder": None,
        "model": {"type": "BPE" if info.n_merges > 0 else "Unigram"},
    }
    if info.format == "sentencepiece":
        return document, "tokenizers has no exact equivalent of a SentencePiece model"
    if info.format == "tokv":
        if info.normalizer == "bert":
            document["model"]["type"] = "WordPiece"
        return document, f"it was compiled from {info.source}: load that instead"
    if info.format == "vocab.txt":
        document["model"] = dict(_WORD_PIECE)
        document["normalizer"] = {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": _lowercases(tokenizer),
        }
        document["pre_tokenizer"] = {"type": "BertPreTokenizer"}
        document["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
        return document, None
    # Of ranks a pretoken that is a token is that token, whatever its merges.
    document["model"] = _BPE | {"ignore_merges": info.format != "vocab.json"}
    document["pre_tokenizer"] = _pre_tokenizer(tokenizer)
    document["decoder"] = _byte_level(use_regex=True)
    return document, None


def complete(document: Json, tokenizer: Tokenizer) -> None:
    """Add model.vocab and model.merges."""
    model = document["model"]
    text = {token["id"]: token["content"] for token in document["added_tokens"]}
    spelled = _spelled(tokenizer, text)
    model["vocab"] = {token: id for id, token in spelled.items()}
    if model["type"] == "BPE":
        model["merges"] = [
            [spelled[left], spelled[right]] for left, right, _ in tokenizer._merges().tolist()
        ]


def _spelled(tokenizer: Tokenizer, text: dict[int, str]) -> dict[int, str]:
    """Each id's token as `tokenizers` spells it; `text`: those that are spelled as they are."""
    tokens = {
        id: token
        for id in range(tokenizer.vocab_size)
        if (token := tokenizer.id_to_token(id)) is not None
    }
    normalizer = tokenizer.info.normalizer
    if normalizer in ("none", "nfc"):
        found = {id: "".join(map(SPELLING.__getitem__, token)) for id, token in tokens.items()}
    elif normalizer == "bert":
        found = {id: token.decode() for id, token in tokens.items()}
    else:
        first = _first_byte(tokens)
        found = {
            id: f"<0x{token[0]:02X}>"
            if first <= id < first + 256
            else token.decode("utf-8", "replace").replace(" ", "▁")
            for id, token in tokens.items()
        }
    return found | text


def _first_byte(tokens: dict[int, bytes]) -> int:
    """The id of the first of SentencePiece's 256 tokens of a byte, which are in a row."""
    every = [bytes([byte]) for byte in range(256)]
    zeros = [id for id, token in tokens.items() if token == every[0]]
    rows = (id for id in zeros if [tokens.get(id + byte) for byte in range(256)] == every)
    return next(rows, 1 << 32)


def _added_tokens(tokenizer: Tokenizer) -> list[Json]:
    none = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    flags: dict[int, Json] = {
        id: {"id": id} | none | {"special": True} for id in tokenizer.special_tokens.values()
    }
    flags |= {token["id"]: {**token} for token in tokenizer._added()}
    return [
        {"id": id, "content": tokenizer.token(id).decode("utf-8", "replace")} | flags[id]
        for id in sorted(flags)
    ]


def _template(tokenizer: Tokenizer) -> Json | None:
    before, after = tokenizer.template
    if not before and not after:
        return None

    def special(ids: tuple[int, ...], type_id: int) -> list[Json]:
        return [{"SpecialToken": {"id": text[id], "type_id": type_id}} for id in ids]

    def sequence(name: str, type_id: int) -> list[Json]:
        return [{"Sequence": {"id": name, "type_id": type_id}}]

    text = {id: tokenizer.token(id).decode() for id in (*before, *after)}
    single = special(before, 0) + sequence("A", 0) + special(after, 0)
    pair = single + sequence("B", 1) + special(after, 1)
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair if tokenizer.info.format == "vocab.txt" else None,
        "special_tokens": {t: {"id": t, "ids": [id], "tokens": [t]} for id, t in text.items()},
    }


def _pre_tokenizer(tokenizer: Tokenizer) -> Json:
    if tokenizer.info.pretokenizer == "gpt2":
        return _byte_level(use_regex=True)
    splits = [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        for regex in tokenizer._regexes()
    ]
    return {"type": "Sequence", "pretokenizers": [*splits, _byte_level(use_regex=False)]}


def _byte_level(*, use_regex: bool) -> Json:
    flags = {"add_prefix_space": False, "trim_offsets": False, "use_regex": use_regex}
    return {"type": "ByteLevel"} | flags


def _lowercases(tokenizer: Tokenizer) -> bool:
    """The file does not say it, but its ids do."""
    small, capital = (
        tokenizer.encode_batch(letters).tolist()
        for letters in (list(ascii_lowercase), list(ascii_lowercase.upper()))
    )
    return small == capital
