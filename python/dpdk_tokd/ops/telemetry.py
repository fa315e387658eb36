# SPDX-License-Identifier: BSD-3-Clause
"""The telemetry of a running dpdk-tokd: DPDK's socket, and the commands under /tokd.

    with Telemetry("rte") as t:
        print(t.counters()["ids"], t.histogram("wire_to_ring").percentile(0.99))

doc/reference/telemetry.md explains commands and stages. Every failure is a TelemetryError with one
line: what is wrong, and the remedy.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._closing import Closing

SOCKET_NAME = "dpdk_telemetry.v2"
DEFAULT_PREFIX = "rte"  # EAL's
TIMEOUT_S = 2.0
GREETING_BYTES = 1024
OUTPUT_MOST = 1 << 20  # a greeting that announces more is rejected
COMMAND_MOST = 55  # DPDK's MAX_CMD_LEN without the NUL; parameters come on top

STAGES = (
    "wire_to_ring",
    "text_to_first_id",
    "text_to_last_id",
    "tokenizer",
    "ring_to_reply",
    "ids_to_text",
    "decoder",
    "text_to_first_token",
    "posted_to_done",
)


class TelemetryError(RuntimeError):
    """The appliance does not answer, or answers something unexpected."""


def runtime_dir() -> Path:
    """EAL's folder with one folder per --file-prefix, for the same user."""
    base = os.environ.get("RUNTIME_DIRECTORY")
    if not base:
        base = "/var/run" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    return Path(base, "dpdk")


def file_prefixes(folder: Path | None = None) -> list[str]:
    """Prefixes that have a telemetry socket, served or not."""
    return sorted(p.parent.name for p in (folder or runtime_dir()).glob(f"*/{SOCKET_NAME}"))


