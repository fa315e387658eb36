# SPDX-License-Identifier: BSD-3-Clause
"""Load on appliances while something happens to them; all ids are compared."""

import asyncio
import random
import threading
import time

from appliance import until
from bench.lab.beside import Beside
from dpdk_tokd import AsyncClient, Reason, TokdError, Tokenizer
from samples import documents

TASKS = 32
LEAST = 200  # answers
TIMEOUT = 20  # s


class Load(Beside):
    """Tasks that ask for one text after another, each text another one."""

    def __init__(
        self, lab, hosts: str, *tokenizers: Tokenizer, vocab: int = 0, may_lack: bool = False
    ) -> None:
        """The ids of a text must be those of one of the tokenizers. may_lack: the appliance may
        refuse the vocabulary."""
        super().__init__()
        self._thread = threading.Thread(target=lambda: lab.call(lambda: asyncio.run(self._ask())))
        self._hosts, self._vocab, self._may_lack = hosts, vocab, may_lack
        self._tokenizers, self._rng, self._real = tokenizers, random.Random(5), documents()
        self.asked = self.answered = self.refused = self.resends = self.moved = self.healthy = 0
        self.longest = 0.0  # s, of an answer
        self.faults: list[str] = []

    async def _ask(self) -> None:
        async with AsyncClient(self._hosts, vocab=self._vocab, timeout=TIMEOUT) as client:
            await asyncio.gather(*(self._ask_on(client) for _ in range(TASKS)))
            self.moved, self.resends = client.moved, client.resends

    async def _ask_on(self, client: AsyncClient) -> None:
        while not self._stop.is_set():
            size = 9000 if self._rng.random() < 0.02 else self._rng.randrange(1000)
            at = self._rng.randrange(len(self._real) - size)
            text = b"%d %s" % (self.asked, self._real[at : at + size])
            self.asked += 1
            begun = time.monotonic()
            try:
                ids = await client.tokenize(text)
            except Exception as e:
                if self._may_lack and isinstance(e, TokdError) and e.reason is Reason.VOCAB:
                    self.refused += 1
                    await asyncio.sleep(0.01)
                else:
                    self.faults.append(repr(e))
                continue
            self.answered += 1
            self.longest = max(self.longest, time.monotonic() - begun)
            self.healthy = client.healthy
            if not any(ids.tolist() == t.encode(text).tolist() for t in self._tokenizers):
                self.faults.append(f"other ids: {text!r}")

    def __str__(self) -> str:
        return (
            f"{self.answered} of {self.asked} texts answered, {self.refused} refused, "
            f"{self.resends} begun again, {self.moved} moved, the longest after "
            f"{self.longest:.2f} s"
        )

    def go_on(self) -> None:
        """Until some more are answered."""
        least = self.answered + LEAST
        until(lambda: self.answered >= least or bool(self.faults), 60)

    def check(self) -> None:
        """Each text had one answer, and the right one."""
        assert self.faults == []
        assert self.answered + self.refused == self.asked
