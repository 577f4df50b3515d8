"""The output of `eval --out`: figures, run files for other tools, and a readable page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.analysis.metrics import ANSWERS, ANSWERS_COMPARED, COMPARED, QUALITY, UNJUDGED, titled
from core.domain.ranked import qrels_lines, run_lines
from core.evaluation import scoring, text
from core.evaluation.dataset import LabelledSet
from core.evaluation.finding import compared, sentence
from core.evaluation.outcome import Outcomes
from core.evaluation.stored import whole_lines
from core.evaluation.templating import render


def write(folder: Path, figures: Mapping[str, Any], labelled: LabelledSet, outcomes: Outcomes) -> None:
    """Write metrics.json, ROUTE.run, qrels.txt, latency.json and report.html into `folder`, and answers.jsonl
    if there are answers.

    ir_measures over qrels.txt and a run file, with the measures of metrics.json, gives the same figures.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked = [q.id for q in labelled.questions if q.id in outcomes]
    measured = [id for id in asked if labelled.labelled(id)]
    whole_lines(folder / "qrels.txt", qrels_lines({id: labelled.judged(id) for id in measured}, measured))
    times: dict[str, dict[str, float]] = {}
    for route in figures["routes"]:
        ok = {id: outcomes[id][route] for id in asked if outcomes[id][route].status == "ok"}
        ranked = {id: labelled.ranking(id, one) for id, one in ok.items()}
        whole_lines(folder / f"{route}.run", run_lines(route, ranked))
        times[route] = {id: one.ms for id, one in ok.items() if not math.isnan(one.ms)}
    whole_lines(folder / "latency.json", [json.dumps({"unit": "ms", "routes": times}, indent=1)])
    if figures.get("answers"):
        given = scoring.lines(labelled, outcomes, list(figures["routes"]))
        whole_lines(folder / "answers.jsonl", (json.dumps(line) + "\n" for line in given))
    whole_lines(folder / "metrics.json", [json.dumps(figures, indent=1, allow_nan=False)])
    whole_lines(folder / "report.html", [page(figures)])


def page(figures: Mapping[str, Any]) -> str:
    """Return the figures as one HTML page that needs nothing else; every name in it is escaped."""
    baseline = figures["baseline"]
    routes = {route: row for route, row in figures["routes"].items() if "same_as" not in row}
    by_mode = figures.get("by_mode") or {}
    first = COMPARED[0]
    against = ((route, row["vs_baseline"].get(first)) for route, row in routes.items() if route != baseline)
    judged = text.judge_lines(figures["judge"], first) if "judge" in figures else []
    warned = [f"{warning}." for warning in (*figures.get("reading", ()), *(figures.get("warnings") or ()))]
    more = [*judged, *warned]
    return render(
        "report.html",
        title=f"{figures['dataset']}: {len(routes)} routes compared",
        figures={"answers": {}, **figures, "by_mode": by_mode},
        routes=routes,
        baseline=baseline,
        found=[*text.generated(figures), *text.found(figures), *text.counted(figures), *more],
        quality={name: titled(name) for name in QUALITY},
        unjudged=UNJUDGED,
        compared={name: titled(name) for name in COMPARED},
        sentences=[sentence(compared(one, route, baseline, titled(first))) for route, one in against],
        oracle=text.oracle(figures.get("oracle")),
        rounds=text.rounds(figures),
        errors=[f"{route}: {error}" for route, row in routes.items() for error in row["errors"]],
        written={route: row["answers"] for route, row in routes.items() if "answers" in row},
        answers=list(ANSWERS),
        answers_compared={name: name for name in ANSWERS_COMPARED},
        queried={route: row["extra"] for route, row in routes.items() if "extra" in row},
        queried_metrics=list(
            dict.fromkeys(name for row in routes.values() for name in row.get("extra", {}).get("ci95", {}))
        ),
        modes=[route for route in next(iter(by_mode.values()), ()) if route in routes],
    )
