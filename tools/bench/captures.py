# SPDX-License-Identifier: BSD-3-Clause
"""Captures that workers replay (net_pcap), without clients or a network, and the check that all ids
are there, each text's in order, once, and right."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dpdk_tokd import RingReader

from bench.appliance import ring_bytes
from bench.task import WrongIds
from bench.texts import frames, reference

PACKET = 1200  # bytes of text in a packet
RECORD = 128  # bytes of a record in the token ring beside its ids, at most


@dataclass(frozen=True)
class Texts:
    """What each worker tokenizes, one text per packet, and the right ids."""

    texts: list[bytes]
    ids: list[np.ndarray]
    agreed: int = 0  # bytes of text on which a second reference agreed

    @property
    def ring_bytes(self) -> int:
        """Size of a token ring that holds all of it, with the worst case that is reserved."""
        return ring_bytes(sum(RECORD + 4 * len(one) for one in self.ids) + 64 * PACKET)

    def write(self, path: Path) -> Path:
        packets = [frames.text_frame(n, text, ids=False) for n, text in enumerate(self.texts, 1)]
        frames.write_pcap(path, packets)
        return path


def first_of(vocab: Path, corpora: dict[str, Path], most: int) -> Texts:
    """The first `most` bytes of each corpus, with the reference's ids."""
    whole = [path.read_bytes()[:most] for path in corpora.values()]
    cut = [c[i : i + PACKET] for c in whole for i in range(0, len(c), PACKET)]
    tokenizer = reference.load_gpt2(vocab)
    told = [text.decode("utf-8", "replace") for text in cut]
    agreed = reference.verify(tokenizer, vocab, reference.some(told))
    ids = [np.array(reference.ids(tokenizer, text), dtype=np.uint32) for text in told]
    return Texts(cut, ids, agreed)


class InOrder:
    """Checks each worker's ids: each text's without gaps, once. Texts may overtake each other: a
    worker defers slow text. A text's serial in its ring is its place in the capture."""

    def __init__(self, ids: Sequence[np.ndarray], workers: int) -> None:
        self.ids = ids
        self._at: list[list[int | None]] = [[0] * len(ids) for _ in range(workers)]  # None: ended
        self.left = workers * len(ids)
        self.checked = 0

    def take(self, worker: int, text: int, first: int, count: int, last: bool) -> np.ndarray:
        """The reference's ids for the next range. Raises WrongIds if it is out of order."""
        where = f"worker {worker}, text {text}"
        if text >= len(self.ids) or (at := self._at[worker][text]) is None:
            raise WrongIds(f"{where}: more than was sent")
        whole = self.ids[text]
        right = whole[at : at + count]
        if first != at or len(right) != count or (last and at + count != len(whole)):
            raise WrongIds(f"{where}: {count} ids from {first} on, {last=}")
        self._at[worker][text] = None if last else at + count
        self.left -= last
        self.checked += count
        return right


def check_ring(reader: RingReader, ids: Sequence[np.ndarray], workers: int) -> int:
    """Check that the rings have all texts of each worker; returns the number of ids."""
    due = InOrder(ids, workers)
    while (given := reader.poll()) is not None:
        right = due.take(given.worker, given.serial, given.first, len(given), given.last)
        if given.aborted or not np.array_equal(given.tokens, right):
            raise WrongIds(f"worker {given.worker}, text {given.serial}: not the reference's ids")
    if due.left:
        raise WrongIds(f"{due.left} texts are not in the token ring")
    return due.checked
