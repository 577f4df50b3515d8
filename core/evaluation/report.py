"""What `eval --out` leaves behind: figures, run files that other tools read, and a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from core.analysis.metrics import COMPARED, QUALITY, UNJUDGED, title
from core.domain.trec import qrels_lines, run_lines
from core.evaluation import answer_figures
from core.evaluation import text as told
from core.evaluation.answers import ANSWERS, ANSWERS_COMPARED
from core.evaluation.dataset import LabelledSet
from core.evaluation.effects import in_words
from core.evaluation.outcome import Outcomes

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--ground:#fff;--good:#116329;
--bad:#a40e26}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--ground:#0d1117;
--good:#56d364;--bad:#ff7b72}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:72rem;
margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .7rem;border-bottom:1px solid var(--line)}
"""  # of every report: they need nothing else, in light and dark
_OWN = """
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}p,li,small{color:var(--soft)}
th,td{text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}small{display:block;font-size:.8rem}
.better{color:var(--good)}.worse{color:var(--bad)}
"""
_KEY = (
    "Under a difference: what it shows; its 95 % paired bootstrap interval, not corrected; the corrected p, "
    "and over how many questions; d, the mean over the standard deviation of the differences; on how many "
    "questions the route is better / the same / worse; the smallest difference seen with power 80 %, "
    "corrected."
)


