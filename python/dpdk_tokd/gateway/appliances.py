# SPDX-License-Identifier: BSD-3-Clause
"""Appliances behind the gateway: plain prompts are tokenized there, and ids decoded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from http import HTTPStatus
from itertools import groupby
from typing import TypeVar

import numpy as np

from ..client import Client, TokdError
from ..client.aio import REQUESTS_MAX, AsyncClient
from ..tokenizer import Tokenizer
from ..tokenizer.batch import Uint32Ids
from ..wire import Reason
from .errors import Refused, busy
from .models import Models

CHECK_S = 1.0  # without an answer: none is there
BUSY = (Reason.BUSY, Reason.SHARE)
# This process, which has other limits, does it instead. An old appliance says LENGTH to all ids.
BEYOND = (Reason.CARRY, Reason.TEXT_TOO_LONG, Reason.LENGTH)

Given = TypeVar("Given")

log = logging.getLogger("tokd-gateway")


def check(host: str, name: str, tokenizer: Tokenizer) -> None:
    """ValueError: the appliance has another vocabulary. One that does not answer may be started
    later."""
    with Client(host, vocab=tokenizer.checksum, timeout=CHECK_S) as client:
        try:
            client.tokenize("")
            return
        except OSError as error:
            log.warning("--appliance: %s", error)
            return
        except TokdError as error:
            if error.reason is not Reason.VOCAB:
                log.warning("--appliance: %s", error)
                return
    has = "others"
    with contextlib.suppress(OSError, TokdError), Client(host, timeout=CHECK_S) as client:
        client.tokenize("")
        has = f"{client.server_vocab:08x}"
    raise ValueError(
        f"--appliance {host}: its vocabulary is {has}, that of --model {name} is "
        f"{tokenizer.checksum:08x}: start it with the same --vocab"
    )


def _any_of(names: list[str]) -> str:
    """An expression for the sorted names, with what several begin with once: of alternatives `re`
    tries one after the other, and a vocabulary may have thousands of such names."""
    found = []
    for _, alike in groupby(names, key=lambda name: name[:1]):
        group = list(alike)
        lead = os.path.commonprefix(group)  # noqa: RUF071  # of characters, as is wanted
        rest = [name[len(lead) :] for name in group]
        found.append(re.escape(lead) + ("" if "" in rest else f"(?:{_any_of(rest)})"))
    return "|".join(found)


class Appliances:
    """Tokenizes a model's prompts, and decodes ids.

    The template, and a prompt that spells an added token, are left to the tokenizer in this
    process: to an appliance all is text. threads: for what is done here after all; by default the
    event loop's.
    """

    threads: Executor | None = None

    def __init__(self, hosts: str, tokenizer: Tokenizer, in_flight: int) -> None:
        self._tokenizer = tokenizer
        self._client = AsyncClient(
            hosts, vocab=tokenizer.checksum, in_flight=min(in_flight, REQUESTS_MAX)
        )
        added = tokenizer._added()
        names = {*tokenizer.special_tokens}
        names |= {tokenizer.token(one["id"]).decode("utf-8", "replace") for one in added}
        self._spelled = re.compile(_any_of(sorted(names - {""})) or r"\Z\A")
        # Such a token is looked for in the normalized text, which is not at hand.
        self._hidden = tokenizer.info.normalizer != "none" and any(a["normalized"] for a in added)
        before, after = tokenizer.template
        self._before, self._after = np.array(before, np.uint32), np.array(after, np.uint32)

    def takes(self, prompt: str) -> bool:
        return not self._hidden and self._spelled.search(prompt) is None

    async def encode(self, prompt: str, *, add_special_tokens: bool) -> Uint32Ids:
        """Ids of a prompt that it takes, as by Tokenizer.encode; Refused: no appliance has them."""
        ids = await self._asked(self._client.tokenize(prompt))
        if ids is None:
            encode = partial(self._tokenizer.encode, prompt, add_special_tokens=False)
            ids = await self.here(encode)
        return np.concatenate((self._before, ids, self._after)) if add_special_tokens else ids

    async def decode(self, ids: list[int]) -> str | None:
        """Text of ids, as by Tokenizer.decode; None: they are beyond what an appliance takes.
        Refused: none answers."""
        return await self._asked(self._client.detokenize(ids))

    async def here(self, work: Callable[[], Given]) -> Given:
        """Done in this process."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def _asked(self, answer: Awaitable[Given]) -> Given | None:
        """None: the request is beyond what an appliance takes."""
        try:
            return await answer
        except OSError as error:
            raise _unavailable(error) from None
        except TokdError as error:
            if error.reason in BEYOND:
                return None
            raise _unavailable(error) from None

    async def check(self) -> None:
        """Refused: none answers. BUSY is an answer."""
        try:
            async with asyncio.timeout(CHECK_S):
                await self.encode("", add_special_tokens=False)
        except TimeoutError:
            raise _unavailable(f"no answer within {CHECK_S:g} s") from None
        except Refused as refused:
            if refused.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise


def _unavailable(why: object) -> Refused:
    log.warning("appliances: %s", why)
    if isinstance(why, TokdError) and why.reason in BUSY:
        return busy("the appliances are busy", HTTPStatus.TOO_MANY_REQUESTS)
    return busy("no appliance answers")


def attach(models: Models, hosts: str, in_flight: int) -> None:
    """Have the prompts of all models tokenized by the appliances, after `check`."""
    for model in models.by_name.values():
        for host in hosts.split(","):
            check(host, model.name, model.tokenizer)
        model.appliances = Appliances(hosts, model.tokenizer, in_flight)
