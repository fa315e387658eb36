# SPDX-License-Identifier: BSD-3-Clause
"""tokd-exporter as Prometheus sees it, in front of a dpdk-tokd that comes and goes."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from bench.programs import ROOT

parser = pytest.importorskip("prometheus_client.parser", reason="run tools/setup")

TEXTS = 40
EXPORTER = ROOT / "tools/tokd-exporter"
PREFIX = f"tokd-exporter-{os.getpid()}"


class Exporter:
    """A running tokd-exporter on a free port."""

    def __init__(self, prefix: str) -> None:
        self.process = subprocess.Popen(
            [EXPORTER, "--file-prefix", prefix, "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://\S+/metrics", line)
        assert found, line + self.process.stderr.read()
        self.url = found[0]

    def scrape(self) -> dict[tuple, float]:
        """(name, worker) and value of each sample that is no bucket; of drops, (name, reason)."""
        self.families = list(self._families())
        samples = {}
        for family in self.families:
            assert family.documentation, family.name
            for s in family.samples:
                assert set(s.labels) <= {"worker", "le", "reason"} or s.name == "tokd_info", s
                if "le" not in s.labels:
                    samples[s.name, s.labels.get("reason", s.labels.get("worker"))] = s.value
        return samples

    def _families(self) -> Iterator:
        with urllib.request.urlopen(self.url, timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            return parser.text_string_to_metric_families(answer.read().decode())

    def buckets(self, stage: str) -> list[tuple[float, float]]:
        family = next(f for f in self.families if f.name == f"tokd_{stage}_seconds")
        assert family.type == "histogram"
        return [(float(s.labels["le"]), s.value) for s in family.samples if "le" in s.labels]


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    one = Exporter(PREFIX)
    yield one
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(10) == 0


def test_a_scrape_has_what_the_appliance_counted(start_replay, exporter: Exporter) -> None:
    appliance = start_replay(TEXTS, prefix=PREFIX)
    appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["streams_done"] == TEXTS)
    got = exporter.scrape()
    assert got["tokd_up", None] == 1
    assert got["tokd_exporter_scrape_errors_total", None] == 0
    for name, value in appliance.telemetry("/tokd/counters").items():
        if name.startswith(("readers_", "taps_")):
            assert got[f"tokd_{name}_total", None] == value, name
        elif name.startswith("drop_"):
            assert got["tokd_drops_total", name.removeprefix("drop_")] == value, name
        elif not name.startswith("cycles_"):
            assert got[f"tokd_{name}_total", "0"] == value, name
    assert got["tokd_port_rx_packets_total", None] == TEXTS
    assert got["tokd_ring_size_bytes", "0"] == 16 << 20
    assert got["tokd_serving", None] == got["tokd_port_link_up", None] == 1
    seconds = [
        got[f"tokd_worker_{kind}_seconds_total", "0"] for kind in ("busy", "backpressured", "idle")
    ]
    assert 0 < sum(seconds) < 600 and seconds[0] > 0
    for stage, told in appliance.telemetry("/tokd/histograms").items():
        buckets = exporter.buckets(stage)
        # No ids came; there is no sink.
        if stage in ("ids_to_text", "decoder", "text_to_first_token", "posted_to_done"):
            assert buckets[-1] == (float("inf"), 0)
            continue
        assert [le for le, _ in buckets[:4]] == [1e-6, 2e-6, 5e-6, 1e-5]
        assert buckets[-1] == (float("inf"), TEXTS)
        counts = [n for _, n in buckets]
        assert counts == sorted(counts)
        name = f"tokd_{stage}_seconds"
        assert got[f"{name}_count", "0"] == TEXTS
        assert got[f"{name}_sum", "0"] == pytest.approx(told["sum_ns"] / 1e9)
        # The median lies where telemetry says, to the width of its bucket.
        below = max((n for le, n in buckets if le < told["p50_ns"] / 1e9 / 1.07), default=0)
        above = min(n for le, n in buckets if le >= told["p50_ns"] / 1e9)
        assert below <= TEXTS / 2 <= above, stage
    described = {f.name: f.documentation for f in exporter.families}
    assert described["tokd_ids"] == "token ids published"


def test_metrics_are_those_of_the_document(start_replay, exporter: Exporter) -> None:
    appliance = start_replay(1, prefix=PREFIX)
    exporter.scrape()
    document = (ROOT / "doc/reference/telemetry.md").read_text()
    counters = appliance.telemetry("/tokd/counters")
    for family in exporter.families:
        if family.name.removeprefix("tokd_") not in counters:  # those are in a table of their own
            shown = family.name + ("_total" if family.type == "counter" else "")
            assert f"`{shown}`" in document, shown


def test_readers_and_taps_are_counted_apart(start_replay, exporter, tmp_path: Path) -> None:
    start_replay(1, prefix=PREFIX)
    RingReader = pytest.importorskip("dpdk_tokd").RingReader
    path = tmp_path / "socket"
    with RingReader(path), RingReader(path, tap=True), RingReader(path, tap=True):
        got = exporter.scrape()
        assert (got["tokd_readers", None], got["tokd_taps", None]) == (1, 2)


def test_an_appliance_that_is_away_is_up_0_and_comes_back(start_replay, exporter) -> None:
    got = exporter.scrape()
    assert got["tokd_up", None] == 0
    assert got["tokd_exporter_scrape_errors_total", None] == 1
    assert not any(name.startswith("tokd_rx_") for name, _ in got)
    appliance = start_replay(TEXTS, prefix=PREFIX)
    appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["streams_done"] == TEXTS)
    got = exporter.scrape()
    assert got["tokd_up", None] == 1
    assert got["tokd_streams_done_total", "0"] == TEXTS
    assert appliance.stop(signal.SIGKILL) == -signal.SIGKILL  # its socket stays
    got = exporter.scrape()
    assert got["tokd_up", None] == 0
    assert got["tokd_exporter_scrape_errors_total", None] == 2
    again = start_replay(3, prefix=PREFIX)
    again.wait_until(lambda: again.telemetry("/tokd/counters")["streams_done"] == 3)
    got = exporter.scrape()
    assert got["tokd_up", None] == 1
    assert got["tokd_streams_done_total", "0"] == 3  # from 0 again


def test_an_appliance_that_hangs_is_up_0(start_replay, exporter: Exporter) -> None:
    appliance = start_replay(1, prefix=PREFIX)
    appliance.pause()
    begun = time.monotonic()
    assert exporter.scrape()["tokd_up", None] == 0
    assert time.monotonic() - begun < 9  # Prometheus waits 10 s
    appliance.go_on()
    appliance.wait_until(lambda: exporter.scrape()["tokd_up", None] == 1)


def test_only_metrics_is_metrics(exporter: Exporter) -> None:
    base = exporter.url.removesuffix("/metrics")
    for path in ("/x", "/metrics/", "/metrics2", "/favicon.ico"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(base + path, timeout=30)
        assert caught.value.code == 404, path
        assert caught.value.read().startswith(b"tokd-exporter: /metrics, ")
    with urllib.request.urlopen(base + "/", timeout=30) as answer:
        assert b"/metrics" in answer.read()
    with urllib.request.urlopen(exporter.url + "?x=1", timeout=30) as answer:
        assert b"tokd_up 0.0" in answer.read()


def get(exporter: Exporter, path: str) -> tuple[int, str]:
    try:
        answer = urllib.request.urlopen(exporter.url.replace("/metrics", path), timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.read().decode().strip()


def test_health_is_live_ready_and_draining(start, gpt2_file, exporter, tmp_path: Path) -> None:
    code, why = get(exporter, "/health")
    assert code == get(exporter, "/ready")[0] == 503 and "no such socket" in why
    frames = pytest.importorskip("bench.texts.frames", reason="pip install ./python")
    half = tmp_path / "half.pcap"
    frames.write_pcap(half, [frames.text_frame(1, b"it never ends", last=False)])
    times = ["--drain", "600000", "--stream-timeout", "600000"]
    own = ["--vocab", str(gpt2_file), *times]
    appliance = start(*own, eal=[f"--vdev=net_pcap0,rx_pcap={half}"], prefix=PREFIX).ready()
    appliance.wait_until(lambda: appliance.telemetry("/tokd/counters")["streams_opened"] == 1)
    assert get(exporter, "/health") == get(exporter, "/ready") == (200, "serving")
    appliance.send_signal(signal.SIGTERM)
    appliance.wait_until(lambda: get(exporter, "/ready") == (503, "draining"))
    assert get(exporter, "/health") == (200, "draining")


def test_reloads_are_counted(start, gpt2_file, exporter, tmp_path: Path) -> None:
    config = tmp_path / "tokd.conf"
    config.write_text(f"[tokd]\nvocab = {gpt2_file}\n")
    appliance = start("--config", str(config), eal=["--vdev=net_null0"], prefix=PREFIX).ready()
    for text, name in (("max-text = 1M", "reloads"), ("max-text = x", "reloads_failed")):
        assert exporter.scrape()[f"tokd_{name}_total", None] == 0
        config.write_text(f"[tokd]\nvocab = {gpt2_file}\n{text}\n")
        appliance.send_signal(signal.SIGHUP)
        appliance.wait_until(lambda name=name: appliance.telemetry("/tokd/info")[name] == 1)
        assert exporter.scrape()[f"tokd_{name}_total", None] == 1


def test_half_requests_keep_nobody_out(exporter: Exporter) -> None:
    """Many scrapers that send half of a request, or take nothing of the answer."""
    where = re.search(r"//([\d.]+):(\d+)/", exporter.url)
    assert where is not None
    address = where[1], int(where[2])
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(address)) for _ in range(200)]
        for i, one in enumerate(slow):
            one.settimeout(30)
            with suppress(ConnectionError):  # displaced already
                one.send(b"GET /metrics HTTP/1.1\r\n" + (b"\r\n" if i % 2 else b"x: "))
        assert exporter.scrape()["tokd_up", None] == 0
        with suppress(ConnectionError):
            assert slow[0].recv(1) == b""  # the oldest gave way
        threads = Path(f"/proc/{exporter.process.pid}/task")
        assert len(list(threads.iterdir())) < 10
    with socket.create_connection(address) as one:
        one.send(b"GET /" + b"x" * 100_000 + b"\r\n\r\n")
        with suppress(ConnectionError):
            assert one.recv(1) == b""


@pytest.mark.parametrize(
    ("request_line", "status"), [(b"POST /metrics", 405), (b"nonsense", 405), (b"HEAD /", 200)]
)
def test_only_reading_is_answered(exporter: Exporter, request_line: bytes, status: int) -> None:
    where = exporter.url.removeprefix("http://").removesuffix("/metrics").split(":")
    with socket.create_connection((where[0], int(where[1]))) as one:
        one.sendall(request_line + b" HTTP/1.1\r\n\r\n")
        assert one.makefile("rb").readline().split()[1] == str(status).encode()


def expressions(rules: str, dashboard: str) -> list[str]:
    yaml = pytest.importorskip("yaml")
    groups = yaml.safe_load(rules)["groups"]
    panels = json.loads(dashboard)["panels"]
    found = [rule["expr"] for group in groups for rule in group["rules"]]
    return found + [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_rules_and_dashboard_ask_for_what_there_is(start_replay, exporter: Exporter) -> None:
    start_replay(1, prefix=PREFIX)
    exporter.scrape()
    folder = ROOT / "config/monitoring"
    asked = expressions(*((folder / n).read_text() for n in ("rules.yml", "dashboard.json")))
    assert len(asked) > 20
    samples = [s for family in exporter.families for s in family.samples]
    names = {s.name for s in samples}
    reasons = {s.labels["reason"] for s in samples if "reason" in s.labels}
    for text in asked:
        metrics = re.findall(r"\btokd_\w+", text)
        assert metrics and set(metrics) <= names, text
        assert text.count("(") == text.count(")") and text.count("{") == text.count("}"), text
        for wanted in re.findall(r'reason=~?"([^"]*)"', text):
            assert set(wanted.split("|")) <= reasons, text


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EXPORTER, *arguments], capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    "bad", ["x", "9477", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", ":-1"]
)
def test_a_wrong_address_is_told_with_a_right_one(bad: str) -> None:
    done = run(f"--listen={bad}")
    assert done.returncode == 2
    assert "expected ADDR:PORT" in done.stderr and "127.0.0.1:9477" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_address_that_is_taken_is_named(exporter: Exporter) -> None:
    taken = exporter.url.removeprefix("http://").removesuffix("/metrics")
    done = run("--listen", taken)
    assert done.returncode == 1
    assert f"--listen {taken}: Address already in use" in done.stderr
    assert done.stderr.count("\n") == 1
    done = run("--listen", "192.0.2.77:1")
    assert done.returncode == 1 and "Traceback" not in done.stderr


def test_help_and_version() -> None:
    assert "--file-prefix" in run("--help").stdout
    assert re.fullmatch(r"tokd-exporter \d+\.\d+\.\d+\n", run("--version").stdout)
    assert Path(ROOT / "build/venv/bin/tokd-exporter").is_file()  # as pip installs it
