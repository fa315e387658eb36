# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's summary as Markdown tables and as CSV."""

import csv
import io
from typing import Any

from bench.sweep import corpora, knee, published, stage_table
from bench.sweep.words import repeats, spread, times

MARKS = {"not distinguishable": "~", "better": "better", "worse": "worse", "too few repeats": "?",
         "neither": ""}  # fmt: skip
LEGEND = (
    "A cell has the median of the repeats (smallest to largest). x0.50 is the ratio to the baseline's "
    "row: half of its figure, repeat by repeat, then the median. better, worse: a rank-sum test at the "
    "1% level finds a difference. not distinguishable (~): it finds none. too few repeats (?): the test "
    "cannot decide, so the ratio is a first look and not a result."
)
COLUMNS = (
    *("task", "test", "metric", "unit", "better", "state", "reason", "repeats", "samples"),
    *("median", "min", "max", "ratio", "ratio_min", "ratio_max", "verdict", "counts"),
)


def _cell(cell: dict[str, Any]) -> str:
    if "refused" in cell:
        return f"- ({cell['refused']})"
    text = spread(cell)
    if "ratio" in cell:
        text += f" {times(cell['ratio'])}"
    if "verdict" in cell:
        text += f" {MARKS[cell['verdict']]}"
    return text.rstrip()


def lines(rows: list[list[str]]) -> list[str]:
    """Aligned Markdown; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return [text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]]


def samples(row: dict[str, Any]) -> str:
    """The number of repeats, and the fewest samples of any distribution in one."""
    counts = [c for cell in row["cells"].values() for c in cell.get("samples", [])]
    return repeats(row["repeats"], counts)


def _one(table: dict[str, Any]) -> list[str]:
    constants = ", ".join(f"{k} {v}" for k, v in table["constants"].items())
    head = [*table["varied"], *(f"{m['name']}, {m['unit']}" for m in table["metrics"])]
    head += ["repeats x samples", *table["counts"]]
    rows = [head]
    absent: dict[str, list[str]] = {}  # tests by reason
    for row in table["rows"]:
        own = [str(row["parameters"][name]) for name in table["varied"]]
        told = ", ".join(own) or "it"
        if row["state"] != "done":
            absent.setdefault(f"{row['state']}: {row['reason']}", []).append(told)
            fill = [row["state"]] + ["-"] * (len(head) - len(own) - 1)
            rows.append([*own, *fill])
            continue
        if row["reason"]:
            absent.setdefault(row["reason"], []).append(told)
        if row["is_baseline"] and own:
            own[_marked(table)] += " (baseline)"
        cells = [_cell(row["cells"][m["name"]]) for m in table["metrics"]]
        rows.append([*own, *cells, samples(row), *(f"{n:,}" for n in row["counts"].values())])
    checked = sum(row.get("ids_checked", 0) for row in table["rows"])
    text = [f"### {table['task']}{f' ({constants})' if constants else ''}", "", table["help"], ""]
    stages = table.get("stage_table")
    text += _by_stage(stages) if stages else lines(rows)
    if table["checks_ids"]:
        text += ["", f"{checked:,} ids were compared with the reference's and equalled them."]
    notes = {note: None for row in table["rows"] for note in row.get("notes", [])}
    said = [f"- {'; '.join(who)}: {what}" for what, who in absent.items()]
    said += [f"- {note}" for note in notes]
    text += (["", *said] if said else []) + [""]
    text += _knee(table) if table.get("knee") else []
    return text + (_beside(table) if table["published"] else [])


def _knee(table: dict[str, Any]) -> list[str]:
    found = table["knee"]
    return [f"### {table['task']}: the knee", "", found["rule"], "",
            *lines(knee.table_rows(found, table["metrics"])), ""]  # fmt: skip


def _by_stage(found: dict[str, Any]) -> list[str]:
    remarks = [f"{found['who']}'s: {found['source']}", *found["remarks"]]
    return [*lines(stage_table.table(found)), "", *(f"- {remark}" for remark in remarks)]


def _beside(table: dict[str, Any]) -> list[str]:
    """Published figures of others beside ours."""
    found = table["published"]
    text = [f"### {table['task']}, beside {found['who']}'s own figures", ""]
    text += [found["source"], "", *(f"- {remark}" for remark in found["remarks"]), ""]
    for verdict, rows in published.tables(found, table["varied"]):
        text += [*lines(rows), "", verdict, ""]
    return text


def _marked(table: dict[str, Any]) -> int:
    """The column of a parameter that the baseline fixes."""
    return next((i for i, n in enumerate(table["varied"]) if n in table["baseline"]), 0)


def markdown(summary: dict[str, Any]) -> str:
    m = summary["machine"]
    text = [f"## {summary['title']}", ""]
    if not summary["finished"]:
        text += ["NOT FINISHED: run the same command again, it resumes.", ""]
    text.append(
        f"`{summary['command']}`, revision {m['revision']}: {m['cpu']['model']}, "
        f"{m['cpu']['cpus']} CPUs, {m['cpu']['virtual']}; {m['kernel'].split(' #')[0]}; isolated "
        f"CPUs: {m['isolation']['isolated']}; governor: {m['power']['governor']}; NIC: "
        f"{', '.join(m['nics'])}; GPU: {', '.join(m['gpus'])}; load average before: "
        f"{m['load_average']}."
    )
    for line in (*corpora.notes(summary), LEGEND):
        text += ["", line]
    text.append("")
    for table in summary["tables"]:
        text += _one(table)
    if summary["missing"]:
        text += ["### Not measured", ""]
        text += [f"- {one['what']}: missing: {one['why']}" for one in summary["missing"]] + [""]
    return "\n".join(text)


def as_csv(summary: dict[str, Any]) -> str:
    """A line for each test and metric, also for missing ones."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(COLUMNS)
    for table in summary["tables"]:
        for row in table["rows"]:
            for m in table["metrics"]:
                cell = row["cells"].get(m["name"], {})
                ratio = cell.get("ratio", {})
                write(
                    [table["task"], row["test"], m["name"], m["unit"], m["better"], row["state"]]
                    + [cell.get("refused", row["reason"]), row["repeats"]]
                    + [sum(cell.get("samples", []))]
                    + [cell.get(k, "") for k in ("median", "min", "max")]
                    + [ratio.get(k, "") for k in ("median", "min", "max")]
                    + [cell.get("verdict", "")]
                    + [" ".join(f"{k}={v}" for k, v in row["counts"].items())]
                )
    for one in summary["missing"]:
        write(["", one["what"], "", "", "", "missing", one["why"], 0, 0] + [""] * 8)
    return out.getvalue()
