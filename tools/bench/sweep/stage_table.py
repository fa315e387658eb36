# SPDX-License-Identifier: BSD-3-Clause
"""A row for each stage of each test: its percentiles, whose they are by which clock, and what
others published of the same stage."""

from collections.abc import Iterator
from typing import Any

from bench.sweep import words
from bench.sweep.published import StageFigures
from bench.task import Metric

Row = dict[str, Any]


def _why(row: Row) -> str:
    """Why a test has no figures."""
    state = "not run" if row["state"] == "missing" else row["state"]
    return f"{state}: {row['reason']}"


def _rows(figures: StageFigures, metrics: list[Metric], row: Row) -> Iterator[Row]:
    """Of a test; without figures of ours only the stages that they have."""
    stages: dict[str, list[Metric]] = {}
    for metric in metrics:
        stages.setdefault(metric.of, []).append(metric)
    for stage, several in stages.items():
        theirs = figures.value(row["parameters"], stage)
        if row["state"] != "done" and theirs is None:
            continue
        cells = [row["cells"].get(m.name, {"refused": _why(row)}) for m in several]
        yield {
            "parameters": row["parameters"],
            "stage": stage,
            "unit": several[0].unit,
            "cells": {
                m.name.removeprefix(f"{stage} "): c for m, c in zip(several, cells, strict=True)
            },
            "repeats": row["repeats"],
            "samples": [count for cell in cells for count in cell.get("samples", [])],
            "clock": row.get("clocks", {}).get(stage, ""),
            "theirs": theirs,
        }


def summarize(
    figures: StageFigures, varied: list[str], metrics: list[Metric], rows: list[Row]
) -> dict[str, Any]:
    return {
        "who": figures.who,
        "source": figures.source,
        "remarks": figures.remarks,
        "varied": varied,
        "rows": [one for row in rows for one in _rows(figures, metrics, row)],
    }


# ---- text ----


def _cells(row: Row, names: list[str]) -> list[str]:
    """One reason for all is said once."""
    cells = [row["cells"].get(name, {"refused": ""}) for name in names]
    told = [cell["refused"] if "refused" in cell else words.spread(cell) for cell in cells]
    return [
        text if text != before else "-" for text, before in zip(told, ["", *told], strict=False)
    ]


def table(found: dict[str, Any]) -> list[list[str]]:
    """The head first."""
    rows = found["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row["cells"]))
    head = [*found["varied"], "stage", *names, "repeats x samples", "whose, by which clock"]
    made = [[*head, f"{found['who']}'s"]]
    for row in rows:
        made.append(
            [
                *(str(row["parameters"][name]) for name in found["varied"]),
                f"{row['stage']}, {row['unit']}",
                *_cells(row, names),
                words.repeats(row["repeats"], row["samples"]) if row["samples"] else "-",
                row["clock"] or "-",
                "{:,g} ({})".format(*row["theirs"]) if row["theirs"] else "-",
            ]
        )
    return made