def write(folder: Path, figures: Mapping[str, Any], labelled: LabelledSet, outcomes: Outcomes) -> None:
    """Write metrics.json, ROUTE.run, qrels.txt, latency.json and report.html into `folder`, and answers.jsonl
    if there are answers.

    ir_measures over qrels.txt and a run file, with the measures of metrics.json, gives the same figures.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked = [q.id for q in labelled.questions if q.id in outcomes]
    measured = [id for id in asked if labelled.labelled(id)]
    _lines(folder / "qrels.txt", qrels_lines(labelled.qrels, measured))
    times: dict[str, dict[str, float]] = {}
    for route in figures["routes"]:
        ok = {id: outcomes[id][route] for id in asked if outcomes[id][route].status == "ok"}
        _lines(folder / f"{route}.run", run_lines(route, {id: one.hits for id, one in ok.items()}))
        times[route] = {id: one.ms for id, one in ok.items()}
    _lines(folder / "latency.json", [json.dumps({"unit": "ms", "routes": times}, indent=1)])
    if figures.get("answers"):
        given = answer_figures.lines(labelled, outcomes, list(figures["routes"]))
        _lines(folder / "answers.jsonl", (json.dumps(line) + "\n" for line in given))
    _lines(folder / "metrics.json", [json.dumps(figures, indent=1, allow_nan=False)])
    _lines(folder / "report.html", [page(figures)])


def page(figures: Mapping[str, Any]) -> str:
    """The figures as one HTML page that needs nothing else; every name in it is escaped."""
    routes, baseline = figures["routes"], figures["baseline"]
    name = escape(str(figures["dataset"]))
    others = [route for route in routes if route != baseline]
    parts = [
        f"<h1>{name}: {len(routes)} routes compared</h1>",
        *_paragraphs(told.found(figures)),
        "<h2>What was found</h2>",
        _table(["route", *map(title, QUALITY)], [[route, *_quality(row)] for route, row in routes.items()]),
        "<p>Under a figure: its 95 % interval, and the share of passages without a judgement as deep as the "
        f"metric looks (MAP: of the first 100). {_measures(figures['measures'])}</p>",
        f"<h2>Against {escape(baseline)}</h2>",
        _table(
            ["route", *map(title, COMPARED)],
            [
                [route, *(_difference(routes[route]["vs_baseline"].get(name)) for name in COMPARED)]
                for route in others
            ],
        ),
        f"<p>{_KEY} The test: {escape(figures['statistics']['test'])}; a difference is called better or "
        f"worse when the adjusted p is below {figures['statistics']['alpha']}. “No difference shown” is not "
        "“the same”.</p>",
        _items(
            in_words(routes[r]["vs_baseline"].get(COMPARED[0]), r, baseline, title(COMPARED[0]))
            for r in others
        ),
        *_by_question(figures),
        "<h2>Questions, time, failures, model use</h2>",
        _table(
            [
                "route",
                "scored",
                "not scored",
                "failed",
                "p50 ms",
                "p95 ms",
                "model calls",
                "prompt tokens",
                "written tokens",
            ],
            [[route, *_cost(row)] for route, row in routes.items()],
        ),
        "<p>Scored: has a relevant passage and the route ended well. Not scored: ended well, but there is "
        "nothing to score by. Failed questions are in no mean.</p>",
        *_errors(routes),
        *_answers(figures),
        *_modes(figures.get("by_mode") or {}, baseline),
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}{_OWN}</style><body>{''.join(parts)}</body></html>\n"
    )


def _quality(row: Mapping[str, Any]) -> list[str]:
    return [
        _figure(row[name], row["ci95"].get(name)) + _unjudged(row.get(UNJUDGED[name])) for name in QUALITY
    ]


def _unjudged(share: float | None) -> str:
    return "" if share is None else f"<small>{share:.0%} unjudged</small>"


def _figure(value: float | None, ends: Sequence[float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" + (f"<small>{ends[0]:.3f} to {ends[1]:.3f}</small>" if ends else "")


def _difference(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return "-"
    kind = one["verdict"] if one["verdict"] in ("better", "worse") else "none"
    ends, d = one["ci95"], one["d_z"]
    lines = [
        one["verdict"],
        f"{ends[0]:+.3f} to {ends[1]:+.3f}" if ends else "",
        f"p {one['p_holm']:.3f}, n {one['n']}",
        ("" if d is None else f"d {d:+.2f}; ") + f"{one['wins']} / {one['ties']} / {one['losses']}",
        f"seen from {one['detectable_holm']:.3f}" if one["detectable_holm"] else "",
    ]
    small = "".join(f"<small>{line}</small>" for line in lines if line)
    return f'<span class="{kind}">{one["delta"]:+.4f}</span>{small}'


def _verdict(one: Mapping[str, Any] | None) -> str:
    """A difference in short, under a figure."""
    if one is None:
        return ""
    kind = one["verdict"] if one["verdict"] in ("better", "worse") else "none"
    told = f"{one['delta']:+.3f}, {one['verdict']}, p {one['p_holm']:.3f}"
    return f'<small><span class="{kind}">{told}</span></small>'


def _cost(row: Mapping[str, Any]) -> list[str]:
    times = ["-" if row[key] is None else f"{row[key]:.1f}" for key in ("p50_ms", "p95_ms")]
    return [
        *(f"{row[key]:,}" for key in ("scored", "not_scored", "failed")),
        *times,
        *(f"{row[key]:,}" for key in ("llm_calls", "prompt_tokens", "completion_tokens")),
    ]


def _by_question(figures: Mapping[str, Any]) -> list[str]:
    """What choosing by question would give, and what further rounds gave."""
    best, rounds = told.chosen_by_question(figures), told.rounds(figures)
    return [
        *(["<h2>The best route of each question</h2>", *_paragraphs([best])] if best else []),
        *(["<h2>Asked again</h2>", _items(rounds)] if rounds else []),
    ]


def _paragraphs(sentences: Iterable[str]) -> list[str]:
    return [f"<p>{escape(sentence)}</p>" for sentence in sentences]


def _items(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _answers(figures: Mapping[str, Any]) -> list[str]:
    """What the answers are worth, how that was judged, and the differences; nothing without answers."""
    if not figures.get("answers"):
        return []
    written = {route: row["answers"] for route, row in figures["routes"].items() if "answers" in row}
    baseline = figures["baseline"]
    return [
        "<h2>Answers</h2>",
        _table(
            ["route", "answered", "abstained", *ANSWERS],
            [
                [
                    route,
                    *(f"{row[key]:,}" for key in ("answered", "abstained")),
                    *(_figure(row[name], row["ci95"][name]) for name in ANSWERS),
                ]
                for route, row in written.items()
            ],
        ),
        "".join(f"<p><b>{escape(name)}</b>: {escape(how)}.</p>" for name, how in figures["answers"].items()),
        f"<h2>Answers against {escape(baseline)}</h2>",
        _table(
            ["route", *ANSWERS_COMPARED],
            [
                [route, *(_difference(row["vs_baseline"].get(name)) for name in ANSWERS_COMPARED)]
                for route, row in written.items()
                if route != baseline
            ],
        ),
    ]


def _errors(routes: Mapping[str, Any]) -> list[str]:
    items = [
        f"<li>{escape(route)}: {escape(error)}</li>"
        for route, row in routes.items()
        for error in row["errors"]
    ]
    return [f"<p>Errors seen, at most five kinds a route:</p><ul>{''.join(items)}</ul>"] if items else []


def _modes(by_mode: Mapping[str, Any], baseline: str) -> list[str]:
    if not by_mode:
        return []
    routes = list(next(iter(by_mode.values())))
    rows = []
    for mode, table in by_mode.items():
        cells = []
        for route in routes:
            row = table[route]
            against = row["vs_baseline"].get("ndcg@10") if route != baseline else None
            cells.append(_figure(row["ndcg@10"], row["ci95"].get("ndcg@10")) + _verdict(against))
        rows.append([f"{mode} ({table[baseline]['n']})", *cells])
    return [
        "<h2>nDCG@10 by kind of question</h2>",
        _table(["kind (questions)", *routes], rows),
    ]


def _measures(used: Mapping[str, str]) -> str:
    return (
        "Measures: "
        + ", ".join(f"{escape(name)} is {escape(measure)}" for name, measure in used.items())
        + "."
    )


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; headers and the first cell of a row are escaped, the other cells are our own markup."""
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(
        f"<tr><td>{escape(first)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for first, *cells in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _lines(path: Path, lines: Iterable[str]) -> None:
    """Write a whole file or none: a reader never sees half of one."""
    draft = path.with_name(f"{path.name}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    draft.replace(path)
