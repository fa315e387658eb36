# SPDX-License-Identifier: BSD-3-Clause
"""libtok with the interface of `tokenizers.Tokenizer`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from itertools import islice, pairwise
from operator import index
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from .._arguments import check_path, check_several, check_type, check_word, unsigned
from .._native import libtok
from ..tokenizer import Tokenizer
from ..tokenizer.batch import ID_MAX
from ..tokenizer.info import file_state
from .decoders import Json, decoder, errors_of
from .documents import complete, document_of
from .encoding import Direction, Encoding, Offset, Part
from .processors import Frame, Strategy, Truncation, default_process, frame_of, processor

Words = list[str] | tuple[str, ...]
Input = str | Words | tuple[str | Words, str | Words] | list[Any]


class Text:
    """Tokens of one text, or of words that the caller has split it into. See `encoding.Source`."""

    def __init__(
        self,
        owner: HFTokenizer,
        pieces: Sequence[str],
        ids: list[npt.NDArray[np.uint32]],
        words: bool,
    ) -> None:
        self._owner, self._pieces, self._ids, self._words = owner._as_it_is, pieces, ids, words
        self._special = not owner.encode_special_tokens  # as it is now

    @property
    def ids(self) -> list[int]:
        if len(self._ids) == 1:
            return libtok.list_of(self._ids[0])
        return [id for piece in self._ids for id in libtok.list_of(piece)]

    @cached_property
    def tokens(self) -> list[str]:
        found = list(map(self._owner._spelled.__getitem__, self.ids))
        if normalized := self._owner._normalized:
            found = [normalized.get(id, token) for id, token in zip(self.ids, found, strict=True)]
        as_text = self._owner._spelled_as_text
        if not as_text.isdisjoint(self.ids):
            pieces = (
                piece for piece, ids in zip(self._pieces, self._ids, strict=True) for _ in ids
            )
            for i, (piece, id) in enumerate(zip(pieces, self.ids, strict=True)):
                if id in as_text:
                    shown = piece[slice(*self.offsets[i])]
                    added = self._owner._added.get(id)
                    # Its place may be that of other characters, where the normalizer dropped some.
                    dropped = (
                        id != self._owner._unknown
                        and added is not None
                        and not added["normalized"]
                        and added["content"] not in shown
                    )
                    if not dropped:
                        found[i] = shown
        return found

    @cached_property
    def _spans(self) -> tuple[list[Offset], list[int | None]]:
        offsets: list[Offset] = []
        words: list[int | None] = []
        for i, (piece, ids) in enumerate(zip(self._pieces, self._ids, strict=True)):
            ranges, word = self._owner._tokenizer._spans(piece, ids, self._special)
            offsets += cast(list[Offset], list(map(tuple, in_characters(piece, ranges).tolist())))
            words += [i] * len(ids) if self._words else word.tolist()
        return offsets, words

    @property
    def offsets(self) -> list[Offset]:
        return self._spans[0]

    @property
    def words(self) -> list[int | None]:
        return self._spans[1]

    def __len__(self) -> int:
        return sum(map(len, self._ids))


def in_characters(text: str, offsets: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Offsets in bytes of UTF-8 as offsets in characters; parts of one become all of it."""
    if text.isascii():
        return offsets
    raw = np.frombuffer(text.encode(), np.uint8)
    begun = np.zeros(len(raw) + 1, np.uint64)  # [at]: characters that begin before this byte
    np.cumsum((raw & 0xC0) != 0x80, out=begun[1:])
    begin, end = offsets[:, 0], offsets[:, 1]
    first = begun[np.minimum(begin + np.uint64(1), np.uint64(len(raw)))] - np.uint64(1)
    return np.stack((np.where(end > begin, first, begun[begin]), begun[end]), axis=1)


