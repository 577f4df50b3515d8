"""Routes x chunkings as a table: the figure, its interval, and what was shown; the darker, the higher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from core.domain.format import between, number, p_value
from core.evaluation.chunkings.report import IN_USE, MEAN, rows
from ui.app.markup import EMPTY, join, table_of, tag
from ui.app.routes import title

VERDICTS = {"better": "better", "worse": "worse", "no difference shown": "no difference shown"}
IN_FORCE = " (in use)"
BEST = {
    IN_USE: "best, in use",
    "better": "best, shown to be better",
    "no difference shown": "best, not shown to be better",
}


def heat_table(figures: Mapping[str, Any]) -> Markup:
    """Return a row for each route, after a row of means, and a column for each chunking."""
    names = list(figures["chunkings"])
    heads = [
        tag(
            "th",
            row["chunking"],
            IN_FORCE if name == figures["base"] else "",
            scope="col",
            title=row["label"],
        )
        for name, row in figures["chunkings"].items()
    ]
    body = [
        tag(
            "tr",
            tag("th", "Mean of the routes" if route == MEAN else title(route), scope="row"),
            *(_cell(by.get(name), figures, route, name) for name in names),
        )
        for route, by in rows(figures).items()
    ]
    table = table_of(tag("tr", tag("th", "Route", scope="col"), *heads), body, css="rs-chunkings")
    return tag("div", table, css="rs rs-wide", tabindex="0", role="region", aria_label="Routes by chunkings")


def _cell(row: Mapping[str, Any] | None, figures: Mapping[str, Any], route: str, name: str) -> Markup:
    value = row[figures["metric"]] if row else None
    if row is None or value is None:
        return tag("td", "–", title="not measured")
    ends = f"[{row['ci95'][0]:.3f}, {row['ci95'][1]:.3f}]" if row["ci95"] else ""
    best = figures["best"][route]
    verdict = row["vs_base"]["verdict"] if row["vs_base"] else ""
    said = VERDICTS.get(verdict, "")
    if best and best["chunking"] == name:
        said = BEST.get(best["verdict"], "best")
    failed = f"{row['failed']} failed" if row.get("failed") else ""
    note = join([part for part in (said, failed) if part], ", ")
    css = {"better": "up", "worse": "down"}.get(verdict, "dim")
    return tag(
        "td",
        tag("b", f"{value:.3f}"),
        " ",
        tag("span", ends, css="dim nowrap"),
        tag("div", note, css=css) if note else EMPTY,
        style=f"--v: {min(1.0, max(0.0, value)):.3f}",
        title=_difference(row, figures["base"]),
    )


def _difference(row: Mapping[str, Any], base: str) -> str:
    found = row["vs_base"]
    if not found:
        return f"{row['n']} questions"
    ends = f" ({between(*found['ci95'], signed=True)})" if found["ci95"] else ""
    delta = number(found["delta"], signed=True)
    return (
        f"{delta}{ends} against {base}, {p_value(found['p_holm'])} (Holm), better on "
        f"{found['wins']}, worse on {found['losses']} of {found['n']} questions"
    )
