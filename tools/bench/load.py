# SPDX-License-Identifier: BSD-3-Clause
"""The one way to ask a server: tokd-load over sockets, tokd-load-dpdk over a memif. What each request
took, and what there is of those that have no time. What was wrong is WrongIds, never a time."""

import csv
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.appliance import MEMIF_IP, Appliance, on_memif
from bench.lab.cpus import CLIENT_CPU
from bench.lab.net import Veth, inside
from bench.programs import TOKD_LOAD, TOKD_LOAD_DPDK
from bench.task import WrongIds

Rows = list[dict[str, str]]
WARM_UP = 100  # requests, checked but not measured: caches are cold then
LIMIT_S = 300.0
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
MEMIF_CLIENT = "10.97.0.2:20000"  # its first UDP port


def _errors(said: str) -> list[str]:
    return [line for line in said.splitlines() if any(word in line for word in WRONG)]


def read_rows(path: Path) -> Rows:
    with path.open() as file:
        return list(csv.DictReader(file))


def run(
    link: Veth,
    client: str | None,
    sent: Path,
    cpu: int | None,
    mode: str,
    *options: object,
    warm_up: int | None = None,
) -> tuple[bool, Rows, str]:
    """By tokd-load in namespace `client`, on `cpu` (None: any), with further options of it: whether
    all ids were right, its rows without those of the warm-up (`warm_up`: not WARM_UP requests), and its
    messages."""
    warm_up = WARM_UP if warm_up is None else warm_up
    out = sent.with_suffix(".csv")
    command = [str(TOKD_LOAD), "--connect", link.address, "--slices", str(sent)]
    command += ["--out", str(out), "--warmup", str(warm_up), "--mode", mode]
    command += ["--timeout", str(TIMEOUT_MS[mode]), *map(str, options)]
    if cpu is not None:
        command += ["--cpu", str(cpu)]
    out.unlink(missing_ok=True)
    done = subprocess.run(
        inside(client, *command), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    said = done.stderr.strip()
    if done.returncode not in (0, 1) or not out.is_file():
        raise OSError(f"tokd-load ended with {done.returncode}: {said}")
    return done.returncode == 0, read_rows(out), said


def load(
    link: Veth,
    client: str | None,
    sent: Path,
    cpu: int | None,
    mode: str,
    more: Sequence[object] = (),
) -> Rows:
    """The rows of run(); WrongIds where ids were wrong, OSError where the client failed."""
    equal, rows, said = run(link, client, sent, cpu, mode, *more)
    if not equal and (wrong := _errors(said)):
        raise WrongIds(wrong[0])  # in the warm-up, perhaps
    if not rows or any(row["failure"] in BROKEN for row in rows):
        raise OSError(f"tokd-load: {said or 'no request was measured'}")
    return rows


def load_memif(
    appliance: Appliance, sent: Path, *options: object, timeout_s: float = LIMIT_S
) -> tuple[dict[str, Any], str]:
    """By tokd-load-dpdk, which also reads the token ring: its report and its messages. WrongIds where
    ids were wrong, in answers or in the ring; OSError where not all came to their end."""
    folder = appliance.socket.parent
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [str(TOKD_LOAD_DPDK), "-l", str(CLIENT_CPU), "--no-pci", "--no-huge", "-m", "128"]
    command += ["--no-shconf", "--no-telemetry", "--vdev", on_memif(folder, "client"), "--"]
    command += ["--connect", f"{MEMIF_IP}:9000", "--source", MEMIF_CLIENT, "--slices", str(sent)]
    command += ["--report", str(report), "--ring", str(appliance.socket), *map(str, options)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=timeout_s,
    )  # fmt: skip
    said = "\n".join(s for s in done.stderr.splitlines() if not s.startswith("EAL: "))
    if not report.is_file():
        raise OSError(f"tokd-load-dpdk ended with {done.returncode}: {said}\n{appliance.tail()}")
    found = json.loads(report.read_text())
    ring = found["ring"]
    if (wrong := _errors(said)) or ring["wrong"] or ring["doubled"]:
        raise WrongIds(wrong[0] if wrong else f"in the token ring: {ring}")
    if done.returncode != 0 or not found["right"] == found["requests"] == ring["texts"]:
        raise OSError(
            f"{found['right']} of {found['requests']} requests were answered, {ring['texts']} texts "
            f"are in the token ring: {said}"
        )
    return found, said


def answered(rows: Rows, counts: dict[str, int]) -> Iterator[tuple[int, int, int]]:
    """Of each text whose ids were right its index, and the ns until its last and its first ids;
    what has no answer is counted."""
    counts.update(dict.fromkeys(COUNTS, 0))
    for row in right(rows, counts):
        yield int(row["index"]), int(row["ns"]), int(row["first_ns"])


def right(rows: Rows, counts: dict[str, int]) -> Iterator[dict[str, str]]:
    """The rows whose ids were right; of the others, what `counts` has."""
    for row in rows:
        counts["sent-again"] += int(row["retransmits"])
        if failure := row["failure"]:
            if failure not in FAILED:
                raise WrongIds(f"text {row['index']}: {failure}")
            counts[FAILED[failure]] += 1
            continue
        yield row
