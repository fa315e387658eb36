# SPDX-License-Identifier: BSD-3-Clause
"""Lists of CPUs, as the kernel writes them: 0,2-4."""

from __future__ import annotations

import re

CPUS_MAX = 4096


class BadList(ValueError):
    """Not a list of CPUs."""


def parse(text: str) -> frozenset[int]:
    """The CPUs of "1-4,7"; of "" none. Raises BadList."""
    cpus: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part.strip())
        if not match:
            found = f", found {part!r}" if part != text else ""
            raise BadList(f"{text!r}: expected CPUs like 1-4 or 1,3-5{found}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last >= CPUS_MAX:
            raise BadList(f"{text!r}: {part!r} is no range of CPUs below {CPUS_MAX}")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def show(cpus: frozenset[int] | set[int]) -> str:
    """The shortest list: {1, 2, 3, 7} is "1-3,7"."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def parse_mask(text: str) -> frozenset[int]:
    """The CPUs of a mask such as "e1" or "00000001,000000e1". Raises BadList."""
    digits = text.strip().replace(",", "").removeprefix("0x")
    if not re.fullmatch(rf"[0-9a-fA-F]{{1,{CPUS_MAX // 4}}}", digits):
        raise BadList(f"{text!r}: expected a mask of CPUs like 000000e1")
    value = int(digits, 16)
    return frozenset(cpu for cpu in range(value.bit_length()) if value >> cpu & 1)


def mask(cpus: frozenset[int] | set[int]) -> str:
    """In the format of /proc/irq/default_smp_affinity: words of 32 bits, the highest first."""
    value = sum(1 << cpu for cpu in cpus)
    words: list[str] = []
    while value or not words:
        words.append(f"{value & 0xFFFFFFFF:08x}")
        value >>= 32
    return ",".join(reversed(words))
