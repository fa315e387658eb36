# SPDX-License-Identifier: BSD-3-Clause
"""tokd-top: shows a running dpdk-tokd live in the terminal (doc/reference/telemetry.md)."""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import sys
import termios
import textwrap
import time
import tty
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Self

from . import cli
from .telemetry import Histogram, Snapshot, Telemetry, TelemetryError

STAGE = "wire_to_ring"
RATES = ("rx_packets", "streams_done", "ids", "text_bytes")
TX_DROPS = ("tx_full", "tx_no_mbuf")  # beside drop_...
BAR = 8  # characters: a row has 79
SINCE = ("rx_packets", "packets"), ("streams_done", "texts"), ("ids", "ids")
INTERVAL_LEAST_S = 0.1
INTERVAL_MOST_S = 3600.0

ENTER = "\x1b[?1049h\x1b[?25l"  # the alternate screen, no cursor
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, LINE_END, SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"
RED, GREEN, YELLOW, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def human(n: float) -> str:
    """At most six characters: 950, 1.2k, 34.5M."""
    for unit in ("", "k", "M", "G", "T"):
        if n < 999.5:
            return f"{n:.0f}{unit}" if unit == "" or n >= 99.95 else f"{n:.1f}{unit}"
        n /= 1000
    return f"{n:.0f}P"


def microseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    us = seconds * 1e6
    return f"{us:.1f}" if us < 1000 else f"{human(us / 1000)}ms"


def bar(busy: float, backpressured: float) -> str:
    """Shares of 1 as `#` busy, `!` backpressured, `.` idle. A share above 0
    has at least one character."""
    n_full = max(round(backpressured * BAR), 1 if backpressured > 0 else 0)
    n_busy = min(max(round(busy * BAR), 1 if busy > 0 else 0), BAR - n_full)
    return "#" * n_busy + "!" * n_full + "." * (BAR - n_busy - n_full)


class _Change:
    """The difference between two snapshots; without an earlier one, since the start."""

    def __init__(self, now: Snapshot, before: Snapshot | None) -> None:
        if before is not None and (
            before.info["instance"] != now.info["instance"] or before.time_s >= now.time_s
        ):
            before = None  # restarted
        self.now, self.before = now, before
        if before is None:
            self.seconds = max(float(now.info["uptime_s"]), 1.0)
        else:
            self.seconds = now.time_s - before.time_s

    def count(self, name: str, worker: int) -> int:
        then = self.before.counters[worker].get(name, 0) if self.before else 0
        return self.now.counters[worker].get(name, 0) - then

    def rate(self, name: str, workers: Sequence[int]) -> float:
        return sum(self.count(name, w) for w in workers) / self.seconds

    def total(self, name: str) -> int:
        """Since the start, of all workers."""
        return sum(counters.get(name, 0) for counters in self.now.counters)

    def shares(self, workers: Sequence[int]) -> tuple[float, float]:
        """Of their time, busy and backpressured; 0 if they do not run."""
        kinds = ("busy", "backpressured", "idle")
        cycles = [sum(self.now.workers[w][k] for w in workers) for k in kinds]
        if self.before:
            then = self.before.workers
            cycles = [
                c - sum(then[w][k] for w in workers) for c, k in zip(cycles, kinds, strict=True)
            ]
        total = max(sum(cycles), 1)
        return cycles[0] / total, cycles[1] / total

    def times(self, workers: Sequence[int]) -> Histogram:
        of = self.now.histograms[STAGE]
        if self.before:
            then = self.before.histograms[STAGE]
            of = [now.since(one) for now, one in zip(of, then, strict=True)]
        counts = zip(*(of[w].counts for w in workers), strict=True)
        return replace(of[0], counts=tuple(map(sum, counts)))

    def port(self, name: str) -> float:
        then = self.before.port.get(name, 0) if self.before else 0
        return (self.now.port.get(name, 0) - then) / self.seconds


