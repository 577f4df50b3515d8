"""An evaluation as a folder of files that any web server, or a browser alone, shows: no server of ours, no
request to anywhere else. Data is in scripts, because a page opened from a disk may not fetch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.analysis.metrics import titled
from core.api.evaluating import Evaluated, evaluation
from core.api.explaining import why
from core.domain.errors import BadInput, RouteScopeError
from core.domain.format import milliseconds, number
from core.domain.types import RouteResult
from core.evaluation import leaderboard
from core.evaluation.templating import render

METRICS = ("ndcg@10", "recall@10", "mrr@10", "map")
DEPTH = 20  # hits of each route that are written
QUESTIONS = "questions"  # the folder of a script for each question


def write_site(measured: str, folder: Path) -> int:
    """Write the site of an evaluation, by its name or folder; return the number of questions.

    Raises BadInput if the folder is not empty or cannot be written.
    """
    opened = evaluation(measured)
    try:
        (folder / QUESTIONS).mkdir(parents=True)
        if [path for path in folder.iterdir() if path.name != QUESTIONS]:
            raise BadInput(f"--site {folder}: the folder is not empty")
        for at, id in enumerate(opened.outcomes):
            script = f"show({_script(_question(opened, id))});\n"
            (folder / QUESTIONS / f"{at}.js").write_text(script, encoding="utf-8")
        data = f"const QUESTIONS = {_script(_questions(opened))};\n"
        (folder / "data.js").write_text(data, encoding="utf-8")
        (folder / "index.html").write_text(_index(opened), encoding="utf-8")
    except FileExistsError:
        raise BadInput(f"--site {folder}: there is a site already; give a new folder") from None
    except OSError as error:
        raise BadInput(f"--site {folder} cannot be written: {error.strerror or error}") from None
    return len(opened.outcomes)


def _script(value: Any) -> str:
    """Return a value as JavaScript that ends no script element, whatever its texts are."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def _index(opened: Evaluated) -> str:
    rows = []
    for route in leaderboard.ranked(opened.figures, METRICS[0]):
        row = opened.figures["routes"][route]
        shown = [(number(row.get(name)), _interval(row, name)) for name in METRICS]
        p95 = "" if row["p95_ms"] is None else milliseconds(row["p95_ms"])
        rows.append((route, shown, p95, row["failed"]))
    return render(
        "site.html",
        title=f"{opened.name}: {len(rows)} routes on {opened.figures['queries']} questions",
        metrics=[titled(name) for name in METRICS],
        rows=rows,
        findings=opened.findings,
    )


def _interval(row: Mapping[str, Any], metric: str) -> str:
    ends = row["ci95"].get(metric)
    return f"{number(ends[0])} to {number(ends[1])}" if ends else ""


def _questions(opened: Evaluated) -> list[dict[str, Any]]:
    """Return each question asked with each route's nDCG@10, in the order of its script's number."""
    return [
        {
            "id": id,
            "text": opened.questions[id].query.text,
            "kind": opened.questions[id].mode or "",
            "values": {
                route: number(opened.values[route].get(id, {}).get(METRICS[0])) for route in opened.routes
            },
        }
        for id in opened.outcomes
    ]


def _question(opened: Evaluated, id: str) -> dict[str, Any]:
    """Return what each route did with a question, the passages it names, and Why."""
    grades = opened.labelled.qrels.get(id, {})
    document: dict[str, Any] = {"id": id, "text": opened.questions[id].query.text, "grades": dict(grades)}
    try:
        run = opened.run(id)
    except RouteScopeError as error:  # evaluations may keep no runs: rankings are left
        routes = [
            {"route": route, "time": milliseconds(one.ms), "error": one.error, "hits": one.hits[:DEPTH]}
            for route, one in opened.outcomes[id].items()
        ]
        return {**document, "routes": routes, "passages": {}, "why": [str(error)]}
    try:
        lines = list(why(run, grades=grades).lines)
    except RouteScopeError as error:
        lines = [str(error)]
    hits = [hit.passage for result in run.results for hit in result.hits[:DEPTH]]
    passages = {one.id: [one.title or one.doc_id, one.text] for one in hits}
    return {**document, "routes": [_result(one) for one in run.results], "passages": passages, "why": lines}


def _result(result: RouteResult) -> dict[str, Any]:
    return {
        "route": result.route,
        "time": milliseconds(result.ms),
        "error": result.error,
        "answer": result.answer,
        "steps": [[span.name, milliseconds(span.ms)] for span in result.spans],
        "hits": [[hit.passage.id, hit.score] for hit in result.hits[:DEPTH]],
    }
