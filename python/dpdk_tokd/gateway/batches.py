# SPDX-License-Identifier: BSD-3-Clause
"""Dynamic batching: texts that arrive while a batch runs form the next one.

An idle model starts at once: nothing waits for a timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..tokenizer.batch import Ids

if TYPE_CHECKING:
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"

BATCH_TOKENS = 16384
WAITING_TOKENS = 1 << 20


class Full(Exception):
    """Too many tokens wait."""


@dataclass(eq=False, slots=True)
class _Request:
    rows: Sequence[Ids]
    done: asyncio.Future[Vectors]
    vectors: list[Any] = field(default_factory=list)
    taken: int = 0  # rows that are in a batch, or were


class Batches:
    """Runs a model, batch after batch, in a thread of its own.

    run: vectors of texts' ids. A batch has at most BATCH_TOKENS, or one text. It takes a text of
    each waiting request in turn: a long list does not hold up single texts.
    """

    def __init__(self, run: Callable[[Sequence[Ids]], Vectors]) -> None:
        self._run = run
        self._thread = ThreadPoolExecutor(1, "embed")
        self._requests: deque[_Request] = deque()
        self._again: deque[tuple[_Request, Ids]] = deque()  # each alone: their batch failed
        self._task: asyncio.Task[None] | None = None
        self.waiting = 0  # tokens

    async def vectors(self, rows: Sequence[Ids]) -> Vectors:
        """One for each text. Full: WAITING_TOKENS are waiting; and errors of `run`."""
        if self.waiting >= WAITING_TOKENS:
            raise Full(f"{self.waiting} tokens wait")
        request = _Request(rows, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        self.waiting += sum(map(len, rows))
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await request.done

    def _next(self) -> list[tuple[_Request, Ids]]:
        batch: list[tuple[_Request, Ids]] = []
        tokens = 0
        while self._requests:
            request = self._requests[0]
            if request.done.done():  # nobody waits for it any more
                self._requests.popleft()
                self.waiting -= sum(map(len, request.rows[request.taken :]))
                continue
            row = request.rows[request.taken]
            if batch and tokens + len(row) > BATCH_TOKENS:
                break
            self._requests.popleft()
            request.taken += 1
            if request.taken < len(request.rows):
                self._requests.append(request)
            batch.append((request, row))
            tokens += len(row)
        self.waiting -= tokens
        return batch

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._again or self._requests:
                batch = [self._again.popleft()] if self._again else self._next()
                if not batch:
                    continue  # nobody waits any more
                rows = [row for _, row in batch]
                try:
                    made = await loop.run_in_executor(self._thread, self._run, rows)
                except Exception as error:
                    if len(batch) == 1:
                        self._fail(batch[0][0], error)
                    else:  # of one of them: the others do not fail with it
                        self._again.extend(batch)
                    continue
                for (request, _), vector in zip(batch, made, strict=True):
                    self._give(request, vector)
        finally:
            self._task = None

    def _give(self, request: _Request, vector: Any) -> None:
        request.vectors.append(vector)
        if len(request.vectors) == len(request.rows) and not request.done.done():
            request.done.set_result(np.stack(request.vectors))

    def _fail(self, request: _Request, error: Exception) -> None:
        """What else it waits for is dropped."""
        if request in self._requests:
            self._requests.remove(request)
            self.waiting -= sum(map(len, request.rows[request.taken :]))
        if not request.done.done():
            request.done.set_exception(error)
