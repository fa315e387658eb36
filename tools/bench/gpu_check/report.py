# SPDX-License-Identifier: BSD-3-Clause
"""gpu-check.json and gpu-check.md: both whole at every moment, whatever ends the program."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

Report = dict[str, Any]
CPU = "logic on CPU: threads in place of a GPU; no figure here is a GPU's"


def replaced(path: Path, text: str) -> None:
    """The file has its old text or its new one, and never a part of it."""
    half = path.with_name(f".{path.name}.half")
    with half.open("w", encoding="utf-8") as to:
        to.write(text)
        to.flush()
        os.fsync(to.fileno())
    half.replace(path)


def begin(folder: Path) -> None:
    """The folder can be written, and what an earlier run left there keeps its time in its name."""
    folder.mkdir(parents=True, exist_ok=True)
    replaced(folder / "gpu-check.begun", "")
    (folder / "gpu-check.begun").unlink()
    for old in (folder / "gpu-check.json", folder / "gpu-check.md"):
        if old.exists():
            when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(old.stat().st_mtime))
            old.replace(folder / f"{old.stem}-{when}{old.suffix}")


def write(folder: Path, report: Report) -> None:
    replaced(folder / "gpu-check.json", json.dumps(report, indent=1) + "\n")
    replaced(folder / "gpu-check.md", markdown(report))


def number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def figure_row(figure: dict[str, Any]) -> str:
    cells = [figure["what"], figure.get("ring", "-"), figure.get("clock", "-")]
    cells += [number(figure.get(name)) for name in ("n", "p50", "p90", "p99", "max")]
    return f"| {' | '.join(cells)} | {figure.get('note', '')} |"


def figure_lines(part: dict[str, Any]) -> list[str]:
    timed = [figure for figure in part["figures"] if "p50" in figure]
    rates = [figure for figure in part["figures"] if "p50" not in figure]
    lines = []
    if timed:
        lines += ["", "| microseconds | ring | clock | samples | p50 | p90 | p99 | max | |"]
        lines += ["|---|---|---|---:|---:|---:|---:|---:|---|", *map(figure_row, timed)]
    if rates:
        lines += ["", "| | ring | value | unit | |", "|---|---|---:|---|---|"]
        lines += [
            f"| {f['what']} | {f.get('ring', '-')} | {number(f['value'])} | {f['unit']} | {f.get('note', '')} |"
            for f in rates
        ]
    return lines


def quoted(text: str) -> list[str]:
    return ["```", text.replace("```", "'''"), "```"]


def part_lines(part: dict[str, Any]) -> list[str]:
    state = part["state"] + (f": {part['why']}" if part.get("why") else "")
    lines = [
        "",
        f"## {part['phase']}: {part['title']}",
        "",
        f"**{state}** ({part['seconds']:.1f} s)",
    ]
    if part["facts"]:
        lines += ["", "| | |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in part["facts"].items()]
    lines += figure_lines(part)
    for title, key in (("Right", "right"), ("Not run", "skipped")):
        if part[key]:
            lines += ["", f"{title}:", "", *(f"- {text}" for text in part[key])]
    for text in part["wrong"]:
        lines += ["", "**WRONG**", "", *quoted(text)]
    for name, text in part.get("logs", {}).items():
        if text:
            lines += ["", f"The end of {name}:", "", *quoted(text)]
    return lines


def markdown(report: Report) -> str:
    lines = [
        "# gpu-check",
        "",
        f"{report['state']}. Device: {report['device']}. {report['started']}.",
    ]
    if report["device"] == "cpu":
        lines += ["", f"**{CPU}**"]
    lines += [
        "",
        f"Seed: {report['seed']}. Command: `{report['command']}`. Build: {report['build']}.",
    ]
    if report["parts"]:
        lines += ["", "| part | result | seconds |", "|---|---|---:|"]
        lines += [
            f"| {part['phase']}: {part['title']} | {part['state']} | {part['seconds']:.1f} |"
            for part in report["parts"]
        ]
    for part in report["parts"]:
        lines += part_lines(part)
    lines += ["", "Times are by nearest rank; below 1,000 samples no p99 is given."]
    return "\n".join(lines) + "\n"
