# SPDX-License-Identifier: BSD-3-Clause
"""The words that tokd-host owns on the kernel's command line."""

from __future__ import annotations

import re

from host import cpus
from host.plan import SIZES, Plan, present
from host.root import Root

CPU_KEYS = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity")
PAGE_KEYS = ("default_hugepagesz", "hugepagesz", "hugepages")
# Without these options the kernel ignores the word silently.
NEEDS = {
    "isolcpus": "CONFIG_CPU_ISOLATION",
    "nohz_full": "CONFIG_NO_HZ_FULL",
    "rcu_nocbs": "CONFIG_RCU_NOCB_CPU",
    "hugepages": "CONFIG_HUGETLBFS",
}


def _page_words(plan: Plan, release: str) -> list[str]:
    """default_hugepagesz first, then each hugepages after its own hugepagesz: the kernel reads them
    in order, and a count belongs to the size before it."""
    names = {kb: name for name, kb in SIZES.items()}
    words: list[str] = []
    for size in dict.fromkeys(p.size_kb for p in plan.pages):
        if not words:
            words.append(f"default_hugepagesz={names[size]}")
        same = [p for p in plan.pages if p.size_kb == size]
        count = (
            str(same[0].count)
            if same[0].node is None
            else ",".join(f"{p.node}:{p.count}" for p in same)
        )
        if same[0].node is not None and not takes_nodes(release):
            continue  # the kernel would read a count of 0; tokd-host.service reserves them later
        words += [f"hugepagesz={names[size]}", f"hugepages={count}"]
    return words


def takes_nodes(release: str) -> bool:
    """Counts per NUMA node on the kernel's command line: since Linux 5.16."""
    return _is_since(release, (5, 16))


def takes_managed_irq(release: str) -> bool:
    """isolcpus=managed_irq: since Linux 5.6. Older kernels ignore an isolcpus with an unknown
    flag."""
    return _is_since(release, (5, 6))


def _is_since(release: str, first: tuple[int, int]) -> bool:
    """True if the release is unknown."""
    number = re.match(r"(\d+)\.(\d+)", release)
    return not number or (int(number[1]), int(number[2])) >= first


def wanted(root: Root, plan: Plan, release: str, pages: bool = True) -> list[str]:
    """The words for this plan and kernel, in order. Without huge pages if something else reserves
    them."""
    words = []
    if plan.cores:
        cores = cpus.show(plan.cores)
        words = [
            f"isolcpus={'managed_irq,' if takes_managed_irq(release) else ''}domain,{cores}",
            f"nohz_full={cores}",
            f"rcu_nocbs={cores}",
            f"irqaffinity={cpus.show(present(root) - plan.cores)}",
        ]
    return words + (_page_words(plan, release) if pages else [])


def owned(words: list[str]) -> tuple[str, ...]:
    """Keys that are removed from existing settings before `words` are added."""
    keys = {word.partition("=")[0] for word in words}
    return tuple(key for group in (CPU_KEYS, PAGE_KEYS) if keys & set(group) for key in group)


def ours(line: str, keys: tuple[str, ...]) -> list[str]:
    """The words of a command line that have one of these keys, in order."""
    return [word for word in line.split() if word.partition("=")[0] in keys]
