# SPDX-License-Identifier: BSD-3-Clause
"""The opening of a report: each table's finding in a sentence, then published figures beside
ours."""

from typing import Any

from bench.sweep import published, words

Row = dict[str, Any]
OURS = ("tokd", "libtok", "tok")  # parameter values; the first that a table has is our line


def ours(table: Row) -> tuple[str, str] | None:
    """The parameter and value that mark our rows."""
    for value in OURS:
        for name in table["varied"]:
            if value in {row["parameters"][name] for row in table["rows"]}:
                return name, value
    return None


def is_ours(table: Row, row: Row) -> bool:
    which = ours(table)
    return which is not None and row["parameters"][which[0]] == which[1]


def _named(parameters: Row, names: list[str]) -> str:
    return ", ".join(f"{name} {parameters[name]}" for name in names) or "it"


def _ratios(table: Row, metric: str, rows: list[Row], who: str) -> str | None:
    """A sentence that compares `rows` with their baselines."""
    cells = [row["cells"][metric] for row in rows if "ratio" in row["cells"].get(metric, {})]
    if not cells:
        return None
    least, most = (words.times(f(cells, key=lambda c: c["ratio"]["median"])["ratio"])[1:]
                   for f in (min, max))  # fmt: skip
    verdicts = [cell["verdict"] for cell in cells if cell["verdict"] != "neither"]
    if len(cells) == 1:
        tests, found = "", ", ".join(map(_verdict, verdicts))
    else:
        tests = f" in {len(cells)} tests"
        counted = dict.fromkeys(verdicts)
        found = ", ".join(f"{_verdict(v)} in {verdicts.count(v)}" for v in counted)
    baseline = ", ".join(f"{n} {v}" for n, v in table["baseline"].items())
    spread = least if least == most else f"{least} to {most}"
    return (
        f"{table['task']}: {metric} of {who} is {spread} times that of {baseline}{tests}"
        f"{f' ({found})' if found else ''}."
    )


def _verdict(verdict: str) -> str:
    return "too few repeats to decide" if verdict == "too few repeats" else verdict


def _extremes(table: Row, metric: Row) -> str | None:
    rows = [row for row in table["rows"] if "median" in row["cells"].get(metric["name"], {})]
    if not rows:
        return None
    ordered = sorted(rows, key=lambda row: row["cells"][metric["name"]]["median"])
    told = [
        f"{words.number(row['cells'][metric['name']]['median'])} {metric['unit']} "
        f"({_named(row['parameters'], table['varied'])})"
        for row in (ordered[0], ordered[-1])
    ]
    return f"{table['task']}: {metric['name']} is {' to '.join(dict.fromkeys(told))}."


def finding(table: Row) -> str:
    """A sentence about the first metric that has a figure."""
    rows = [row for row in table["rows"] if row["state"] == "done" and not row["is_baseline"]]
    which = ours(table)
    if which and any(is_ours(table, row) for row in rows):
        who, rows = f"{which[0]} {which[1]}", [row for row in rows if is_ours(table, row)]
    else:
        who = _named(rows[0]["parameters"], table["varied"]) if len(rows) == 1 else "the others"
    for metric in table["metrics"]:
        told = _ratios(table, metric["name"], rows, who) if table["baseline"] else None
        if told := told or _extremes(table, metric):
            return told
    return f"{table['task']}: no test has a figure."


def beside(table: Row) -> list[tuple[str, list[list[str]]]]:
    """For each published system that was measured: a sentence, and rows with the head first."""
    found = table["published"]
    return [] if found is None else published.tables(found, table["varied"])
