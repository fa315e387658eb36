# SPDX-License-Identifier: BSD-3-Clause
"""tokd-exporter: serves the telemetry of one dpdk-tokd to Prometheus, and its health to probes.

Each scrape opens a new connection, so restarts of the appliance need no handling: while it is away
`tokd_up` is 0, and its counters begin at 0 again, as Prometheus expects. Labels are `worker` and
`reason` only, never a client's data: the number of workers bounds the number of series.
doc/reference/telemetry.md lists the metrics.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import http.client
import io
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from http import HTTPStatus
from typing import TypeVar

try:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
        Metric,
    )
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector
except ImportError:
    sys.exit(
        "tokd-exporter: prometheus_client is missing: tools/setup installs it, elsewhere "
        "apt-get install python3-prometheus-client, or pip install 'dpdk-tokd[exporter]'"
    )

from . import cli
from .telemetry import Histogram, Telemetry, TelemetryError

LISTEN = "127.0.0.1:9477"

CONNECTIONS = 32  # with one more, the oldest is closed: none takes long
HEAD_BYTES = 16384  # of a request
HEAD_S = 5.0  # from a connection to the end of its request
ANSWER_S = 20.0  # from there to the last byte taken; the appliance has 2 s for each step
PATHS = b"tokd-exporter: /metrics, /health (it answers), /ready (it serves, and does not drain)\n"

# Upper bounds in seconds. A record takes microseconds; a text of many packets takes as long as its
# client needs to send it.
BOUNDS = (*(n * 10.0**e for e in (-6, -5, -4, -3, -2, -1) for n in (1, 2, 5)), 1.0, 5.0)

# A worker's time: counter in TSC cycles, metric, help.
ACCOUNTS = (
    ("busy", "tokd_worker_busy_seconds", "time of turns of the loop that did work"),
    (
        "backpressured",
        "tokd_worker_backpressured_seconds",
        "time of turns in which the ring was full",
    ),
    ("idle", "tokd_worker_idle_seconds", "time of turns that found nothing to do"),
)
WORKER_GAUGES = (
    ("open_streams", "tokd_open_streams", "texts begun and not finished"),
    ("ring_bytes", "tokd_ring_size_bytes", "size of the token ring"),
    ("ring_held", "tokd_ring_held_bytes", "bytes of the ring its slowest reader has not finished"),
)
# Of the whole process: field of /tokd/info, help.
COUNTS = (
    ("reloads", "reloads that took effect"),
    ("reloads_failed", "reloads that changed nothing; the log and /tokd/info say why"),
    ("calls_denied", "system calls that --sandbox denied; the log names them"),
)
PORT = (
    ("ipackets", "rx_packets", "packets the device received"),
    ("opackets", "tx_packets", "packets the device sent"),
    ("ibytes", "rx_bytes", "bytes the device received"),
    ("obytes", "tx_bytes", "bytes the device sent"),
    ("imissed", "rx_missed", "packets the device dropped because its RX queue was full"),
    ("ierrors", "rx_errors", "packets the device received with an error"),
    ("oerrors", "tx_errors", "packets the device failed to send"),
    ("rx_nombuf", "rx_no_mbuf", "packets dropped: no free mbuf"),
)

log = logging.getLogger("tokd-exporter")
T = TypeVar("T")


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _histogram(stage: str, text: str, by_worker: list[Histogram]) -> Metric:
    metric = HistogramMetricFamily(f"tokd_{stage}_seconds", text, labels=["worker"])
    for w, histogram in enumerate(by_worker):
        buckets = [
            (f"{b:g}", float(n)) for b, n in zip(BOUNDS, histogram.cumulative(BOUNDS), strict=True)
        ]
        buckets.append(("+Inf", float(histogram.count)))
        metric.add_metric([str(w)], buckets, histogram.sum_s)
    return metric


class TokdCollector(Collector):
    """Queries the appliance of `file_prefix` at every collect()."""

    def __init__(self, file_prefix: str) -> None:
        self._file_prefix = file_prefix
        self._errors = 0
        self._last_error = ""

    def state(self) -> str:
        """serving, draining or stopping. TelemetryError: it does not answer."""
        with Telemetry(self._file_prefix) as t:
            return str(t.info().get("state"))

    def collect(self) -> Iterator[Metric]:
        start = time.monotonic()
        try:
            metrics = list(self._ask())
            error = ""
        except TelemetryError as e:
            metrics = []  # half a scrape would look like vanished counters
            error = str(e)
            self._errors += 1
        if error != self._last_error:
            log.warning("%s", error) if error else log.info("the appliance answers again")
        self._last_error = error
        yield _gauge("tokd_up", "1: the appliance answered this scrape", not error)
        yield _counter(
            "tokd_exporter_scrape_errors",
            "scrapes the appliance did not answer; the log of tokd-exporter says why",
            self._errors,
        )
        yield _gauge(
            "tokd_exporter_scrape_seconds",
            "time the appliance took to answer this scrape",
            time.monotonic() - start,
        )
        yield from metrics

    def _ask(self) -> Iterator[Metric]:
        with Telemetry(self._file_prefix) as t:
            texts = t.help()
            now = t.snapshot()
        names = ("version", "revision", "driver", "port_name", "vocab", "vocab_checksum")
        yield InfoMetricFamily("tokd", "what runs", value={n: now.info[n] for n in names})
        yield _gauge("tokd_serving", "0: it is draining", now.info["state"] == "serving")
        yield _gauge("tokd_port_link_up", "0: the port has no carrier", now.info["link"] == "up")
        yield _gauge("tokd_uptime_seconds", "since its start", now.info["uptime_s"])
        for name, text in COUNTS:
            yield _counter(f"tokd_{name}", text, now.info.get(name, 0))
        for key, name, text in ACCOUNTS:
            seconds = CounterMetricFamily(name, text, labels=["worker"])
            for w, worker in enumerate(now.workers):
                seconds.add_metric([str(w)], worker[key] / now.info["tsc_hz"])
            yield seconds
        for key, name, text in WORKER_GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=["worker"])
            for w, worker in enumerate(now.workers):
                gauge.add_metric([str(w)], worker[key])
            yield gauge
        drops = CounterMetricFamily(
            "tokd_drops",
            "packets and requests dropped or refused; /tokd/help explains each reason as drop_REASON",
            labels=["worker", "reason"],
        )
        for w, counters in enumerate(now.counters):
            for name, n in counters.items():
                if name.startswith("drop_"):
                    drops.add_metric([str(w), name.removeprefix("drop_")], n)
        yield drops
        for name in now.counters[0]:
            if name.startswith(("cycles_", "drop_")):
                continue  # ACCOUNTS has the cycles in seconds
            count = CounterMetricFamily(f"tokd_{name}", texts.get(name, name), labels=["worker"])
            for w, counters in enumerate(now.counters):
                count.add_metric([str(w)], counters.get(name, 0))
            yield count
        for name, value in now.reader_counters.items():
            yield _counter(f"tokd_{name}", texts.get(name, name), value)
        for stage, by_worker in now.histograms.items():
            yield _histogram(stage, texts.get(stage, stage), by_worker)
        lags = [r["lag_bytes"] for r in now.readers.values() if "lag_bytes" in r]
        yield _gauge("tokd_readers", "readers of the token rings", len(lags))
        yield _gauge("tokd_taps", "taps of the token rings", len(now.readers) - len(lags))
        lag = max(lags, default=0)
        yield _gauge("tokd_reader_lag_bytes", "of the slowest reader, in any ring", lag)
        yield _gauge("tokd_sinks", "GPU sinks: one for each worker, with --sink", len(now.sinks))
        connected = now.sinks.count("running")
        yield _gauge("tokd_sinks_running", "GPU sinks with a tokd-gpu that answers", connected)
        for key, name, text in PORT:
            yield _counter(f"tokd_port_{name}", text, now.port.get(key, 0))


def _listen(text: str) -> tuple[str, int]:
    """ADDR:PORT, [ADDR]:PORT or :PORT."""
    address, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or not int(port) < 65536:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected ADDR:PORT with a port of 0 to 65535, for example {LISTEN}"
        )
    return address.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)


class _Refused(Exception):
    """A request that is answered by its status alone."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def _parse(head: bytes) -> tuple[str, Message]:
    """Path and headers of a request. Raises _Refused."""
    line, _, rest = head.partition(b"\r\n")
    method, _, target = line.decode("latin-1").partition(" ")
    path = target.partition(" ")[0].partition("?")[0]
    if method not in ("GET", "HEAD"):
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED)
    try:
        return path, http.client.parse_headers(io.BytesIO(rest))
    except http.client.HTTPException:
        raise _Refused(HTTPStatus.BAD_REQUEST) from None


