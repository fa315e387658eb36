# SPDX-License-Identifier: BSD-3-Clause
"""Answers of a model on an appliance's GPU, as they are made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from types import AsyncGeneratorType
from typing import Any, Literal, NamedTuple, Self, SupportsIndex, cast

from .. import wire
from .._arguments import check_number
from .._closing import Closing
from .._native import libtokd as native
from ..tokenizer.stream import Text

Ended = Literal["stop", "length", "cancelled"]
ENDS: dict[int, Ended] = {
    native.STOP: "stop",
    native.LENGTH: "length",
    native.CANCELLED: "cancelled",
}


class Made(NamedTuple):
    """An id that a model made, and the text that is certain with it.

    text: whole characters; empty while the id ends inside one, or if it is special and skipped.
    id: None, at most in the last one, for bytes that no id completed to a character.
    """

    id: int | None
    text: str


def _bytes_of(text: Any) -> bytes:
    with suppress(TypeError):
        view = memoryview(text)
        if view.ndim == view.itemsize == 1:  # no array of numbers
            return bytes(view)
    raise TypeError(f"text: expected str or bytes, got {type(text).__name__}")


class Prompt:
    """What a client sends."""

    def __init__(self, text: Text, max_tokens: SupportsIndex, skip_special_tokens: bool) -> None:
        """ValueError, TypeError: what cannot be sent."""
        self.limit = check_number("max_tokens", max_tokens, wire.GENERATE_MOST, least=1)
        self.text = text.encode() if isinstance(text, str) else _bytes_of(text)
        self.flags = native.GENERATE | (native.SKIP_SPECIAL if skip_special_tokens else 0)


class Progress:
    """What an iterator shares with its generator, which must not refer to the iterator: else
    dropping the iterator would not end the answer."""

    def __init__(self) -> None:
        self.ended: Ended | None = None
        self.begun = self.closed = False
        self.cancel: Callable[[], None] = lambda: None  # of an AsyncClient: wakes who waits for it

    def taken(self, item: tuple[int, bytes, int]) -> Made | None:
        """An item of the library, for the caller; None: the end, without text."""
        number, data, end = item
        text = data.decode("utf-8", "replace")
        if end == 0:
            return Made(number, text)
        self.ended = ENDS[end]
        return Made(None, text) if text else None

    def close(self) -> None:
        self.closed = True
        self.ended = self.ended or "cancelled"


class Answer:
    """What the two kinds have in common."""

    _progress: Progress

    @property
    def ended(self) -> Ended | None:
        """Why the answer ended: the model ended it, `max_tokens` were made, or it was closed. None:
        it goes on, or failed."""
        return self._progress.ended


class Generation(Answer, Closing):
    """Iterator of `Made`, as they arrive; `Client.generate` makes it. `close`, the end of a `with`,
    or dropping it ends the answer: the appliance stops."""

    def __init__(self, progress: Progress, items: Generator[Made]) -> None:
        self._progress, self._items = progress, items

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Made:
        return next(self._items)

    def close(self) -> None:
        """End the answer. No effect if it has ended."""
        if not self._progress.begun:
            self._progress.close()
        self._items.close()


class AsyncGeneration(Answer):
    """Asynchronous iterator of `Made`, as they arrive; `AsyncClient.generate` makes it. `aclose`,
    or the end of an `async with`, ends the answer: the appliance stops."""

    def __init__(self, progress: Progress, items: AsyncGenerator[Made, None]) -> None:
        self._progress, self._items = progress, items

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Made:
        return await self._items.__anext__()

    async def aclose(self) -> None:
        """End the answer. No effect if it has ended. A task that waits for the next item gets
        StopAsyncIteration."""
        waited_for = cast("AsyncGeneratorType[Made, None]", self._items).ag_running
        if waited_for or not self._progress.begun:
            self._progress.close()
        if waited_for:
            self._progress.cancel()
        else:
            await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