def frame(now: Snapshot, before: Snapshot | None) -> list[str]:
    """The lines of one frame: what happened between the snapshots."""
    change = _Change(now, before)
    info = now.info
    up = info["uptime_s"]
    span = f"last {change.seconds:.1f} s" if change.before else "since its start"
    workers = range(len(now.workers))
    lines = [
        (
            f"dpdk-tokd {info['version']}  {info['state']}  up {up // 3600}:{up // 60 % 60:02}:"
            f"{up % 60:02}  {span}"
        ),
        (
            f"{info['port_name']} ({info['driver']}), link {info['link']}  "
            f"{info['vocab'].rpartition('/')[2][-20:]} "
            f"({info['vocab_checksum']})"
        ),
        "",
        (
            f"{'wkr':>3} {'cpu':>3} {'load':<{BAR}} {'busy':>4} {'bkpr':>4} {'pkts/s':>6} "
            f"{'text/s':>6} {'ids/s':>6} {'B/s':>6} {'p50 us':>6} {'p99 us':>6} {'open':>5} {'ring':>4}"
        ),
        *(_row(change, str(w), str(now.workers[w]["lcore"]), [w]) for w in workers),
        _row(change, "all", "", workers),
        "since its start: "
        + ", ".join(f"{human(change.total(name))} {text}" for name, text in SINCE),
        "",
        f"port: {human(change.port('ipackets'))} rx/s, {human(change.port('opackets'))} tx/s",
    ]
    for name, text in (("imissed", "missed"), ("rx_nombuf", "without an mbuf")):
        if change.port(name) > 0:
            lines[-1] += f", {human(change.port(name))} {text}/s"
    return lines + _drops(change) + _readers(now) + _sinks(change)


def _row(change: _Change, name: str, cpu: str, workers: Sequence[int]) -> str:
    """Of one worker, or of all: at most 80 columns."""
    busy, backpressured = change.shares(workers)
    times = change.times(workers)
    of = [change.now.workers[w] for w in workers]
    held = max(w["ring_held"] / max(w["ring_bytes"], 1) for w in of)
    rates = (human(change.rate(n, workers)) for n in RATES)
    percentiles = (microseconds(times.percentile(share)) for share in (0.5, 0.99))
    return (
        f"{name:>3} {cpu:>3} {bar(busy, backpressured)} {busy:>4.0%} {backpressured:>4.0%} "
        + " ".join(f"{text:>6}" for text in (*rates, *percentiles))
        + f" {sum(w['open_streams'] for w in of):>5} {held:>4.0%}"
    )


def _drops(change: _Change) -> list[str]:
    """Drop counters that rise, the most frequent first, else the three highest; all so far."""
    workers = range(len(change.now.workers))
    names = [n for n in change.now.counters[0] if n.startswith("drop_") or n in TX_DROPS]
    rising = {n: change.rate(n, workers) for n in names}
    shown = sorted((n for n in names if rising[n] > 0), key=lambda n: -rising[n])
    if not shown:
        shown = sorted((n for n in names if change.total(n)), key=lambda n: -change.total(n))[:3]
    return [
        f"drops: {human(sum(rising.values()))}/s, {human(sum(map(change.total, names)))} since its start",
        *(f"  {n:<20} {human(rising[n]):>6}/s {human(change.total(n)):>6}" for n in shown),
    ]


def paint(line: str) -> str:
    """With colours: drops and a lost link are red, backpressure is yellow, work is green."""
    if re.match(r"  (drop|tx)_", line) or ", link down " in line:
        return f"{RED}{line}{PLAIN}"
    bars = re.match(r"( *\w+ +\d* +)(#*)(!*)(\.*)(?= +\d+%)", line)
    if bars is None:
        return line
    before, busy, full, idle = bars.groups()
    return f"{before}{GREEN}{busy}{YELLOW}{full}{PLAIN}{idle}{line[bars.end() :]}"


def _has_colour() -> bool:
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )


def _readers(now: Snapshot) -> list[str]:
    if not now.readers:
        return ["readers: none"]
    lines = [f"readers: {'slot':>4} {'state':<8} {'pid':>8} {'lag bytes':>10} {'worker':>6}"]
    for slot, r in sorted(now.readers.items()):
        lines.append(
            f"         {slot:>4} {r.get('state', '-'):<8} {r['pid']:>8} "
            f"{r.get('lag_bytes', '-'):>10} {r.get('lag_worker', '-'):>6}"
        )
    return lines


def _sinks(change: _Change) -> list[str]:
    states = change.now.sinks
    if not states:
        return []
    workers = range(len(states))
    slots, ids = (human(change.rate(f"sink_{name}", workers)) for name in ("slots", "tokens"))
    shed, failed = (human(change.total(f"sink_{name}")) for name in ("shed", "failed"))
    counts = (f"{states.count(state)} {state}" for state in sorted(set(states)))
    line = f"GPU sinks: {', '.join(counts)}; {slots} slots/s, {ids} ids/s; "
    return [f"{line}{shed} shed, {failed} failed since the start"]


