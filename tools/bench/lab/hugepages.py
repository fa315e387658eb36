# SPDX-License-Identifier: BSD-3-Clause
"""Reserves huge pages while a benchmark runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.log import log

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
WANTED = 256  # 2 MB each: enough for mbufs, tables and token ring of one worker


def _read(name: str) -> int:
    return int((POOL / name).read_text())


@contextmanager
def hugepages() -> Iterator[bool]:
    """Yields whether WANTED pages are free; restores the size of the pool afterwards."""
    try:
        before = _read("nr_hugepages")
        total = before + max(0, WANTED - _read("free_hugepages"))
        (POOL / "nr_hugepages").write_text(str(total))
    except OSError as error:
        log(f"no huge pages, going without (--no-huge): {error}")
        yield False
        return
    try:
        got = _read("free_hugepages")
        if got < WANTED:
            log(
                f"{got} of {WANTED} huge pages, memory is too fragmented or too full: going "
                "without (--no-huge)"
            )
        else:
            log(f"{WANTED} huge pages of 2 MB free, {total - before} of them reserved for this")
        yield got >= WANTED
    finally:
        (POOL / "nr_hugepages").write_text(str(before))
