# SPDX-License-Identifier: BSD-3-Clause
"""A text that comes in pieces, to ids as they become certain."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from mmap import mmap
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from .._closing import Closing
from .._native import libtok
from .batch import Ids, NDArray

if TYPE_CHECKING:
    Array: TypeAlias = array[Any]
else:  # before Python 3.12 it has no parameter
    Array = array
Buffer: TypeAlias = bytes | bytearray | memoryview | mmap | Array | NDArray[Any]
Text: TypeAlias = str | Buffer
OneText: TypeAlias = str | bytes | bytearray | memoryview  # an array may be one of texts
Chunks: TypeAlias = Iterable[Text] | AsyncIterable[Text]


class Stream(libtok.Stream, Closing):
    """A text on its way through: each id is released as soon as no later byte can change it.

    All ids together are those of the whole text, however it was cut. Made by
    `Tokenizer.stream()`; one thread at a time, another gets a RuntimeError. At the end of a `with`
    or `async with` it is closed.

    Of a stream with chunks, `for ids in stream` feeds them and gives the ids that became certain,
    arrays of at least one; `async for` does so with asynchronous chunks.
    """

    _chunks: Chunks | None

    def __iter__(self) -> Iterator[Ids]:
        if not isinstance(self._chunks, Iterable):
            raise TypeError("stream: no chunks to iterate over: give stream() an iterable of texts")
        for chunk in self._chunks:
            if len(ids := self.feed(chunk)) > 0:
                yield ids
        if len(ids := self.finish()) > 0:
            yield ids

    async def __aiter__(self) -> AsyncIterator[Ids]:
        if not isinstance(self._chunks, AsyncIterable):
            raise TypeError(
                "stream: no chunks to iterate over: give stream() an asynchronous iterable of texts"
            )
        async for chunk in self._chunks:
            if len(ids := self.feed(chunk)) > 0:
                yield ids
        if len(ids := self.finish()) > 0:
            yield ids

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