def take(file_prefix: str) -> Snapshot:
    with Telemetry(file_prefix) as t:
        return t.snapshot((STAGE,))


class _Screen:
    """Takes over the terminal; leaving the context restores it."""

    def __init__(self) -> None:
        self._keys = sys.stdin.isatty()
        self._colour = _has_colour()
        self._saved = termios.tcgetattr(sys.stdin) if self._keys else None
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        self.ended = False

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_end)
        signal.signal(signal.SIGTSTP, self._on_suspend)
        signal.signal(signal.SIGWINCH, lambda *_: None)  # wakes wait()
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        self._give_back()
        os.close(self._wake)
        os.close(self._woken)

    def _take(self) -> None:
        if self._keys:
            tty.setcbreak(sys.stdin)
        self._write(ENTER)

    def _give_back(self) -> None:
        if self._saved is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved)
        self._write(LEAVE)

    @staticmethod
    def _write(text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:  # the terminal has gone: SIGHUP ends this
            pass

    def _on_end(self, number: int, where: FrameType | None) -> None:
        self.ended = True

    def _on_suspend(self, number: int, where: FrameType | None) -> None:
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()  # SIGCONT

    def show(self, lines: list[str]) -> None:
        """As much of `lines` as fits."""
        # Not shutil's, which prefers $COLUMNS even after the window has changed.
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        if len(lines) > rows:
            hidden = len(lines) - rows + 1
            lines = [*lines[: rows - 1], f"... {hidden} more lines: make the window higher"]
        lines = [s[:columns] for s in lines]
        if self._colour:
            lines = [paint(s) for s in lines]
        self._write(HOME + f"{LINE_END}\n".join(lines) + LINE_END + SCREEN_END)

    def wait(self, seconds: float) -> bool:
        """Until time is up, the window was resized (then True), or `q` or a signal ends it."""
        end = time.monotonic() + seconds
        while not self.ended and (left := end - time.monotonic()) > 0:
            watched = [self._wake, *([sys.stdin] if self._keys else [])]
            ready, _, _ = select.select(watched, [], [], left)
            if sys.stdin in ready:
                keys = os.read(sys.stdin.fileno(), 64)
                self.ended = not keys or b"q" in keys.lower()
            if self._wake in ready:
                os.read(self._wake, 4096)
                return True
        return False


def _live(file_prefix: str, interval: float) -> int:
    before: Snapshot | None = None
    with _Screen() as screen:
        while not screen.ended:
            try:
                now = take(file_prefix)
                lines = [*frame(now, before), "", "q quits"]
                before = now
            except TelemetryError as e:
                lines = [
                    *textwrap.wrap(str(e), 78),
                    "",
                    f"tried again every {interval:g} s; q quits",
                ]
                before = None
            screen.show(lines)
            next_at = time.monotonic() + interval
            while screen.wait(next_at - time.monotonic()):
                screen.show(lines)
    return 0


def _once(file_prefix: str, interval: float) -> int:
    try:
        before = take(file_prefix)
        time.sleep(interval)
        lines = frame(take(file_prefix), before)
    except TelemetryError as e:
        print(f"tokd-top: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    print("\n".join(map(paint, lines) if _has_colour() else lines))
    return 0


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not INTERVAL_LEAST_S <= seconds <= INTERVAL_MOST_S:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected {INTERVAL_LEAST_S:g} to {INTERVAL_MOST_S:g} seconds"
        )
    return seconds


def main(arguments: list[str] | None = None) -> int:
    parser = cli.parser("tokd-top", "Shows a dpdk-tokd of this host, live. q or Ctrl-C quits.")
    parser.add_argument(
        "--interval",
        type=_interval,
        default=1.0,
        metavar="SECONDS",
        help="time between frames (default %(default)s)",
    )
    parser.add_argument("--once", action="store_true", help="print one interval as text and exit")
    options = parser.parse_args(arguments)
    if options.once:
        return _once(options.file_prefix, options.interval)
    if not sys.stdout.isatty():
        print("tokd-top: standard output is not a terminal: give --once", file=sys.stderr)
        return 2
    return _live(options.file_prefix, options.interval)


if __name__ == "__main__":
    sys.exit(main())
