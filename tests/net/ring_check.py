# SPDX-License-Identifier: BSD-3-Clause
"""A registered reader that checks the token ring: each text is complete once under its name, with
the ids of libtok. Every text of a test must be another one."""

import numpy as np
from bench.lab.beside import Beside
from dpdk_tokd import RingError, RingReader
from dpdk_tokd.tokenizer.batch import Ids


class RingCheck(Beside):
    """Reads in a thread of its own, also what restarted appliances publish."""

    def __init__(self, socket: str) -> None:
        super().__init__()
        self._reader = RingReader(socket, timeout=0.2, reconnect=True)
        self._expected: dict[bytes, int] = {}
        self._open: dict[tuple[int, int], list[Ids]] = {}
        self._names: set[tuple[int, int, int]] = set()
        self.complete: dict[int, int] = {}  # text: how often, each time under another name
        self.faults: list[str] = []

    def expect(self, ids: Ids) -> int:
        """A text with these ids will be sent. Returns its number."""
        return self._expected.setdefault(ids.tobytes(), len(self._expected))

    def is_expected(self, ids: Ids) -> bool:
        return ids.tobytes() in self._expected

    @property
    def again(self) -> int:
        """Texts that are complete under more than one name."""
        return sum(n > 1 for n in self.complete.values())

    @property
    def restarts(self) -> int:
        return len(self._reader.restarts)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._reader.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._read()
            except TimeoutError:
                continue
            except RingError as e:
                self.faults.append(str(e))
                return

    def _read(self) -> None:
        r = next(self._reader)
        ids = self._open.setdefault((r.instance, r.serial), [])
        if sum(map(len, ids)) != r.first:
            self.faults.append(f"{r}: not in order")
        ids.append(r.tokens.copy())
        if not r.last:
            return
        del self._open[r.instance, r.serial]
        if r.aborted:
            return
        text = self._expected.get(np.concatenate(ids).tobytes())
        if text is None:
            self.faults.append(f"{r}: wrong ids")
            return
        name = (r.instance, r.epoch, r.stream_id)
        if name in self._names:
            self.faults.append(f"{r}: complete twice")
        self._names.add(name)
        self.complete[text] = self.complete.get(text, 0) + 1