class Component:
    """A part of the file as an object of `tokenizers`, which reads and writes it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: HFTokenizer | None, _: type | None = None) -> Any:
        if owner is None:
            return self
        owner._complete()
        if owner._document.get(self._name) is None:
            return None
        return getattr(owner._reference(parts_only=True), self._name)

    def __set__(self, owner: HFTokenizer, part: Any) -> None:
        owner._complete()
        owner._document[self._name] = None if part is None else json.loads(part.__getstate__())
        owner._changed()


class HFTokenizer:
    """What `tokenizers.Tokenizer` does, for a `tokenizer.json` whose parts libtok implements.

    The file's text is the state: whatever changes it makes the next call load it again. Encoding
    may be called by several threads at once; changes may not be made meanwhile.
    Where there is no such text (`why_not` says why), it cannot be changed or saved.
    """

    def __init__(
        self, document: Json, tokenizer: Tokenizer | None = None, why_not: str | None = None
    ) -> None:
        self._document = document
        self._loaded = tokenizer
        self._why_not = why_not
        self._special_as_text = False
        self._padding: Json | None
        self._forget()

    # ---- where it comes from, where it goes ----

    @classmethod
    def from_str(cls, json: str) -> HFTokenizer:
        """Load the text of a `tokenizer.json`. ValueError: libtok refuses it, and why."""
        check_type("json", json, str, "a str")
        return cls.from_buffer(json.encode())

    @classmethod
    def from_buffer(cls, buffer: bytes) -> HFTokenizer:
        """Load the bytes of a `tokenizer.json`. ValueError as in `from_str`."""
        try:
            given = memoryview(buffer).tobytes()
        except TypeError:
            raise TypeError(f"buffer: expected bytes, got {type(buffer).__name__}") from None
        tokenizer = _load(given)  # its errors say more than those of json
        return cls(json.loads(given), tokenizer)

    @classmethod
    def from_file(cls, path: str) -> HFTokenizer:
        """Load any vocabulary that `Tokenizer.load` reads, with its errors."""
        return as_hf(Tokenizer.load(check_path("path", path)))

    @classmethod
    def from_pretrained(
        cls, identifier: str, revision: str = "main", token: str | None = None
    ) -> HFTokenizer:
        """Load from a repository of huggingface.co (package huggingface_hub), with the errors of
        `Tokenizer.from_pretrained`."""
        from ..tokenizer.hub import vocabulary_of

        return cls.from_file(
            vocabulary_of(
                check_path("identifier", identifier),
                revision=revision,
                token=token,
                cache_dir=None,
                local_files_only=False,
            )
        )

    def to_str(self, pretty: bool = False) -> str:
        """The text of a tokenizer.json, its fields in the order of the file that was loaded.
        ValueError: there is none that is exactly this."""
        self._complete()
        how: dict[str, Any] = {"indent": 2} if pretty else {"separators": (",", ":")}
        return json.dumps(self._document, ensure_ascii=False, **how)

    def save(self, path: str, pretty: bool = True) -> None:
        """Write `to_str` to a file. ValueError as there; OSError."""
        text = self.to_str(pretty)
        with open(check_path("path", path), "w", encoding="utf-8") as file:
            file.write(text)

    def __getstate__(self) -> dict[str, Any]:
        of: tuple[Any, ...] = (json.dumps(self._document), self._tokenizer, self._why_not)
        if self._why_not is None:
            of = (self.to_str(),)
        return {"of": of, "special_as_text": self._special_as_text}

    def __setstate__(self, state: dict[str, Any]) -> None:
        document, *others = state["of"]
        self.__init__(json.loads(document), *others)  # type: ignore[misc]
        self._special_as_text = state["special_as_text"]

    def __repr__(self) -> str:
        return f"HFTokenizer({self._document['model']['type']}, {self.get_vocab_size()} tokens)"

    # ---- encoding ----

    def encode(
        self,
        sequence: str | Words,
        pair: str | Words | None = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """Encode a text or a pair; with is_pretokenized, lists of words instead of texts.

        TypeError: it is no text. ValueError: libtok refuses the text, or what was changed since the
        file was loaded; truncation leaves no room for the template.
        """
        if pair is None and isinstance(sequence, str) and not is_pretokenized:
            try:
                ids = self._tokenizer.encode(
                    sequence, add_special_tokens=False, tokens_in_text=self._tokens_in_text
                )
            except UnicodeEncodeError as e:  # a surrogate is no text, as in `tokenizers`
                raise TypeError(f"input: {e}") from None
            text = Text(self, (sequence,), [ids], words=False)
            found = self._finished([text], add_special_tokens)
            if self._padding is not None:
                self._pad([found])
            return found
        both = [sequence] if pair is None else [sequence, pair]
        inputs = [[_pieces(one, is_pretokenized, "input") for one in both]]
        return self._encoded(inputs, is_pretokenized, add_special_tokens)[0]

    def encode_batch(
        self,
        input: Iterable[Input],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """Encode many; each is a text, or a pair of two texts. An Encoding of each, in their order.
        Errors as in `encode`; they name the text by its number."""
        if type(input) is not list:
            check_several("input", input, "texts")
        elif len(input) == 1 and isinstance(input[0], str):
            return [self.encode(input[0], None, is_pretokenized, add_special_tokens)]
        inputs = [_sequences(one, is_pretokenized, f"input {i}") for i, one in enumerate(input)]
        return self._encoded(inputs, is_pretokenized, add_special_tokens)

    def _encoded(
        self, inputs: list[list[Sequence[str]]], is_pretokenized: bool, add_special_tokens: bool
    ) -> list[Encoding]:
        flat = [piece for one in inputs for pieces in one for piece in pieces]
        try:
            batch = self._tokenizer.encode_batch(
                flat, add_special_tokens=False, tokens_in_text=self._tokens_in_text
            )
        except UnicodeEncodeError as e:
            at = next(i for i, one in enumerate(inputs) for p in one if e.object in p)
            raise TypeError(f"input {at}: {e}") from None
        splits = batch.splits.tolist()
        ids = iter([batch.ids[a:b] for a, b in pairwise(splits)])
        found = []
        for one in inputs:
            texts = [Text(self, p, list(islice(ids, len(p))), is_pretokenized) for p in one]
            found.append(self._finished(texts, add_special_tokens))
        if self._padding is not None:
            self._pad(found)
        return found

    encode_batch_fast = encode_batch  # nothing is made that is not asked for

    async def async_encode(
        self,
        sequence: str | Words,
        pair: str | Words | None = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """`encode` in a thread."""
        import asyncio

        return await asyncio.to_thread(
            self.encode, sequence, pair, is_pretokenized, add_special_tokens
        )

    async def async_encode_batch(
        self,
        input: Iterable[Input],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """`encode_batch` in a thread."""
        import asyncio

        return await asyncio.to_thread(
            self.encode_batch, input, is_pretokenized, add_special_tokens
        )

    async_encode_batch_fast = async_encode_batch

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Truncate, add the template and pad, as `encode` does with what it has encoded."""
        encodings = [Encoding.merge([e], False) for e in (encoding, pair) if e is not None]
        found = self._processed(self._truncated(encodings, add_special_tokens), add_special_tokens)
        if self._padding is not None:
            self._pad([found])
        return found

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Tokens that the template adds to one text, or to a pair."""
        return 0 if self._processor is None else self._processor.added[is_pair]

    def _finished(self, texts: list[Text], special: bool) -> Encoding:
        """One text or two, truncated and with the template."""
        if len(texts) == 1 and (frame := self._frame(special)) is not None:
            t = self._truncation
            if t is None or 0 < len(texts[0]) <= t.max_length - self._n_added(False, special):
                return frame.around(texts[0])
        encodings = [Encoding([Part(t, 0, len(t), type_id=i)]) for i, t in enumerate(texts)]
        return self._processed(self._truncated(encodings, special), special)

    def _frame(self, special: bool) -> Frame | None:
        if special not in self._frames:
            self._frames[special] = frame_of(lambda e: self._processed(e, special))
        return self._frames[special]

    def _n_added(self, is_pair: bool, special: bool) -> int:
        return self.num_special_tokens_to_add(is_pair) if special else 0

    def _truncated(self, encodings: list[Encoding], special: bool) -> list[Encoding]:
        if self._truncation is not None:
            self._truncation.apply(encodings, self._n_added(len(encodings) > 1, special))
        return encodings

    def _processed(self, encodings: list[Encoding], special: bool) -> Encoding:
        if self._processor is None:
            return default_process(encodings)
        return self._processor.process(encodings, special)

    # ---- decoding ----

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Text of ids; unknown ones are left out. TypeError: these are no integers. OverflowError:
        one is not an unsigned 32-bit number."""
        try:
            kept = [*map(index, ids)]
        except TypeError:
            raise TypeError(f"ids: expected a list of numbers, got {ids!r:.100}") from None
        for id in (min(kept, default=0), max(kept, default=0)):
            unsigned("ids", id, ID_MAX)
        if skip_special_tokens:
            kept = [id for id in kept if id not in self._special]
        if self._errors is not None:
            with suppress(ValueError):  # an unknown id, or bytes that are no text
                return self._tokenizer.decode_bytes(kept).decode("utf-8", self._errors)
        spelled = self._spelled
        known = [id for id in kept if id in spelled]
        if self._why_not is not None:
            return self._tokenizer.decode(known)
        return self._decoder([spelled[id] for id in known])

    def decode_tokens(self, tokens: Sequence[str]) -> str:
        """Text of tokens as the file spells them; `tokenizers` has it as decoder.decode."""
        if self._why_not is not None:
            ids = map(self.token_to_id, tokens)
            return self._tokenizer.decode([id for id in ids if id is not None])
        return self._decoder([*tokens])

    @property
    def blank(self) -> str | None:
        """What a Metaspace pretokenizer puts in a blank's place; None: there is none."""
        parts = self._document.get("pre_tokenizer") or {}
        for part in parts.get("pretokenizers", [parts]):
            if part.get("type") == "Metaspace":
                return str(part.get("replacement", "▁"))
        return None

    @property
    def joins_bytes(self) -> bool:
        """Is the text that of the bytes of all tokens in a row, as libtok and appliances have it,
        wherever these bytes are text?"""
        return self._errors is not None

    @cached_property
    def _errors(self) -> str | None:
        """Of `bytes.decode`; None: what libtok decodes is not the text, or it refuses the file."""
        try:
            token = self._tokenizer.id_to_token
        except ValueError:
            return None
        for id, added in self._added.items():  # the decoder may change them
            if self._decoder([added["content"]]).encode() != token(id):
                return None
        return errors_of(self._document.get("decoder"))

    def decode_batch(
        self, sequences: Iterable[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """`decode` of each."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    async def async_decode_batch(
        self, sequences: Iterable[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """`decode_batch` in a thread."""
        import asyncio

        return await asyncio.to_thread(self.decode_batch, sequences, skip_special_tokens)

    # ---- vocabulary ----

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Ids by token, as the file spells it ("Ġthe"). A dict of your own."""
        added = self._added if with_added_tokens else {}
        return self._vocab | {token["content"]: id for id, token in added.items()}

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """How many tokens `get_vocab` has."""
        if not with_added_tokens:
            return len(self._vocab)
        return len(self._vocab.keys() | {token["content"] for token in self._added.values()})

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, as the file spells it; None: there is none."""
        check_type("token", token, str, "a str")
        return self._added_ids.get(token, self._vocab.get(token))

    def id_to_token(self, id: int) -> str | None:
        """The token of an id, as the file spells it; None: there is none. OverflowError: it is
        not an unsigned 32-bit number."""
        return self._spelled.get(unsigned("id", id, ID_MAX))

    @cached_property
    def _vocab(self) -> dict[str, int]:
        if "vocab" not in self._document["model"]:
            complete(self._document, self._tokenizer)
        vocab = self._document["model"]["vocab"]
        if isinstance(vocab, dict):
            return vocab
        return {token: id for id, (token, _) in enumerate(vocab)}

    @cached_property
    def _spelled(self) -> dict[int, str]:
        spelled = {id: token for token, id in self._vocab.items()}
        return spelled | {id: token["content"] for id, token in self._added.items()}

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """The added tokens by id, as `tokenizers.AddedToken` (that package is needed)."""
        from tokenizers import AddedToken

        return {id: AddedToken(**_flags(token)) for id, token in self._added.items()}

    def add_tokens(self, tokens: Sequence[Any]) -> int:
        """Add tokens, each a str or a `tokenizers.AddedToken`. Returns how many are new."""
        return self._add(tokens, special=False)

    def add_special_tokens(self, tokens: Sequence[Any]) -> int:
        """Add tokens that `skip_special_tokens` leaves out. Returns how many are new."""
        return self._add(tokens, special=True)

    def _add(self, tokens: Sequence[Any], special: bool) -> int:
        check_several("tokens", tokens, "tokens")
        self._complete()
        added, n_new = dict(self._added), 0
        size = self.get_vocab_size(with_added_tokens=False)
        next_id = max([size - 1, *added]) + 1
        ids = dict(self._added_ids)
        for token in tokens:
            flags = _flags(token, special)
            content = flags["content"]
            known = ids.get(content, self._vocab.get(content))
            id = next_id if known is None else known
            if content == "" or added.get(id) == {"id": id} | flags:
                continue
            next_id += known is None
            ids[content] = id
            added[id] = {"id": id} | flags
            n_new += 1
        if n_new > 0:
            self._document["added_tokens"] = [added[id] for id in sorted(added)]
            self._changed()
        return n_new

    # ---- truncation and padding ----

    def enable_truncation(
        self,
        max_length: int,
        stride: int = 0,
        strategy: Strategy = "longest_first",
        direction: Direction = "right",
    ) -> None:
        """Truncate from now on to max_length tokens, the template's included; what is cut off is in
        `Encoding.overflowing`, in parts with `stride` tokens in common. ValueError: strategy or
        direction is unknown, or there is no room for the stride; OverflowError: a number is
        negative. Encoding with a template that has more than max_length tokens is a ValueError
        then."""
        check_word("strategy", strategy, _STRATEGIES.values())
        max_length, stride = unsigned("max_length", max_length), unsigned("stride", stride)
        room = max_length - self.num_special_tokens_to_add(False)
        if 0 <= room < stride:
            raise ValueError(f"stride: {stride} is above the {room} tokens that a text may have")
        self._document["truncation"] = {
            "direction": _side(direction).capitalize(),
            "max_length": max_length,
            "strategy": next(name for name, s in _STRATEGIES.items() if s == strategy),
            "stride": stride,
        }
        self._truncation = _truncation(self._document["truncation"])

    def no_truncation(self) -> None:
        """End it."""
        self._truncation = None
        self._document["truncation"] = None

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The arguments of `enable_truncation`, or None."""
        return None if self._truncation is None else asdict(self._truncation)

    def enable_padding(
        self,
        direction: Direction = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None:
        """Pad from now on to `length` tokens (None: those of the batch's longest), rounded up to
        `pad_to_multiple_of`. ValueError: direction is unknown; OverflowError: a number is
        negative, or no id."""
        pad_id = unsigned("pad_id", pad_id, ID_MAX)
        pad_type_id = unsigned("pad_type_id", pad_type_id, ID_MAX)
        check_type("pad_token", pad_token, str, "a str")
        length = None if length is None else unsigned("length", length)
        multiple = pad_to_multiple_of
        if multiple is not None:
            multiple = unsigned("pad_to_multiple_of", multiple)
        self._padding = self._document["padding"] = {
            "strategy": "BatchLongest" if length is None else {"Fixed": length},
            "direction": _side(direction).capitalize(),
            "pad_to_multiple_of": multiple,
            "pad_id": pad_id,
            "pad_type_id": pad_type_id,
            "pad_token": pad_token,
        }

    def no_padding(self) -> None:
        """End it."""
        self._padding = None
        self._document["padding"] = None

    @property
    def padding(self) -> dict[str, Any] | None:
        """The arguments of `enable_padding`, or None."""
        if self._padding is None:
            return None
        p = dict(self._padding)
        strategy = p.pop("strategy")
        length = None if strategy == "BatchLongest" else strategy["Fixed"]
        return p | {"length": length, "direction": p["direction"].lower()}

    def _pad(self, encodings: list[Encoding]) -> None:
        p = self.padding
        assert p is not None
        length = max(map(len, encodings), default=0) if p["length"] is None else p["length"]
        multiple = p["pad_to_multiple_of"] or 1
        length = -(-length // multiple) * multiple
        for encoding in encodings:
            encoding.pad(length, p["direction"], p["pad_id"], p["pad_type_id"], p["pad_token"])

    @property
    def encode_special_tokens(self) -> bool:
        """Are special tokens in a text encoded as text?"""
        return self._special_as_text

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._special_as_text = value

    # ---- parts, as objects of the package `tokenizers` ----

    normalizer = Component("normalizer")
    pre_tokenizer = Component("pre_tokenizer")
    post_processor = Component("post_processor")
    decoder = Component("decoder")

    @property
    def model(self) -> Any:
        """The model as an object of `tokenizers`, a copy."""
        return self._reference().model

    def _reference(self, *, parts_only: bool = False) -> Any:
        """`tokenizers.Tokenizer` of the same document; or of one with an empty vocabulary."""
        import tokenizers

        self._complete()
        document = self._document
        if parts_only:
            model = {"type": "BPE", "vocab": {}, "merges": []}
            document = document | {"model": model, "added_tokens": []}
        return tokenizers.Tokenizer.from_str(json.dumps(document))

    # ---- what a change makes anew ----

    def _complete(self) -> None:
        """Make the document whole. ValueError: it cannot be."""
        if self._why_not is not None:
            where = self._tokenizer.info.path
            raise ValueError(f"{where}: there is no tokenizer.json of it: {self._why_not}")
        self._vocab  # noqa: B018

    def _changed(self) -> None:
        self._loaded = None
        self._forget()

    def _forget(self) -> None:
        for name in ("_vocab", "_spelled", "_errors", "_as_it_is"):
            self.__dict__.pop(name, None)
        added = self._document.get("added_tokens") or ()
        self._added: dict[int, Json] = {t["id"]: t for t in added}
        self._added_ids = {t["content"]: id for id, t in self._added.items()}
        special = {t["content"] for t in self._added.values() if t["special"]}
        self._special = frozenset(id for id, t in self._added.items() if t["content"] in special)
        self._spelled_as_text = {id for id, t in self._added.items() if t["lstrip"] or t["rstrip"]}
        self._normalized: dict[int, str] = {}  # added tokens, where the normalizer changes them
        self._unknown = self._document["model"].get("unk_id")
        self._spelled_as_text.add(self._unknown)
        self._processor = processor(self._document.get("post_processor"))
        self._frames: dict[bool, Frame | None] = {}
        self._decoder = decoder(self._document.get("decoder"))
        self._truncation = _truncation(self._document.get("truncation"))
        self._padding = self._document.get("padding")

    @cached_property
    def _as_it_is(self) -> HFTokenizer:
        """A copy for encodings, which make offsets and tokens after this one may have changed."""
        made = object.__new__(HFTokenizer)
        made.__dict__ |= self.__dict__
        return made

    @property
    def _tokenizer(self) -> Tokenizer:
        if self._loaded is None:
            self._loaded = _load(self.to_str().encode())
        return self._loaded

    @property
    def _tokens_in_text(self) -> Any:
        return "not-special" if self._special_as_text else "all"


def _load(text: bytes) -> Tokenizer:
    return Tokenizer("tokenizer.json", None, None, None, False, text)


_STRATEGIES: dict[str, Strategy] = {
    "LongestFirst": "longest_first",
    "OnlyFirst": "only_first",
    "OnlySecond": "only_second",
}


def _side(direction: str) -> Direction:
    check_word("direction", direction, get_args(Direction))
    return cast(Direction, direction)


def _flags(token: Any, special: bool | None = None) -> Json:
    """Content and flags of an added token: a str, an entry of the file, or an AddedToken."""
    if isinstance(token, str):
        normalized = not special
        flags = (token, False, False, False, normalized, bool(special))
    elif special is None:
        flags = tuple(token[name] for name in _FLAGS)
    else:
        if not hasattr(token, "content"):
            raise TypeError(f"token: expected str or AddedToken, got {type(token).__name__}")
        if special:
            token.special = True  # as `tokenizers` does: `normalized` is False then, unless given
        flags = tuple(getattr(token, name) for name in _FLAGS)
    return dict(zip(_FLAGS, flags, strict=True))


_FLAGS = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")


def _truncation(json: Json | None) -> Truncation | None:
    if json is None:
        return None
    direction = _side(json.get("direction", "Right").lower())
    strategy = _STRATEGIES[json["strategy"]]
    return Truncation(json["max_length"], json["stride"], strategy, direction)


def _sequences(one: Input, words: bool, name: str) -> list[Sequence[str]]:
    """The one or two sequences of an input, each a list of texts that are encoded alone."""
    if isinstance(one, str) and not words:
        return [(one,)]
    one = _listed(one)
    is_pair = (
        isinstance(one, (tuple, list)) and len(one) == 2 and not (words and isinstance(one[0], str))
    )
    several = cast(Sequence[Any], one if is_pair else [one])
    return [_pieces(sequence, words, name) for sequence in several]


_ONE = "a str, or a pair of them"


def _pieces(sequence: Any, words: bool, name: str) -> Sequence[str]:
    pieces = _listed(sequence) if words else [sequence]
    if not isinstance(pieces, (list, tuple)):
        raise TypeError(f"{name}: expected a list of words, got {type(sequence).__name__}")
    for i, piece in enumerate(pieces):
        if not isinstance(piece, str):
            where = f"{name}, word {i}: expected a str" if words else f"{name}: expected {_ONE}"
            raise TypeError(f"{where}, got {type(piece).__name__}")
    return tuple(pieces)  # the caller may change a list


def _listed(sequence: Any) -> Any:
    """Also of an array of texts."""
    return sequence.tolist() if isinstance(sequence, np.ndarray) else sequence


def as_hf(tokenizer: Tokenizer) -> HFTokenizer:
    """A tokenizer with the interface of `tokenizers.Tokenizer`.

    Of a SentencePiece .model and of a .tokv there is no `tokenizer.json`: what shows, changes or
    saves its parts is a ValueError; the rest works. ValueError: the file was changed since.
    TypeError: it is no Tokenizer.
    """
    check_type("tokenizer", tokenizer, Tokenizer, "what Tokenizer.load makes")
    if tokenizer.info.format == "tokenizer.json":
        with open(cast(str, tokenizer._path), encoding="utf-8") as file:
            document = json.load(file)
            if file_state(file.fileno()) != tokenizer._file_state:
                raise ValueError(f"{file.name} was changed since it was loaded: load it again")
        return HFTokenizer(document, tokenizer)
    document, why_not = document_of(tokenizer)
    made = HFTokenizer(document, tokenizer, why_not)
    if (t := tokenizer.truncation) is not None:
        made.enable_truncation(t.max_length, t.stride, direction=t.side)
    if (p := tokenizer.padding) is not None:
        token = made.id_to_token(p.pad_id) or "[PAD]"
        made.enable_padding(p.side, p.pad_id, 0, token, p.length, p.multiple_of)
    return made
