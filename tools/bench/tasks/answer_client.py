# SPDX-License-Identifier: BSD-3-Clause
"""A process that asks dpdk-tokd for answers to prompts, many at once.

Run in the client's namespace as `python -m bench.tasks.answer_client`, with what it needs as JSON
on standard input. It prints, as JSON, the ns to the first and to the last id of each answer behind
the warm-up. All ids are compared with those of the rule.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import numpy as np
from dpdk_tokd import AsyncClient

from bench.client import WRONG
from bench.texts.answers import by_rule
from bench.texts.slices import read

TIMEOUT_S = 20.0


class WrongAnswer(Exception):
    pass


async def _ask(client: AsyncClient, text: bytes, ids: np.ndarray, n: int, rows: int) -> list[int]:
    times, made = [], []
    begun = time.perf_counter_ns()
    async for id, _ in client.generate(text, n, skip_special_tokens=False):
        if id is not None:
            times.append(time.perf_counter_ns() - begun)
            made.append(id)
    if made != by_rule(ids.tolist(), n, rows):
        raise WrongAnswer(f"{len(made)} ids of {n}: they are not the rule's")
    return [times[0], times[-1]]


async def _all(told: dict[str, int | str]) -> list[list[int]]:
    prompts = iter(read(Path(str(told["texts"]))))
    found: list[list[int]] = []

    async def stream(client: AsyncClient) -> None:
        for text, ids in prompts:
            found.append(await _ask(client, text, ids, int(told["answer"]), int(told["rows"])))

    port, streams = int(told["port"]), int(told["streams"])
    async with AsyncClient(str(told["server"]), port, timeout=TIMEOUT_S) as client:
        await asyncio.gather(*(stream(client) for _ in range(streams)))
    return found[int(told["warm_up"]) :]


def main() -> int:
    print(json.dumps(asyncio.run(_all(json.load(sys.stdin)))))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WrongAnswer as error:
        print(error, file=sys.stderr)
        sys.exit(WRONG)
