# SPDX-License-Identifier: BSD-3-Clause
"""What /metrics tells Prometheus. Labels are paths, statuses and models, never a client's data."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from threading import Lock

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from .models import Models

MEDIA = b"text/plain; version=0.0.4; charset=utf-8"

# Upper bounds in seconds: a short request takes some 20 us, 16 MB a second.
BOUNDS = (*(n * 10.0**e for e in range(-5, 1) for n in (1, 2, 5)), 10.0)


class Metrics(Collector):
    """Counts requests, from any thread.

    in_progress: how many are, now. Tokens are counted by the models.
    """

    def __init__(self, models: Models, in_progress: Callable[[], int]) -> None:
        self._models, self._in_progress = models, in_progress
        self._lock = Lock()
        self._requests: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._took: dict[str, list[int]] = {}  # by path: requests by bound, the last of none
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._bytes_in = self._bytes_out = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def count(self, path: str, status: str, seconds: float, bytes_in: int, bytes_out: int) -> None:
        with self._lock:
            self._requests[path, status] += 1
            took = self._took.get(path)
            if took is None:
                took = self._took[path] = [0] * (len(BOUNDS) + 1)
            took[bisect_left(BOUNDS, seconds)] += 1
            self._seconds[path] += seconds
            self._bytes_in += bytes_in
            self._bytes_out += bytes_out

    def page(self) -> bytes:
        with self._lock:
            return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "tokd_gateway_requests",
            'answered; status 499: the client hung up; path "other": none of the gateway\'s',
            labels=["path", "status"],
        )
        for (path, status), n in self._requests.items():
            requests.add_metric([path, status], n)
        yield requests
        seconds = HistogramMetricFamily(
            "tokd_gateway_request_seconds",
            "from a request's head to its answer, the body's arrival included",
            labels=["path"],
        )
        for path, took in self._took.items():
            buckets, below = [], 0
            for bound, n in zip((*map("{:g}".format, BOUNDS), "+Inf"), took, strict=True):
                below += n
                buckets.append((bound, float(below)))
            seconds.add_metric([path], buckets, self._seconds[path])
        yield seconds
        yield GaugeMetricFamily(
            "tokd_gateway_requests_in_progress",
            "whose body arrives or is worked on",
            value=self._in_progress(),
        )
        tokens = CounterMetricFamily("tokd_gateway_tokens", "made or decoded", labels=["model"])
        for model in self._models.by_name.values():
            tokens.add_metric([model.name], model.tokens)
        yield tokens
        size = CounterMetricFamily("tokd_gateway_bytes", "of bodies", labels=["direction"])
        size.add_metric(["in"], self._bytes_in)
        size.add_metric(["out"], self._bytes_out)
        yield size
