# SPDX-License-Identifier: BSD-3-Clause
"""From what is known of a machine to what it means. Asks nothing: data in, data out."""

from __future__ import annotations

from dataclasses import dataclass

from .findings import Finding, judge_findings
from .gids import Chosen, NoneChosen, choose
from .machine import Machine
from .ways import Paths, Sizes, judge_ways


@dataclass
class Verdict:
    role: str  # producer, agent
    role_why: str
    chosen: Chosen | NoneChosen
    paths: list[Paths]  # in the order of the GPUs; one at least
    findings: list[Finding]

    @property
    def best(self) -> Paths:
        """The first of those whose path taken is best."""
        return min(self.paths, key=lambda p: p.taken)

    def is_good(self, want: str | None) -> bool:
        """Would the path asked for work; or if none was, is there no problem?"""
        if want:
            return any(w.kind == want and w.works != "no" for p in self.paths for w in p.ways)
        return not any(finding.problem for finding in self.findings)


def judge(m: Machine, sizes: Sizes, role: str | None = None) -> Verdict:
    why = "as asked"
    if role is None:
        role, why = "producer", "no GPU here; with verbs it is in another machine"
        if m.gpus:
            role, why = "agent", "there is a GPU here"
    chosen = choose(m)
    paths = judge_ways(m, chosen, sizes, role)
    return Verdict(role, why, chosen, paths, judge_findings(m, chosen, sizes, role, paths))