@dataclass(frozen=True, slots=True)
class Histogram:
    """Values of one stage: how many fell into each bucket, and their sum. Times are in seconds."""

    counts: tuple[int, ...]
    sum_s: float
    tsc_hz: int
    unit_shift: int
    sub_bits: int

    @property
    def count(self) -> int:
        return sum(self.counts)

    def bound(self, i: int) -> float:
        """Where bucket `i` ends and the next begins."""
        i += 1
        sub = 1 << self.sub_bits
        shift = max(i // sub - 1, 0)
        return ((i - shift * sub) << (shift + self.unit_shift)) / self.tsc_hz

    def percentile(self, share: float) -> float | None:
        """The upper end of the bucket of the nearest rank; `share` is 0 to 1. None without
        values."""
        count = self.count
        if count == 0:
            return None
        rank = max(share * count, 1)
        seen = 0
        for i, n in enumerate(self.counts):
            seen += n
            if seen >= rank - 1e-6:
                return self.bound(i)
        raise AssertionError("the counts add up to their sum")

    def cumulative(self, bounds: tuple[float, ...]) -> list[int]:
        """For each of `bounds` (seconds, rising) how many values are known to be no larger. A
        bucket across a bound, and the last one, count as above it."""
        result = []
        seen, i = 0, 0
        for bound in bounds:
            while i < len(self.counts) - 1 and self.bound(i) <= bound:
                seen += self.counts[i]
                i += 1
            result.append(seen)
        return result

    def since(self, earlier: Histogram) -> Histogram:
        """The values added after `earlier`, a snapshot of the same histogram."""
        return Histogram(
            tuple(now - then for now, then in zip(self.counts, earlier.counts, strict=True)),
            self.sum_s - earlier.sum_s,
            self.tsc_hz,
            self.unit_shift,
            self.sub_bits,
        )


# Fields that snapshot() checks.
INFO_TEXTS = (
    "version",
    "revision",
    "state",
    "instance",
    "port_name",
    "driver",
    "link",
    "vocab",
    "vocab_checksum",
)
INFO_NUMBERS = ("uptime_s", "tsc_hz", "workers", "port")
WORKER_NUMBERS = (
    "lcore",
    "open_streams",
    "busy",
    "backpressured",
    "idle",
    "ring_bytes",
    "ring_held",
)
READER_NUMBERS = ("pid", "lag_bytes", "lag_worker")
TAP_NUMBERS = ("pid",)  # its position is not known
COUNTERS = ("rx_packets", "streams_done", "text_bytes", "ids")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of an appliance; its workers are read one after the other."""

    time_s: float  # of the monotonic clock
    info: dict[str, Any]  # INFO_TEXTS and INFO_NUMBERS at least
    workers: list[dict[str, int]]  # WORKER_NUMBERS at least
    counters: list[dict[str, int]]  # by worker; COUNTERS at least
    reader_counters: dict[str, int]  # readers_... and taps_...
    histograms: dict[str, list[Histogram]]  # by stage, then worker
    readers: dict[int, dict[str, Any]]  # by slot, taps too; READER_NUMBERS or TAP_NUMBERS at least
    port: dict[str, int]
    sinks: list[str]  # the state of each worker's GPU sink; none without --sink


class Telemetry(Closing):
    """A connection to the telemetry socket of the process with `file_prefix`.

    A context manager. DPDK serves ten connections at once: close it when done. A connection does
    not survive the appliance; make a new one.
    """

    def __init__(
        self,
        file_prefix: str = DEFAULT_PREFIX,
        *,
        folder: Path | None = None,
        timeout: float = TIMEOUT_S,
    ) -> None:
        """`folder`: the one with a folder per prefix, if not runtime_dir()."""
        self._folder = folder or runtime_dir()
        self.path = self._folder / file_prefix / SOCKET_NAME
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.settimeout(timeout)
            self._connect()
            greeting = self._receive(GREETING_BYTES)
            self.pid = self._int(greeting, "pid")
            self.output_most = self._int(greeting, "max_output_len")
            if not 0 < self.output_most <= OUTPUT_MOST:
                raise TelemetryError(
                    f"{self.path}: announces answers of {self.output_most} bytes, of at most "
                    f"{OUTPUT_MOST}: is this DPDK's telemetry?"
                )
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def _connect(self) -> None:
        try:
            self._socket.connect(str(self.path))
        except FileNotFoundError:
            there = ", ".join(file_prefixes(self._folder)) or "none"
            raise TelemetryError(
                f"{self.path}: no such socket: is dpdk-tokd running, and under this "
                f"--file-prefix? prefixes in {self._folder}: {there}; for that of another user "
                "set RUNTIME_DIRECTORY to its XDG_RUNTIME_DIR"
            ) from None
        except ConnectionRefusedError:
            raise TelemetryError(
                f"{self.path}: no process listens on this socket: dpdk-tokd has ended; "
                "start it again"
            ) from None
        except PermissionError:
            raise TelemetryError(
                f"{self.path}: permission denied: run this as the user of dpdk-tokd, or as root"
            ) from None
        except OSError as e:  # too long a path, a timeout, no socket of this type
            raise TelemetryError(f"{self.path}: {e.strerror or e}: see --file-prefix") from None

    def _receive(self, most: int) -> dict[str, Any]:
        try:
            data = self._socket.recv(most + 1)
        except TimeoutError:
            raise TelemetryError(
                f"{self.path}: no answer within {self._socket.gettimeout()} s: is its host "
                "overloaded, or dpdk-tokd stopped in a debugger?"
            ) from None
        except OSError as e:
            raise TelemetryError(f"{self.path}: {e.strerror or e}: did dpdk-tokd end?") from None
        if not data:
            raise TelemetryError(
                f"{self.path}: closed without an answer: dpdk-tokd has ended, or ten others are "
                "connected, which is DPDK's limit"
            )
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if len(data) > most or not isinstance(answer, dict):
            raise TelemetryError(
                f"{self.path}: {len(data)} bytes, of at most {most}, are no answer of DPDK's "
                "telemetry: what listens there?"
            )
        return answer

    def _int(self, answer: dict[str, Any], name: str) -> int:
        value = answer.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TelemetryError(f"{self.path}: {name} is {value!r}, not a number")
        return value

    def command(self, command: str, *parameters: str | int) -> Any:
        """The answer to `command`; None if it does not exist or refuses its parameters."""
        if len(command) > COMMAND_MOST or not re.fullmatch(r"/[!-+\--~]*", command):
            raise ValueError(f"{command!r}: a command begins with / and has {COMMAND_MOST} letters")
        try:
            self._socket.send(",".join([command, *map(str, parameters)]).encode())
        except OSError as e:
            raise TelemetryError(f"{self.path}: {e.strerror or e}: did dpdk-tokd end?") from None
        answer = self._receive(self.output_most)
        if command not in answer:
            raise TelemetryError(f"{self.path}: answered {', '.join(answer)} to {command}")
        return answer[command]

    def _dict(self, command: str, *parameters: str | int) -> dict[str, Any]:
        answer = self.command(command, *parameters)
        if not isinstance(answer, dict):
            full = ",".join([command, *map(str, parameters)])
            raise TelemetryError(
                f"{self.path}: no answer to {full}: this is not dpdk-tokd, another version of it, "
                "or it is starting or ending"
            )
        return answer

    def info(self) -> dict[str, Any]:
        return self._dict("/tokd/info")

    def workers(self) -> list[dict[str, int]]:
        """Each worker, in order. All pages."""
        count = self._int(self.info(), "workers")
        result: list[dict[str, int]] = []
        while len(result) < count:
            page = self._dict("/tokd/workers", len(result))
            if not page:
                raise TelemetryError(f"{self.path}: answers with {len(result)} of {count} workers")
            for worker in page.values():
                if not isinstance(worker, dict):
                    raise TelemetryError(f"{self.path}: /tokd/workers answers {worker!r}")
                result.append({name: self._int(worker, name) for name in worker})
        return result

    def counters(self, worker: int | None = None) -> dict[str, int]:
        """Summed with those of readers and taps, or one worker's own."""
        answer = self._dict("/tokd/counters", *([] if worker is None else [worker]))
        return {name: self._int(answer, name) for name in answer}

    def readers(self) -> dict[int, dict[str, Any]]:
        """By slot."""
        answer = self._dict("/tokd/readers")
        for slot, reader in answer.items():
            if not slot.isdecimal() or not isinstance(reader, dict):
                raise TelemetryError(f"{self.path}: /tokd/readers answers {slot}: {reader!r}")
        return {int(slot): reader for slot, reader in answer.items()}

    def sinks(self, workers: int) -> list[str]:
        """The state of each worker's GPU sink; none without --sink. All pages."""
        result: list[str] = []
        while len(result) < workers and (page := self._dict("/tokd/sink", len(result))):
            for sink in page.values():
                if not isinstance(sink, dict) or not isinstance(sink.get("state"), str):
                    raise TelemetryError(f"{self.path}: /tokd/sink answers {sink!r}")
                result.append(sink["state"])
        return result

    def help(self) -> dict[str, str]:
        """What each counter and stage means. All pages."""
        result: dict[str, str] = {}
        while page := self._dict("/tokd/help", len(result)):
            if not page.keys() - result.keys():
                raise TelemetryError(f"{self.path}: /tokd/help repeats itself")
            result |= page
        return result

    def snapshot(self, stages: tuple[str, ...] = STAGES) -> Snapshot:
        """Everything that tokd-top and tokd-exporter show, with the histograms of `stages`."""
        info = self.info()
        for name in INFO_TEXTS:
            if not isinstance(info.get(name), str):
                raise TelemetryError(f"{self.path}: /tokd/info lacks {name}: another version?")
        numbers = {name: self._int(info, name) for name in INFO_NUMBERS}
        if numbers["tsc_hz"] <= 0:
            raise TelemetryError(f"{self.path}: tsc_hz is {numbers['tsc_hz']}")
        time_s = time.monotonic()
        workers = self.workers()
        counters = [self.counters(w) for w in range(len(workers))]
        for tables, needed in ((workers, WORKER_NUMBERS), (counters, COUNTERS)):
            for table in tables:
                for name in needed:
                    self._int(table, name)
        readers = self.readers()
        for reader in readers.values():
            for name in TAP_NUMBERS if reader.get("mode") == "tap" else READER_NUMBERS:
                self._int(reader, name)
        return Snapshot(
            time_s,
            info,
            workers,
            counters,
            {k: v for k, v in self.counters().items() if k.startswith(("readers_", "taps_"))},
            {s: [self.histogram(s, w) for w in range(len(workers))] for s in stages},
            readers,
            self.port(numbers["port"]),
            self.sinks(len(workers)),
        )

    def histogram(self, stage: str, worker: int | None = None) -> Histogram:
        answer = self._dict("/tokd/histograms", stage, *([] if worker is None else [worker]))
        counts = answer.get("buckets")
        values = {n: self._int(answer, n) for n in ("sum_ns", "tsc_hz", "unit_shift", "sub_bits")}
        if (
            not isinstance(counts, list)
            or not counts
            or not all(isinstance(n, int) and n >= 0 for n in counts)
            or values["tsc_hz"] <= 0
            or not (0 <= values["unit_shift"] < 32 and 0 <= values["sub_bits"] < 32)
        ):
            raise TelemetryError(f"{self.path}: stage {stage} has no sensible buckets")
        return Histogram(
            tuple(counts),
            values["sum_ns"] / 1e9,
            values["tsc_hz"],
            values["unit_shift"],
            values["sub_bits"],
        )

    def port(self, number: int) -> dict[str, int]:
        """The device counters of a port: totals, not per queue."""
        answer = self._dict("/ethdev/stats", number)
        return {name: n for name, n in answer.items() if isinstance(n, int)}
