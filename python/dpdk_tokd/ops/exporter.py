# SPDX-License-Identifier: BSD-3-Clause
"""tokd-exporter: serves the telemetry of one dpdk-tokd to Prometheus.

Each scrape opens a new connection, so restarts of the appliance need no handling: while it is away
`tokd_up` is 0, and its counters begin at 0 again, as Prometheus expects. Labels are `worker` and
`stage` only, never a client's data: the number of workers bounds the number of series.
doc/reference/telemetry.md lists the metrics.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

try:
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector
except ImportError:
    sys.exit(
        "tokd-exporter: prometheus_client is missing: tools/setup installs it, elsewhere "
        "pip install 'dpdk-tokd[exporter]'"
    )

from . import cli
from .telemetry import Histogram, Telemetry, TelemetryError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LISTEN = "127.0.0.1:9477"

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
        self._lock = threading.Lock()  # the HTTP server serves each request by a thread

    def collect(self) -> Iterator[Metric]:
        with self._lock:
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
        names = ("version", "driver", "port_name", "vocab", "vocab_checksum")
        yield InfoMetricFamily("tokd", "what runs", value={n: now.info[n] for n in names})
        yield _gauge("tokd_serving", "0: it is draining", now.info["state"] == "serving")
        yield _gauge("tokd_uptime_seconds", "since its start", now.info["uptime_s"])
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
        for name in now.counters[0]:
            if name.startswith("cycles_"):
                continue  # ACCOUNTS has them in seconds
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


def _only_metrics(metrics: WSGIApplication) -> WSGIApplication:
    """404 for other paths; prometheus_client's own app answers any path with metrics."""

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return metrics(environ, start_response)
        status = "200 OK" if path == "/" else "404 Not Found"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [b"tokd-exporter: the metrics are at /metrics\n"]

    return app


def main(arguments: list[str] | None = None) -> int:
    parser = cli.parser(
        "tokd-exporter",
        "Serves the telemetry of a dpdk-tokd on this host to Prometheus, by HTTP.",
        " doc/reference/telemetry.md lists the metrics.",
    )
    parser.add_argument(
        "--listen",
        type=_listen,
        default=LISTEN,
        metavar="ADDR:PORT",
        help="where to serve /metrics (default %(default)s, this host only)",
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(format="tokd-exporter: %(message)s", level=logging.INFO)

    address, port = options.listen
    registry = CollectorRegistry()
    registry.register(TokdCollector(options.file_prefix))
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    try:
        server, thread = start_http_server(port, address, registry)
        metrics = server.get_app()
        assert metrics is not None  # start_http_server has set it
        server.set_app(_only_metrics(metrics))
    except OSError as e:
        print(
            f"tokd-exporter: --listen {address}:{port}: {e.strerror or e}: "
            "give an address of this host and a free port",
            file=sys.stderr,
        )
        return 1
    shown = f"[{address}]" if ":" in address else address
    log.info("http://%s:%d/metrics", shown, server.server_port)
    done.wait()
    server.shutdown()
    thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
