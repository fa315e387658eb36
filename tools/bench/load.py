# SPDX-License-Identifier: BSD-3-Clause
"""Requests of a trial by tokd-load: how long each took, and what of those that have no time. What
was wrong is WrongIds, never a time."""

import csv
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.appliance import PORT
from bench.lab.net import Veth, inside
from bench.programs import TOKD_LOAD
from bench.task import Missing, WrongIds

WARM_UP = 100  # requests, checked but not measured: caches are cold then
TRIAL_S = 300.0
# Silence in ms after which tokd-load sends again. A text sent twice to a conventional server is
# tokenized twice, and nothing tells the answers apart; and this wire loses nothing.
TIMEOUT_MS = {"tokd": 50, "plain": 5000, "tcp": 60_000}
COUNTS = {
    "no-answer": "requests without an answer in time; they have no latency",
    "turned-away": "requests that the appliance refused; they have no latency",
    "sent-again": "packets that were sent again; their requests' latencies count",
}
NOT_SENT = {  # of an open loop
    "not-sent": "requests that found as many in flight as there may be, or whose datagram the "
    "client's machine did not take; they have no latency",
}
FAILED = {"no answer": "no-answer", "refused": "turned-away", "not sent": "not-sent"}
WRONG = ("wrong", "than are right", "odd answer")  # in what tokd-load says of a request
# Of the client's own sockets: nothing of such a trial can stand, and it says nothing of ids.
BROKEN = ("the connection failed", "the socket failed", "no socket is left")


def need_tokd_load() -> None:
    if not TOKD_LOAD.is_file():
        raise Missing(f"{TOKD_LOAD} is not built: run tools/setup")


def load(
    link: Veth, client: str, sent: Path, cpu: int | None, mode: str, more: Sequence[str] = ()
) -> list[dict[str, str]]:
    """tokd-load's rows, with `more` options of it; those of the first WARM_UP requests are left
    out. `cpu`: None: any."""
    out = sent.with_suffix(".csv")
    command = [str(TOKD_LOAD), "--connect", f"{link.server}:{PORT}", "--slices", str(sent)]
    command += ["--out", str(out), "--warmup", str(WARM_UP), "--mode", mode]
    command += ["--timeout", str(TIMEOUT_MS[mode]), *more]
    if cpu is not None:
        command += ["--cpu", str(cpu)]
    done = subprocess.run(
        inside(client, *command), capture_output=True, text=True, check=False, timeout=TRIAL_S
    )
    if done.returncode not in (0, 1):
        raise OSError(f"tokd-load ended with {done.returncode}: {done.stderr.strip()}")
    wrong = [s for s in done.stderr.splitlines() if any(word in s for word in WRONG)]
    if done.returncode == 1 and wrong:
        raise WrongIds(wrong[0])  # in the warm-up, perhaps
    with out.open() as file:
        rows = list(csv.DictReader(file))
    if not rows or any(row["failure"] in BROKEN for row in rows):
        raise OSError(f"tokd-load: {done.stderr.strip() or 'no request was measured'}")
    return rows


def answered(
    rows: list[dict[str, str]], counts: dict[str, int]
) -> Iterator[tuple[int, int, int]]:
    """Of each text whose ids were right its index, and the ns until its last and its first ids;
    what has no answer is counted."""
    counts.update(dict.fromkeys(COUNTS, 0))
    for row in right(rows, counts):
        yield int(row["index"]), int(row["ns"]), int(row["first_ns"])


def right(rows: list[dict[str, str]], counts: dict[str, int]) -> Iterator[dict[str, str]]:
    """The rows whose ids were right; of the others, what `counts` has."""
    for row in rows:
        counts["sent-again"] += int(row["retransmits"])
        if failure := row["failure"]:
            if failure not in FAILED:
                raise WrongIds(f"text {row['index']}: {failure}")
            counts[FAILED[failure]] += 1
            continue
        yield row
