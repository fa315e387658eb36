# SPDX-License-Identifier: BSD-3-Clause
"""Runs tokd-load (sockets) and tokd-load-dpdk (memif): the time of each request, and counts of
those without one. Wrong ids raise WrongIds; they never become a time."""

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
WARM_UP = 100  # requests, checked but not measured: caches are cold
LIMIT_S = 300.0
# ms without an answer after which tokd-load sends again. A conventional server would tokenize a
# text twice, and its answers could not be told apart; and this network loses nothing.
TIMEOUT_MS = {"tokd": 50, "echo": 50, "plain": 5000, "tcp": 60_000}
COUNTS = {
    "no-answer": "requests without an answer in time; no latency",
    "turned-away": "requests that the appliance refused; no latency",
    "sent-again": "packets sent again; latencies of their requests count",
}
NOT_SENT = {  # of an open loop
    "not-sent": "requests not sent: too many in flight, or the client's kernel refused the datagram; "
    "no latency",
}
FAILED = {"no answer": "no-answer", "refused": "turned-away", "not sent": "not-sent"}
WRONG = ("wrong", "than are right", "odd answer")  # in tokd-load's messages
# Failures of the client's own sockets: they invalidate the trial and say nothing about ids.
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
    """Run tokd-load in namespace `client` on `cpu` (None: any), with further options. Returns
    whether all ids were right, its rows without the warm-up (WARM_UP requests, or `warm_up`), and
    its messages."""
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
    """The rows of run(). Raises WrongIds for wrong ids, OSError if the client failed."""
    equal, rows, said = run(link, client, sent, cpu, mode, *more)
    if not equal and (wrong := _errors(said)):
        raise WrongIds(wrong[0])  # in the warm-up, perhaps
    if not rows or any(row["failure"] in BROKEN for row in rows):
        raise OSError(f"tokd-load: {said or 'no request was measured'}")
    return rows


def memif_command(folder: Path, sent: Path, report: Path, *options: object) -> list[str]:
    """tokd-load-dpdk for the appliance of `folder`."""
    command = [TOKD_LOAD_DPDK, "-l", CLIENT_CPU, "--no-pci", "--no-huge", "-m", "256"]
    command += ["--no-shconf", "--no-telemetry", "--vdev", on_memif(folder, "client"), "--"]
    command += ["--connect", f"{MEMIF_IP}:9000", "--source", MEMIF_CLIENT, "--slices", sent]
    return [*map(str, command), "--report", str(report), *map(str, options)]


def load_memif(
    appliance: Appliance, sent: Path, *options: object, timeout_s: float = LIMIT_S
) -> tuple[dict[str, Any], str]:
    """Run tokd-load-dpdk, which also reads the token ring: its report and its messages. Raises
    WrongIds for wrong ids, in answers or in the ring, OSError if not all requests completed."""
    folder = appliance.socket.parent
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = memif_command(folder, sent, report, "--ring", appliance.socket, *options)
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
    """Index, ns to the last id and ns to the first id of each answered text; counts the others."""
    counts.update(dict.fromkeys(COUNTS, 0))
    for row in right(rows, counts):
        yield int(row["index"]), int(row["ns"]), int(row["first_ns"])


def right(rows: Rows, counts: dict[str, int]) -> Iterator[dict[str, str]]:
    """The answered rows; counts the others."""
    for row in rows:
        counts["sent-again"] += int(row["retransmits"])
        if failure := row["failure"]:
            if failure not in FAILED:
                raise WrongIds(f"text {row['index']}: {failure}")
            counts[FAILED[failure]] += 1
            continue
        yield row
