# SPDX-License-Identifier: BSD-3-Clause
"""Compares two sweeps of the same box, cell by cell."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from bench.lab import machine
from bench.sweep import stats, table, words
from bench.sweep.store import StoreError

DIFFER = "counts differ"


def read(folder: Path) -> dict[str, Any]:
    path = folder / "results.json" if folder.is_dir() else folder
    try:
        summary = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: {error}: give a result folder of tools/sweep") from None
    if not isinstance(summary, dict) or "tables" not in summary:
        raise StoreError(f"{path}: no results of a sweep")
    return summary


def _rows(summary: dict[str, Any]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    return {row["test"]: (t, row) for t in summary["tables"] for row in t["rows"]}


def _unlike(names: list[str], a: dict[str, Any], b: dict[str, Any]) -> str:
    """The counts that differ, as A/B."""
    pairs = {name: [row["counts"].get(name, 0) for row in (a, b)] for name in names}
    return ", ".join(f"{n} {x:,}/{y:,}" for n, (x, y) in pairs.items() if x != y)


def _line(
    name: str, metric: dict[str, Any], a: dict[str, Any], b: dict[str, Any], lost: str
) -> list[str]:
    """`lost`: counts of requests without an answer, if they differ: then neither is better."""
    head = [name, f"{metric['name']}, {metric['unit']}"]
    for which, row in (("A", a), ("B", b)):
        if row["state"] != "done":
            return [*head, "-", "-", "-", f"{which} is {row['state']}: {row['reason']}"]
    cells = [row["cells"].get(metric["name"], {"refused": "not measured"}) for row in (a, b)]
    for which, cell in zip("AB", cells, strict=True):
        if "refused" in cell:
            return [*head, "-", "-", "-", f"{which} has none: {cell['refused']}"]
    one, other = cells
    ratio = f"{other['median'] / one['median']:.3f}" if one["median"] else "-"
    if lost:
        return [*head, words.spread(one), words.spread(other), "-", f"{DIFFER}: {lost}"]
    before, after = ([*cell["by_repeat"].values()] for cell in cells)
    verdict = stats.verdict(before, after, metric["better"])
    return [*head, words.spread(one), words.spread(other), ratio, verdict]


def _test(of: dict[str, Any], a: dict[str, Any], b: dict[str, Any]) -> list[list[str]]:
    """Lines of a test of the table `of`: its metrics, and counts that differ."""
    name = a["test"]
    lost = _unlike(of.get("unanswered", [*of["counts"]]), a, b)
    rows = [_line(name, metric, a, b, lost) for metric in of["metrics"]]
    if a["state"] != "done" or b["state"] != "done":
        return rows
    for count in of["counts"]:
        if _unlike([count], a, b):
            both = [f"{row['counts'].get(count, 0):,}" for row in (a, b)]
            rows.append([name, f"{count}, counted", *both, "-", DIFFER])
    return rows


def _whole(which: str, summary: dict[str, Any]) -> str:
    repeats = f"{summary['repeats']} repeats{', --quick' if summary['quick'] else ''}"
    return f"{which}: {repeats}, {'finished' if summary['finished'] else 'NOT FINISHED'}"


def compare(a: dict[str, Any], b: dict[str, Any]) -> str:
    """B against A as text; says where one of them has no figure."""
    ours, theirs = _rows(a), _rows(b)
    rows = [["test", "metric", "A", "B", "B/A", "B is"]]
    for name in [*ours, *(n for n in theirs if n not in ours)]:
        if name not in ours or name not in theirs:
            rows.append(
                [name, "-", "-", "-", "-", f"missing in {'A' if name not in ours else 'B'}"]
            )
            continue
        rows += _test(*ours[name], theirs[name][1])
    verdicts = Counter(DIFFER if row[-1].startswith(DIFFER) else row[-1] for row in rows[1:])
    told = sum(verdicts[v] for v in ("better", "worse", "not distinguishable"))
    text = [_whole("A", a), _whole("B", b), "", *table.lines(rows), ""]
    text.append(", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common()))
    text.append(
        f"Rank-sum test, exact, two-sided, {stats.ALPHA:g}: of {told} cells about "
        f"{told * stats.ALPHA:.1f} are called different by chance."
    )
    unlike = machine.differences(a["machine"], b["machine"])
    unlike += machine.differences(a, b, ("corpora",))  # a file of the same name, but other text
    if unlike:
        text += ["", "Differences, A / B:", *(f"- {line}" for line in unlike)]
    return "\n".join(text)
