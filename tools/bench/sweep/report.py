# SPDX-License-Identifier: BSD-3-Clause
"""The HTML report of a sweep: one file without scripts, made from the result folder alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpdk_tokd.fetch.packages import write_atomically

from bench.sweep import compare, corpora, headline, published, stage_table, table
from bench.sweep.markup import Html, el
from bench.sweep.section import Section, link

NAME = "report.html"
FILES = ("results.json", "results.csv", "table.md", "run.json")


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _flat(given: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(given, dict):
        for key, value in given.items():
            yield from _flat(value, f"{name}: {key}" if name else key.replace("_", " "))
    else:
        yield name, ", ".join(map(str, given)) if isinstance(given, list) else str(given)


def _warnings(summary: dict[str, Any]) -> Iterator[str]:
    if not summary["finished"]:
        yield "NOT FINISHED: the command below resumes it; then make this report again."
    if not summary["ids_right"]:
        yield "Ids were wrong: refused tests have no figures, and nothing is compared with them."
    if summary["quick"]:
        repeats = _plural(summary["repeats"], "repeat")
        yield f"A quick sweep, {repeats} of each test: do not cite it."


def _what(summary: dict[str, Any], rows: list[dict[str, Any]]) -> Html:
    """The command, the machine, and how many tests have figures."""
    here = summary["machine"]
    done = sum(row["state"] == "done" for row in rows)
    return el(
        "p",
        el("code", summary["command"]),
        f", revision {here['revision']}: {here['cpu']['model']}, "
        f"{_plural(here['cpu']['cpus'], 'CPU')}. {_plural(len(rows), 'test')}, {done} measured, "
        f"{len(rows) - done} without a figure.",
    )


def _machine(here: dict[str, Any]) -> Html:
    lines = [el("tr", el("th", name, scope="row"), el("td", value)) for name, value in _flat(here)]
    return el("table", *lines, class_="machine")


def _files(folder: Path) -> Html:
    links = [one for name in FILES if (one := link(folder, name, name))]
    return el(
        "p",
        "Beside this page: ",
        *(part for one in links for part in (one, "; ")),
        "in each test's row its trials, and histograms of all repeats for HdrHistogram's plotter.",
    )


def _contents(sections: list[Section]) -> Html:
    ends = [("missing", "Not measured"), ("machine", "Machine"), ("files", "Files")]
    places = [(section.ident, section.title) for section in sections] + ends
    items = [el("li", el("a", text, href=f"#{ident}")) for ident, text in places]
    return el("nav", el("ul", *items), aria_label="Contents")


def _published(one: dict[str, Any]) -> Iterator[Html]:
    """Published figures of others beside ours, by table."""
    for found in (one["published"], one.get("stage_table")):
        if found is None:
            continue
        yield el("h3", f"{one['task']}, beside {found['who']}'s own figures")
        yield el("p", found["source"], class_="soft")
        yield el("ul", *(el("li", remark) for remark in found["remarks"]), class_="soft")
    for verdict, rows in headline.beside(one):
        yield el("p", verdict)
        yield _plain(_with_figures(rows))
    if stages := one.get("stage_table"):
        yield _plain(stage_table.table(stages))


def _plain(rows: list[list[str]]) -> Html:
    head, *body = rows
    lines = [el("tr", *(el("td", cell) for cell in row)) for row in body]
    heads = el("tr", *(el("th", text, scope="col") for text in head))
    return el("div", el("table", el("thead", heads), el("tbody", *lines)), class_="wide")


def _with_figures(rows: list[list[str]]) -> list[list[str]]:
    """Without columns in which no row has a figure."""
    kept = [
        at for at in range(len(rows[0]))
        if any(row[at] not in ("-", published.NOT_STATED) for row in rows[1:])
    ]  # fmt: skip
    return [[row[at] for at in kept] for row in rows]


def _headline(summary: dict[str, Any]) -> Html:
    """The findings, a sentence per table; then published figures."""
    return el(
        "section",
        *(el("p", headline.finding(one), class_="headline") for one in summary["tables"]),
        *(part for one in summary["tables"] for part in _published(one)),
        id="headline",
    )


def page(folder: Path) -> Html:
    """Raises StoreError if the folder has no sweep or an unreadable trial."""
    summary = compare.read(folder)
    sections = [Section(folder, at, one) for at, one in enumerate(summary["tables"])]
    missing = [
        el("li", el("b", one["what"]), f": missing: {one['why']}") for one in summary["missing"]
    ]
    body = el(
        "main",
        el("h1", summary["title"]),
        *(el("p", text, class_="warning") for text in _warnings(summary)),
        _headline(summary),
        _what(summary, [row for section in sections for row in section.rows]),
        *(el("p", text) for text in corpora.notes(summary)),
        _contents(sections),
        el("p", table.LEGEND, class_="soft"),
        *(section.html() for section in sections),
        el("h2", "Not measured", id="missing"),
        el("ul", *missing) if missing else el("p", "The box names nothing that is missing."),
        el("h2", "Machine", id="machine"),
        _machine(summary["machine"]),
        el("h2", "Files", id="files"),
        _files(folder),
    )
    head = el(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        el("title", f"{summary['title']}: {summary['box']}"),
        el("style", Html(Path(__file__).with_name("report.css").read_text("utf-8"))),
    )
    return Html(f"<!DOCTYPE html>\n{el('html', head, el('body', body), lang='en')}\n")


def write(folder: Path) -> Path:
    path = folder / NAME
    write_atomically(path, page(folder).encode())
    return path