class _Server:
    """HTTP for scrapers and probes, however slow. Telemetry is asked by one thread, for one
    request after the other."""

    def __init__(self, collector: TokdCollector) -> None:
        self._collector = collector
        self._registry = CollectorRegistry()
        self._registry.register(collector)
        self._asking = ThreadPoolExecutor(1)
        self._open: dict[asyncio.Task[None], None] = {}  # the oldest first

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        self._open[task] = None
        try:
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(ANSWER_S):
                writer.transport.set_write_buffer_limits(0)  # drain() waits for all
                writer.write(await self._answer(head))
                await writer.drain()
            writer.close()
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # slow, gone, too long, or displaced
        finally:
            self._open.pop(task, None)
            if not writer.is_closing():
                writer.transport.abort()

    async def _answer(self, head: bytes) -> bytes:
        kind, encoding, body = "text/plain; charset=utf-8", "", PATHS
        status = HTTPStatus.OK
        try:
            path, headers = _parse(head)
            if path == "/metrics":
                encode, kind = choose_encoder(headers.get("Accept", ""))
                body = await self._ask(encode, self._registry)
                if "gzip" in headers.get("Accept-Encoding", ""):
                    body, encoding = gzip.compress(body), "Content-Encoding: gzip\r\n"
            elif path in ("/health", "/ready"):
                state = await self._ask(self._collector.state)
                body = f"{state}\n".encode()
                if path == "/ready" and state != "serving":
                    status = HTTPStatus.SERVICE_UNAVAILABLE
            elif path != "/":
                status = HTTPStatus.NOT_FOUND
        except _Refused as refused:
            status = refused.status
        except TelemetryError as error:
            status, body = HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode()
        lines = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n{encoding}"
        lines += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        return lines.encode() + (b"" if head.startswith(b"HEAD ") else body)

    async def _ask(self, question: Callable[..., T], *of: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._asking, question, *of)


