# SPDX-License-Identifier: BSD-3-Clause
"""Progress and remaining time of a sweep: a bar on a terminal, else a line now and then."""

import sys
import time
from collections import defaultdict

WIDTH = 24
LINE_EVERY_S = 20.0


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    """Remaining trials by task; trials of a task take about equally long."""

    def __init__(self, left: dict[str, int], done: int) -> None:
        self._left = dict(left)
        self._done, self._all = done, done + sum(left.values())
        self._took: dict[str, list[float]] = defaultdict(list)
        self._shown = 0.0
        self._bar = sys.stderr.isatty()

    def left_s(self) -> float | None:
        """None before the first trial."""
        every = [s for took in self._took.values() for s in took]
        if not every:
            return None
        usual = sum(every) / len(every)
        return sum(
            n * (sum(self._took[t]) / len(self._took[t]) if self._took[t] else usual)
            for t, n in self._left.items()
        )

    def ended(self, task: str, seconds: float) -> None:
        self._left[task] -= 1
        self._took[task].append(seconds)
        self._done += 1

    def show(self, what: str) -> None:
        left = self.left_s()
        rest = f"{clock(left)} left" if left is not None else "time left not known yet"
        line = f"{self._done}/{self._all}, {rest}: {what}"
        if self._bar:
            full = WIDTH * self._done // max(1, self._all)
            print(
                f"\r\033[K[{'#' * full}{'.' * (WIDTH - full)}] {line[:100]}",
                end="",
                file=sys.stderr,
            )
        elif time.monotonic() - self._shown > LINE_EVERY_S:
            self._shown = time.monotonic()
            print(f"sweep: {line}", file=sys.stderr)
        sys.stderr.flush()

    def log(self, text: str) -> None:
        """Print a line that stays."""
        start = "\r\033[K" if self._bar else ""
        print(f"{start}sweep: {text}", file=sys.stderr, flush=True)
