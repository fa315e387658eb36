# SPDX-License-Identifier: BSD-3-Clause
"""From a Machine to a Verdict: pure data, no queries."""

from __future__ import annotations

from dataclasses import dataclass

from .findings import Finding, judge_findings
from .gids import Chosen, NoneChosen, choose
from .machine import Machine
from .paths import GpuPaths, Sizes, judge_paths


@dataclass
class Verdict:
    role: str  # producer, agent
    role_why: str
    chosen: Chosen | NoneChosen
    paths: list[GpuPaths]  # in the order of the GPUs; one at least
    findings: list[Finding]

    @property
    def best(self) -> GpuPaths:
        """The GPU with the best path; among equals the first."""
        return min(self.paths, key=lambda p: p.taken)

    def is_good(self, want: str | None) -> bool:
        """Would the wanted path work? Without one: is there no problem?"""
        if want:
            return any(w.kind == want and w.works != "no" for p in self.paths for w in p.paths)
        return not any(finding.problem for finding in self.findings)


def judge(m: Machine, sizes: Sizes, role: str | None = None) -> Verdict:
    why = "as asked"
    if role is None:
        role, why = "producer", "no GPU here; with verbs it is in another machine"
        if m.gpus:
            role, why = "agent", "there is a GPU here"
    chosen = choose(m)
    paths = judge_paths(m, chosen, sizes, role)
    return Verdict(role, why, chosen, paths, judge_findings(m, chosen, sizes, role, paths))
