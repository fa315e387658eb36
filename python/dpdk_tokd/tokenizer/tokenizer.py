# SPDX-License-Identifier: BSD-3-Clause
"""Exact tokenization in this process: libtok, as dpdk-tokd runs it."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, overload

from .._arguments import check_number, check_path, check_several, check_type, check_word
from .._cpus import cpus, quota
from .._native import libtok
from .batch import (
    ID_MAX,
    LENGTH_MAX,
    Batch,
    DTypeLike,
    Ids,
    Padded,
    Side,
    TokensInText,
)
from .block_keys import block_keys
from .config import Config, Message, config_of
from .decode import DecodeStream, IdsLike, Kept, ids_for, kept_but, without
from .hub import vocabulary_of
from .info import Padding, Template, Truncation, VocabInfo, file_state
from .stream import Chunks, OneText, Stream, Text

if TYPE_CHECKING:  # which takes longer to import than the rest
    from ..hf import HFTokenizer
    from ..tiktoken import Encoding

libtok.limit_threads(quota())  # by itself it counts the CPUs of the affinity alone

ONE_TEXT = (str, bytes, bytearray, memoryview)  # OneText


def _side(left: bool) -> Side:
    return "left" if left else "right"


class Tokenizer(libtok.Vocab):
    """A vocabulary; encodes text to ids and decodes ids.

    Several threads may use it at once: the GIL is released while encoding and decoding, and each
    call, also of a stream, borrows a cache of its own (13 MiB, kept for the next one).

    `tokens_in_text` says which added tokens, where a text spells them, become their ids. "all", the
    default, is what Hugging Face does, for prompts of your own: anyone who writes the text can
    insert control tokens. "not-special": special ones stay text. "none": all stay text. An
    appliance, whose texts come from others, does as `tokens_in_text="none",
    add_special_tokens=False`, unless configured otherwise. The vocabulary's `template` is added
    around a text unless `add_special_tokens` is False.

    It does not change, and is equal to another of the same checksum, algorithm and strictness.
    Copies are the tokenizer itself; a pickle names its file, which must be there when it is loaded.
    """

    def __init__(self, *arguments: Any) -> None:
        _, self._pretokenizer, _, _, self._strict_utf8, *memory = arguments
        self._info = VocabInfo(**self._describe())
        self._path = None if memory else os.path.abspath(self._info.path)
        self._file_state = file_state(self._path) if self._path else None
        shape = self._shape()
        self._template = Template(tuple(shape["before"].tolist()), tuple(shape["after"].tolist()))
        self._truncation = shape["truncation"]
        self._padding = shape["padding"]

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        strict_utf8: bool = False,
        pretokenizer: str | None = None,
        search_path: str | os.PathLike[str] | None = None,
        algo: str | None = None,
    ) -> Tokenizer:
        """Load a vocabulary: a name (`gpt2`) or the path of a file in a format libtok reads.

        A `pathlib.Path` is never a name.
        strict_utf8: text that is not UTF-8 is a ValueError; otherwise invalid bytes become U+FFFD,
        as in `bytes.decode("utf-8", "replace")`.
        pretokenizer: for a `.tiktoken` file with unknown content; "bert-cased" for a `vocab.txt` of
        cased text.
        search_path: folders to look a name up in, colon-separated; by default `$TOK_VOCAB_PATH`,
        then the user's folder.
        algo: "exact" (the default), or "greedy": longest match within pretokens.
        ValueError names the file and what is wrong with it.
        """
        path = check_path("name_or_path", name_or_path)
        for argument, value in (("pretokenizer", pretokenizer), ("algo", algo)):
            check_type(argument, value, (str, NoneType), "a str or None")
        if path is not name_or_path:
            path = os.path.join(os.curdir, path)  # as it is, where it begins with a slash
            if search_path is not None:
                raise ValueError(f"search_path: {name_or_path!r} is a path, not a name to look up")
        folders = None if search_path is None else check_path("search_path", search_path)
        try:
            return cls(path, pretokenizer, folders, algo, strict_utf8)
        except ValueError as error:
            if path is not name_or_path or os.path.lexists(path):
                raise
            if path.startswith("~"):
                hint = "~ is not expanded: use os.path.expanduser"
            elif re.fullmatch(r"[\w.-]+/[\w.-]+", path):
                hint = "for a repository of huggingface.co use Tokenizer.from_pretrained"
            else:
                raise
            raise ValueError(f"{error}: {hint}") from None

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
        strict_utf8: bool = False,
        pretokenizer: str | None = None,
        algo: str | None = None,
    ) -> Tokenizer:
        """Load the vocabulary of a repository of huggingface.co, or of a folder.

        Takes the first of `tokenizer.json`, `vocab.json` with `merges.txt`, `vocab.txt`,
        `tekken.json`, `tokenizer.model`, through the cache of the package huggingface_hub.
        revision: a branch, tag or commit. token: for a gated repository; None: that of the login.
        A folder takes neither, nor cache_dir. local_files_only: the cache only, no network.
        Other arguments are those of `load`, as are its errors. ImportError: huggingface_hub is not
        installed (`pip install dpdk-tokd[hub]`); FileNotFoundError: there is no such file;
        and the errors of huggingface_hub.
        """
        path = check_path("name", name)
        if os.path.isdir(path):
            given = {"revision": revision, "token": token, "cache_dir": cache_dir}
            for argument, value in given.items():
                if value is not None:
                    raise ValueError(f"{argument}: {path} is a folder: leave it out")
            path = os.path.join(path, "")
        else:
            path = vocabulary_of(
                path,
                revision=revision,
                token=token,
                cache_dir=None if cache_dir is None else check_path("cache_dir", cache_dir),
                local_files_only=local_files_only,
            )
        return cls.load(path, strict_utf8=strict_utf8, pretokenizer=pretokenizer, algo=algo)

    @overload
    def encode_batch(  # type: ignore[overload-overlap]  # False is an int: the first match counts
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: Literal[False] = False,
        threads: int | None = None,
    ) -> Batch: ...

    @overload
    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: Literal[True, "longest"],
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
        pad_id: int | None = None,
        threads: int | None = None,
    ) -> Padded: ...

    @overload
    def encode_batch(  # type: ignore[overload-overlap]  # likewise, either of them
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: bool,
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
        pad_id: int | None = None,
        threads: int | None = None,
    ) -> Batch | Padded: ...

    @overload
    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: int,
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
        pad_id: int | None = None,
        threads: int | None = None,
    ) -> Padded: ...

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
        truncation: bool | int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest"] | int = False,
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
        pad_id: int | None = None,
        threads: int | None = None,
    ) -> Batch | Padded:
        """Ids of many texts, each encoded as by `encode`.

        padding: False: a `Batch`, one array of all ids. Otherwise a `Padded`, rows of equal length:
        "longest": that of the longest text; a number: that many ids; True: the file's, else
        "longest". padding_side, pad_to_multiple_of, pad_id: None: the file's, else those of
        `tokenizer_config.json`, else right, not rounded, the id of [PAD] or <pad>. Lengths are at
        most 2**31 - 1; mind the memory for the rows.
        threads: the most to use; None: one per CPU, by affinity and the quota of the control group.
        Small batches use fewer. The ids do not depend on it.
        Errors are those of `encode`; they name the text by its index. ValueError: there is no id to
        pad with, a text is longer than its row, or an argument would be ignored.
        """
        if type(texts) is not list:
            check_several("texts", texts, "texts")
            if isinstance(texts, (Mapping, set, frozenset)):  # whose keys, or order, nobody means
                raise TypeError(f"texts: expected a list of texts, got {type(texts).__name__}")
        if threads is None:
            threads = min(cpus(), libtok.THREADS_MAX)
        else:
            threads = check_number("threads", threads, libtok.THREADS_MAX, least=1)
        if padding_side is not None:
            check_word("padding_side", padding_side, get_args(Side))
        if pad_to_multiple_of is not None:
            check_number("pad_to_multiple_of", pad_to_multiple_of, LENGTH_MAX)
        if pad_id is not None:
            check_number("pad_id", pad_id, ID_MAX)
        if padding is False:
            given = {
                "padding_side": padding_side,
                "pad_to_multiple_of": pad_to_multiple_of,
                "pad_id": pad_id,
            }
            for argument, value in given.items():
                if value is not None:
                    raise ValueError(f"{argument}: nothing is padded: give padding as well")
        length = self._length(padding)
        ids, splits = self._encode_texts(
            texts,
            threads,
            add_special_tokens=add_special_tokens,
            tokens_in_text=tokens_in_text,
            dtype=dtype,
            truncation=truncation,
            truncation_side=truncation_side,
        )
        batch = Batch(ids, splits)
        if padding is False:
            return batch
        file = self.padding
        return batch.padded(
            length,
            pad_id=self._pad_id() if pad_id is None else pad_id,
            side=padding_side or (file.side if file else self._config.padding_side or "right"),
            multiple_of=file.multiple_of
            if pad_to_multiple_of is None and file
            else pad_to_multiple_of,
        )

    def _length(self, padding: bool | Literal["longest"] | int) -> int | None:
        """Ids of a row, None for those of the longest text."""
        if padding is True:
            return self._padding["length"] if self._padding and self._padding["fixed"] else None
        if padding is False or padding == "longest":
            return None
        words = 'True, False, "longest" or '
        return check_number("padding", padding, LENGTH_MAX, words=words)

    def _pad_id(self) -> int:
        if self._padding is not None:
            return self._padding["id"]
        if (id := self.pad_token_id) is not None:
            return id
        for token in ("[PAD]", "<pad>"):
            if token in self.special_tokens:
                return self.special_tokens[token]
        raise ValueError(
            f"{self._info.path} defines no padding id and no special token [PAD] or <pad>: "
            "pass pad_id"
        )

    def stream(
        self,
        chunks: Chunks | None = None,
        *,
        add_special_tokens: bool = True,
        tokens_in_text: TokensInText = "all",
        dtype: DTypeLike = "uint32",
    ) -> Stream:
        """A new text that will come in pieces, cut anywhere.

        `for ids in tok.stream(chunks)` takes them from an iterable of texts, and `async for` from
        an asynchronous one; without chunks, give them to `Stream.feed`. Other arguments as those of
        `encode`, and errors as in `Stream.feed`.
        """
        if not isinstance(chunks, (AsyncIterable, NoneType)):
            check_several("chunks", chunks, "texts")
        stream = self._stream(
            Stream,
            add_special_tokens=add_special_tokens,
            tokens_in_text=tokens_in_text,
            dtype=dtype,
        )
        stream._chunks = chunks
        return stream

    @overload
    def __call__(self, text: OneText, **how: Any) -> Ids: ...

    @overload
    def __call__(self, text: Iterable[Text], **how: Any) -> Batch | Padded: ...

    def __call__(self, text: OneText | Iterable[Text], **how: Any) -> Ids | Batch | Padded:
        """`encode` of one text, `encode_batch` of several; arguments and errors as theirs."""
        if isinstance(text, ONE_TEXT) or not isinstance(text, Iterable):
            ids: Ids = self.encode(text, **how)
            return ids
        batch: Batch | Padded = self.encode_batch(text, **how)
        return batch

    @overload
    def apply_chat_template(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: Literal[True] = True,
        special_in_messages: Literal["allow", "reject"] = "allow",
        **variables: Any,
    ) -> Ids: ...

    @overload
    def apply_chat_template(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: Literal[False],
        special_in_messages: Literal["allow", "reject"] = "allow",
        **variables: Any,
    ) -> str: ...

    @overload
    def apply_chat_template(
        self,
        messages: Sequence[Sequence[Message]],
        *,
        tokenize: Literal[True] = True,
        **how: Any,
    ) -> Batch: ...

    @overload
    def apply_chat_template(
        self, messages: Sequence[Sequence[Message]], *, tokenize: Literal[False], **how: Any
    ) -> list[str]: ...

    def apply_chat_template(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        *,
        tokenize: bool = True,
        **how: Any,
    ) -> Ids | str | Batch | list[str]:
        """Ids of a conversation, or with tokenize=False its text, as `transformers` makes them.
        For a list of conversations: a `Batch`, or a list of texts.

        messages: dicts with "role" and "content". tools: JSON schemas. documents: dicts.
        chat_template: a template, or the name of one of the vocabulary's; None: "tool_use" if there
        are tools and such a template, else the default one. Templates are those of
        `chat_template.jinja`, `additional_chat_templates/` or `tokenizer_config.json` beside the
        vocabulary.
        add_generation_prompt: end with what begins the assistant's answer.
        continue_final_message: end within the last message, which the model continues.
        special_in_messages: "reject": ValueError if a message, document or tool spells a special
        token, which would become control tokens of the conversation.
        variables: more for the template, such as enable_thinking.
        ImportError: Jinja is not installed (`pip install dpdk-tokd[chat]`). ValueError: there is no
        such template, it is wrong, or it refuses the messages; of several conversations it names
        the index.
        """
        listed = isinstance(messages, Sequence)
        if not (listed and messages and isinstance(messages[0], (list, tuple))):
            text = self._conversation(cast("Sequence[Message]", messages), **how)
            return self.encode(text, add_special_tokens=False) if tokenize else text
        texts = []
        for i, one in enumerate(messages):
            try:
                texts.append(self._conversation(cast("Sequence[Message]", one), **how))
            except ValueError as error:
                raise ValueError(f"conversation {i}: {error}") from error
        return self.encode_batch(texts, add_special_tokens=False) if tokenize else texts

    def _conversation(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        special_in_messages: Literal["allow", "reject"] = "allow",
        **variables: Any,
    ) -> str:
        """The text of one."""
        from . import chat

        given = {"messages": messages, "tools": tools, "documents": documents}
        chat.check_lists(given)
        chat.check_variables(variables)
        if not messages:
            raise ValueError("messages: none: give at least one")
        if add_generation_prompt and continue_final_message:
            raise ValueError("give either add_generation_prompt or continue_final_message")
        if special_in_messages == "reject":
            for name, items in given.items():
                chat.reject_special(name, items or (), [*self.special_tokens])
        else:
            check_word("special_in_messages", special_in_messages, ("allow", "reject"))
        return chat.render(
            self._config.template(chat_template, tools is not None),
            messages,
            {
                **self._config.special,
                "tools": tools,
                "documents": documents,
                "add_generation_prompt": add_generation_prompt,
                **variables,
            },
            continue_final_message=continue_final_message,
        )

    def decode(self, ids: IdsLike, *, skip_special_tokens: bool = False) -> str:
        """Text of `ids`, with U+FFFD for parts of characters.

        ids: a list, or an array of shape (n,), of any integer type. ValueError: an unknown id, or
        it is no flat list of ids.
        """
        return self.decode_bytes(ids, skip_special_tokens=skip_special_tokens).decode(
            "utf-8", "replace"
        )

    def decode_bytes(self, ids: IdsLike, *, skip_special_tokens: bool = False) -> bytes:
        """Bytes of `ids`, perhaps with parts of characters. Arguments and errors as in `decode`."""
        return self._decode(without(ids_for(ids), self._kept if skip_special_tokens else None))

    def decode_stream(self, *, skip_special_tokens: bool = False) -> DecodeStream:
        """A new sequence of ids that will come in pieces: see `DecodeStream`."""
        return DecodeStream(self._decode_stream(), self._kept if skip_special_tokens else None)

    @cached_property
    def _kept(self) -> Kept:
        return kept_but(self._specials())

    block_keys = staticmethod(block_keys)

    def token(self, id: int) -> bytes:
        """Bytes of one id. KeyError if there is none."""
        token = self.id_to_token(id)
        if token is None:
            raise KeyError(id)
        return token

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id with just these bytes (not byte-level text: " the", not "Ġthe"), or None.

        Of several the special one, else the lowest. TypeError: it is neither str nor bytes.
        """
        check_type("token", token, (str, bytes), "str or bytes")
        return self._ids_by_token.get(token.encode() if isinstance(token, str) else token)

    @cached_property
    def _ids_by_token(self) -> dict[bytes, int]:
        order = [*range(self._info.n_ids - 1, -1, -1), *self._specials().tolist()]
        tokens = ((self.id_to_token(id), id) for id in order)
        return {token: id for token, id in tokens if token is not None}

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """Text and id of each special token."""
        ids: list[int] = self._specials().tolist()
        return {self.token(id).decode("utf-8", "replace"): id for id in ids}

    @cached_property
    def _config(self) -> Config:
        if self._path is None:
            return Config("memory", {}, None, {})
        return config_of(os.path.dirname(self._path))

    def _named(self, name: str) -> int | None:
        text = self._config.special.get(name)
        if text is None:
            return None
        id = self.special_tokens.get(text)
        return self.token_to_id(text) if id is None else id

    @property
    def bos_token_id(self) -> int | None:
        """The id that begins a text, by `tokenizer_config.json` beside the vocabulary, or None."""
        return self._named("bos_token")

    @property
    def eos_token_id(self) -> int | None:
        """The id that ends a text, likewise."""
        return self._named("eos_token")

    @property
    def pad_token_id(self) -> int | None:
        """The id to pad with, likewise."""
        return self._named("pad_token")

    @property
    def model_max_length(self) -> int | None:
        """Ids that the model takes, likewise; None: no limit."""
        return self._config.model_max_length

    @property
    def _model_truncation(self) -> tuple[int, bool]:
        """For a file without truncation: ids (-1: any number), and whether the left ones go."""
        most = self.model_max_length
        return -1 if most is None else most, self._config.truncation_side == "left"

    @property
    def template(self) -> Template:
        """The ids that `add_special_tokens` puts around a text."""
        return self._template

    @property
    def truncation(self) -> Truncation | None:
        """The file's truncation, applied with `truncation=True`. None: that one truncates to
        `model_max_length`."""
        t = self._truncation
        return None if t is None else Truncation(t["max_length"], _side(t["left"]), t["stride"])

    @property
    def padding(self) -> Padding | None:
        """The file's padding, applied with `padding=True`."""
        p = self._padding
        if p is None:
            return None
        length = p["length"] if p["fixed"] else None
        return Padding(length, _side(p["left"]), p["multiple_of"] or None, p["id"])

    @property
    def vocab_size(self) -> int:
        """Ids are below this."""
        return self._info.n_ids

    @property
    def checksum(self) -> int:
        """Identifies the vocabulary to an appliance; see `VocabInfo`."""
        return self._info.checksum

    @property
    def info(self) -> VocabInfo:
        """Properties of the vocabulary, and its origin."""
        return self._info

    def __len__(self) -> int:
        return self._info.n_ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[int, int, str, bool]:
        return self.checksum, len(self), self._info.algo, self._strict_utf8

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None:
            raise TypeError(
                "a Tokenizer from memory has no file to load it from: pickle its as_hf()"
            )
        arguments = (self._path, self._pretokenizer, None, self._info.algo, self._strict_utf8)
        return _unpickled, (type(self), arguments, self.checksum)

    def as_hf(self) -> HFTokenizer:
        """This tokenizer with the interface of `tokenizers`: `dpdk_tokd.as_hf`."""
        return cast("HFTokenizer", import_module("dpdk_tokd.hf").as_hf(self))

    def as_tiktoken(self) -> Encoding:
        """This tokenizer with the interface of `tiktoken`: `dpdk_tokd.as_tiktoken`."""
        return cast("Encoding", import_module("dpdk_tokd.tiktoken").as_tiktoken(self))

    def __repr__(self) -> str:
        i = self._info
        return f"Tokenizer({i.name!r}, {i.n_ids} ids, checksum {i.checksum:#010x})"


def _unpickled(kind: type[Tokenizer], arguments: tuple[Any, ...], checksum: int) -> Tokenizer:
    try:
        tok = kind(*arguments)
    except ValueError as error:
        raise ValueError(
            f"{error}: a pickled Tokenizer needs the file it was loaded from"
        ) from None
    if tok.checksum != checksum:
        raise ValueError(
            f"{arguments[0]} is not the vocabulary that was pickled: its checksum is "
            f"{tok.checksum:#010x}, not {checksum:#010x}: put the file back, or pickle again"
        )
    return tok
