# SPDX-License-Identifier: BSD-3-Clause
"""Ids of many texts: one array and where each text begins in it, or a rectangle with padding."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    overload,
)

import numpy as np

from .._arguments import check_number, check_word
from .._native import libtok

if TYPE_CHECKING:
    import pyarrow
    import torch

# As numpy.typing has them, which takes longer to import than the rest.
_Number = TypeVar("_Number", bound=np.generic)
NDArray: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[_Number]]
DTypeLike: TypeAlias = np.dtype[Any] | type[Any] | str

Ids: TypeAlias = NDArray[Any]  # uint32, or the dtype that was asked for
Uint32Ids: TypeAlias = NDArray[np.uint32]
Side: TypeAlias = Literal["left", "right"]
TokensInText: TypeAlias = Literal["all", "not-special", "none"]

LENGTH_MAX = 2**31 - 1
ID_MAX = 2**32 - 1


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """The same memory as a tensor."""
    import torch

    # Ids are below 2**31, and torch can do little with uint32.
    return torch.from_dlpack(array.view(np.int32) if array.dtype == np.uint32 else array)


class Padded(NamedTuple):
    """Ids of many texts as rows of one length.

    ids: uint32 or the dtype asked for, shape (texts, length). mask: uint8, the same shape: 1 where
    an id is the text's or its template's, 0 where it is padding.
    """

    ids: Ids
    mask: NDArray[np.uint8]

    def to_torch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Both as tensors in the same memory, shape (texts, length); uint32 becomes int32.
        ImportError: torch is not installed."""
        return _tensor(self.ids), _tensor(self.mask)


class Batch:
    """Ids of many texts in one array. `batch[i]` is a view of those of text i, `batch[i:k]` a
    Batch.

    ids: uint32 or the dtype asked for, shape (n,). splits: int64, shape (texts + 1,); the ids of
    text i are `ids[splits[i] : splits[i + 1]]`.
    """

    __slots__ = ("ids", "splits")

    def __init__(self, ids: Ids, splits: NDArray[np.int64]) -> None:
        self.ids = ids
        self.splits = splits

    def __len__(self) -> int:
        return len(self.splits) - 1

    @overload
    def __getitem__(self, i: int) -> Ids: ...

    @overload
    def __getitem__(self, i: slice) -> Batch: ...

    def __getitem__(self, i: int | slice) -> Ids | Batch:
        n = len(self)
        if isinstance(i, slice):
            return self._slice(range(n)[i])
        i = operator.index(i)
        if not -n <= i < n:
            raise IndexError(f"text {i} of a batch of {n}")
        i %= n
        return self.ids[self.splits[i] : self.splits[i + 1]]

    def _slice(self, texts: range) -> Batch:
        """A view of neighbours; of others a copy."""
        if texts.step == 1:
            first, end = texts.start, max(texts.start, texts.stop)
            splits = self.splits[first : end + 1]
            return Batch(self.ids[splits[0] : splits[-1]], splits - splits[0])
        splits = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(self.lengths[texts], out=splits[1:])
        return Batch(np.concatenate([self.ids[:0], *(self[i] for i in texts)]), splits)

    def __iter__(self) -> Iterator[Ids]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of ids of each text: int64, shape (texts,)."""
        return np.diff(self.splits)

    def tolist(self) -> list[list[int]]:
        """A list of ids for each text; faster than `tolist` of each view."""
        return libtok.lists(self.ids.astype(np.uint32, copy=False), self.splits)

    def to_torch(
        self,
        *,
        padding: Literal[False, "longest"] | int = False,
        pad_id: int | None = None,
        side: Side = "right",
        multiple_of: int | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Tensors in the same memory: `ids` and `splits`, or with padding `ids` and `mask` of rows
        as by `padded`. uint32 becomes int32; ask for `dtype="int64"` where that is needed.
        ValueError: padding without pad_id, pad_id and others without padding, or as in `padded`;
        ImportError: torch is not installed."""
        if padding is False:
            if pad_id is not None or side != "right" or multiple_of is not None:
                raise ValueError("pad_id, side, multiple_of: nothing is padded: give padding")
            return _tensor(self.ids), _tensor(self.splits)
        if pad_id is None:
            raise ValueError("pad_id: give the id to pad with")
        length = None
        if padding != "longest":
            words = 'False, "longest" or '
            length = check_number("padding", padding, LENGTH_MAX, words=words)
        return self.padded(length, pad_id=pad_id, side=side, multiple_of=multiple_of).to_torch()

    def padded(
        self,
        length: int | None = None,
        *,
        pad_id: int,
        side: Side = "right",
        multiple_of: int | None = None,
    ) -> Padded:
        """Rows of `length` ids (None: of the longest text), rounded up to `multiple_of`, as arrays
        of their own.

        Both are at most 2**31 - 1; mind the memory for the rows. side: where `pad_id` is put.
        ValueError: a text has more ids than that, or an argument is out of range.
        """
        check_word("side", side, get_args(Side))
        check_number("pad_id", pad_id, int(np.iinfo(self.ids.dtype).max))
        if length is not None:
            check_number("length", length, LENGTH_MAX)
        if multiple_of is not None:
            check_number("multiple_of", multiple_of, LENGTH_MAX)
        lengths = self.lengths
        longest = int(lengths.max(initial=0))
        width = longest if length is None else length
        if multiple_of:
            width += -width % multiple_of
        if width < longest:
            raise ValueError(
                f"text {int(lengths.argmax())} has {longest} ids, more than the {width} to pad to: "
                "give truncation, or a greater length"
            )
        column = np.arange(width)
        if side == "right":
            inside = column < lengths[:, None]
        else:
            inside = column >= width - lengths[:, None]
        ids = np.full(inside.shape, pad_id, dtype=self.ids.dtype)
        ids[inside] = self.ids  # row by row, as they lie there
        return Padded(ids, inside.view(np.uint8))

    def to_arrow(self) -> pyarrow.ListArray:
        """A column for Arrow, Parquet, `datasets`, Ray: lists of int32, or of int64 where the ids
        are, in the same memory. ValueError: there are 2**31 ids or more; ImportError: pyarrow is
        not installed."""
        import pyarrow

        if len(self.ids) > LENGTH_MAX:
            raise ValueError(
                f"{len(self.ids)} ids: expected at most {LENGTH_MAX} in one column: take slices"
            )
        ids = self.ids.view(np.int32) if self.ids.dtype == np.uint32 else self.ids
        splits = self.splits.astype(np.int32)
        return pyarrow.ListArray.from_arrays(pyarrow.array(splits), pyarrow.array(ids))

    def __repr__(self) -> str:
        return f"Batch({len(self)} texts, {len(self.ids)} ids)"