async def _run(collector: TokdCollector, listening: socket.socket, shown: str) -> None:
    done = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, done.set)
    server = await asyncio.start_server(_Server(collector).serve, sock=listening, limit=HEAD_BYTES)
    log.info("http://%s:%d/metrics", shown, listening.getsockname()[1])
    await done.wait()
    server.close()


def main(arguments: list[str] | None = None) -> int:
    parser = cli.parser(
        "tokd-exporter",
        "Serves the telemetry of a dpdk-tokd on this host to Prometheus, and its health to probes, by HTTP.",
        " doc/reference/telemetry.md lists the metrics.",
    )
    parser.add_argument(
        "--listen",
        type=_listen,
        default=LISTEN,
        metavar="ADDR:PORT",
        help="where to serve /metrics, /health and /ready (default %(default)s, this host only)",
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(format="tokd-exporter: %(message)s", level=logging.INFO)

    address, port = options.listen
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listening = socket.create_server((address, port), family=family)
    except OSError as e:
        print(
            f"tokd-exporter: --listen {address}:{port}: {e.strerror or e}: "
            "give an address of this host and a free port",
            file=sys.stderr,
        )
        return 1
    shown = f"[{address}]" if ":" in address else address
    asyncio.run(_run(TokdCollector(options.file_prefix), listening, shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
