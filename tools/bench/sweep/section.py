# SPDX-License-Identifier: BSD-3-Clause
"""A table of a sweep as a section of the report."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.sweep import headline, knee, table, words
from bench.sweep.figures import Figures, Row, named, row_name, state
from bench.sweep.markup import Html, el, join


def link(folder: Path, path: str, text: str) -> Html | None:
    """None if the file does not exist."""
    return el("a", text, href=quote(path)) if (folder / path).is_file() else None


class Section:
    def __init__(self, folder: Path, at: int, given: dict[str, Any]) -> None:
        self.folder, self.ident, self.table = folder, f"t{at + 1}", given
        self.rows: list[Row] = given["rows"]
        # Columns without a figure are left out; the reasons are below the table.
        self.metrics = [m for m in given["metrics"] if self._refusals(m) is None]

    def _refusals(self, metric: Row) -> list[str] | None:
        """Why no row has a figure of this metric; None if one has."""
        cells = [
            row["cells"].get(metric["name"], {}) for row in self.rows if row["state"] == "done"
        ]
        if any("median" in cell for cell in cells):
            return None
        return list(dict.fromkeys(cell["refused"] for cell in cells if "refused" in cell))

    def _left_out(self) -> Html:
        told = {
            m["name"]: why for m in self.table["metrics"] if (why := self._refusals(m)) is not None
        }
        lines = [
            el("li", el("b", name), f": no figure: {'; '.join(why) or 'no test was measured'}")
            for name, why in told.items()
        ]
        return el("ul", *lines, class_="absent") if lines else Html("")

    @property
    def title(self) -> str:
        return self.table["task"]

    def _absent(self) -> Html:
        """Tests without values, by reason."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            if row["state"] != "done":
                found.setdefault(state(row), []).append(row_name(self.table, row))
        if not found:
            return Html("")
        lines = [el("li", el("b", "; ".join(who)), f": {why}") for why, who in found.items()]
        return join(el("p", "Without values:"), el("ul", *lines, class_="absent"))

    def _files(self, row: Row) -> Html:
        slug = row["test"]
        names = [m["name"] for m in self.table["metrics"]]
        kinds = dict.fromkeys(name.split(" ")[0] for name in names if " " in name)
        links = [link(self.folder, f"hgrm/{slug}.{of}.hgrm", f"{of}.hgrm") for of in kinds]
        numbers = sorted(int(p.stem) for p in (self.folder / "trials" / slug).glob("*.json"))
        links += [link(self.folder, f"trials/{slug}/{n}.json", str(n)) for n in numbers]
        found = [link for link in links if link]
        return join(*(part for link in found for part in (link, " "))) if found else Html("-")

    @staticmethod
    def _cell(cell: Row) -> Html:
        if "refused" in cell:
            return el("td", f"- ({cell['refused']})", class_="absent")
        inside: list[str] = [words.number(cell["median"])]
        if cell["min"] != cell["max"]:
            inside.append(
                el("small", f"{words.number(cell['min'])} to {words.number(cell['max'])}")
            )
        told = [words.times(cell["ratio"])] if "ratio" in cell else []
        told += [cell["verdict"]] if cell.get("verdict", "neither") != "neither" else []
        if told:
            inside.append(el("small", ", ".join(told), class_=cell.get("verdict", "")))
        return el("td", *inside)

    def _row(self, row: Row) -> Html:
        own = [str(row["parameters"][n]) for n in self.table["varied"]] or ["it"]
        heads = [el("th", name, scope="row") for name in own]
        files = el("td", self._files(row), class_="whole")
        counts = self.table["counts"]
        if row["state"] != "done":
            wide = str(len(self.metrics) + 1 + len(counts))
            return el("tr", *heads, el("td", state(row), colspan=wide, class_="absent"), files)
        cells = [self._cell(row["cells"][m["name"]]) for m in self.metrics]
        rest = [el("td", text, class_="whole") for text in
                (table.samples(row), *(f"{n:,}" for n in row["counts"].values()))]  # fmt: skip
        baseline = "baseline" if row["is_baseline"] and self.table["baseline"] is not None else ""
        ours = "ours" if headline.is_ours(self.table, row) else ""
        return el("tr", *heads, *cells, *rest, files, class_=f"{baseline} {ours}".strip())

    def _table(self) -> Html:
        heads: list[str] = [el("th", n, scope="col") for n in self.table["varied"] or ["test"]]
        for m in self.metrics:
            unit = el("small", f"{m['unit']}, {m['better']} is better")
            heads.append(el("th", m["name"], unit, scope="col"))
        heads.append(el("th", "repeats x samples", scope="col"))
        heads += [el("th", n, el("small", why), scope="col")
                  for n, why in self.table["counts"].items()]  # fmt: skip
        heads.append(el("th", "files", el("small", "histograms, trials"), scope="col"))
        fixed = self.table["baseline"]
        caption = f"Shaded: the baseline, {named(fixed)}." if fixed else ""
        return el(
            "div",
            el(
                "table",
                el("caption", caption) if caption else "",
                el("thead", el("tr", *heads)),
                el("tbody", *(self._row(row) for row in self.rows)),
            ),
            class_="wide",
        )

    def _knee(self) -> Html:
        found = self.table.get("knee")
        if not found:
            return Html("")
        head, *rows = knee.table_rows(found, self.table["metrics"])
        names = len(found["varied"]) or 1
        lines = [
            el("tr", *(el("th", text, scope="row") for text in row[:names]),
               *(el("td", text) for text in row[names:]))
            for row in rows
        ]  # fmt: skip
        heads = el("tr", *(el("th", text, scope="col") for text in head))
        return join(
            el("h3", "The knee"),
            el("p", found["rule"], class_="soft"),
            el("div", el("table", el("thead", heads), el("tbody", *lines)), class_="wide"),
        )

    def _notes(self) -> Html:
        failed = {f"{row_name(self.table, r)}: {r['reason']}": None for r in self.rows
                  if r["state"] == "done" and r["reason"]}  # fmt: skip
        notes = {note: None for row in self.rows for note in row.get("notes", [])}
        found = [el("li", text) for text in (*failed, *notes)]
        checked = sum(row.get("ids_checked", 0) for row in self.rows)
        ids = f"{checked:,} ids were compared with the reference's and equalled them."
        return join(
            el("p", ids) if self.table["checks_ids"] else "", el("ul", *found) if found else ""
        )

    def html(self) -> Html:
        constants = named(self.table["constants"])
        return el(
            "section",
            el("h2", self.title, el("small", f" {constants}") if constants else "", id=self.ident),
            el("p", self.table["help"]),
            self._table(),
            self._left_out(),
            self._notes(),
            self._absent(),
            self._knee(),
            Figures(self.folder, self.ident, self.table).html(),
        )
