"""Why routes found or lost passages, in the words of the page Why."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from core.analysis.diagnosis import (
    Diagnosis,
    diagnose,
    furthest,
    held,
    mode_of,
    passage_report,
    relation,
    report,
    title,
    unfound,
)
from core.analysis.loss_evidence import unmet_in
from core.analysis.passage_trace import PassageTrace
from core.api import html
from core.api.arguments import count, text
from core.corpus.markdown import name_of
from core.domain.errors import BadInput, RouteScopeError
from core.domain.types import Passage, Run
from core.engine import engine as engines
from core.evaluation.gold import Gold, gold


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """An explanation of how each route of a run found or lost passages."""

    run: Run
    depth: int
    grades: Mapping[str, int]  # the known grades (0-3) by passage id
    passages: Mapping[str, Passage]  # the passages explained
    # each route's diagnosis for the relevant passages, worst first; () for a question without labels
    diagnoses: tuple[Diagnosis, ...]
    lines: tuple[str, ...]  # the explanation in sentences

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"<Explanation of run {self.run.id}>\n{self}"

    def _repr_html_(self) -> str:
        return html.table((f"run {self.run.id}",), [(line,) for line in self.lines if line])


def why(
    run: Run | str,
    passage: str | None = None,
    *,
    route: str | None = None,
    labels: str | None = None,
    depth: int = 10,
    grades: Mapping[str, int] | None = None,
) -> Explanation:
    """Explain why each route of a run found or lost passages, like the page Why.

    `run` is the result of `compare`, or the id of a stored run. `passage` is the id of a passage. Without
    one, the relevant passages of the question are explained, as labelled with its corpus, by people, in the
    label set `labels`, or in `grades` (0-3 by passage id). `route` selects one route. The
    first `depth` hits count.

    Raises BadInput for a run, route, passage or label set that does not exist.
    """
    count(depth, "depth", most=1000)
    engine = engines.shared_engine()
    found = engine.run(text(run, "run")) if not isinstance(run, Run) else run
    known, corpus = Gold(grades or {}), None  # the corpus as it is indexed now
    try:
        if grades is None:
            known = gold(engine, found, None if labels is None else text(labels, "labels"))
    except RouteScopeError:  # its corpus is not indexed here: the run is explained without labels
        if labels is not None:
            raise
    with suppress(RouteScopeError):
        corpus = engine.corpus(found.corpus)
    results = found.results
    if route is not None:
        results = tuple(one for one in results if one.route == route)
        if not results:
            ran = ", ".join(one.route for one in found.results) or "none"
            raise BadInput(f"run {found.id} has no route {route!r}; it has: {ran}")
    funnels = [PassageTrace(one, known.quotes, unmet_in(corpus), known.before) for one in found.results]
    own = [one for one in funnels if one.result in results]
    wanted = known.wanted()
    beyond = [id for id in (*known.grades, *([passage] if passage else ())) if id not in found.passages]
    passages = {**found.passages, **(corpus.by_ids(beyond) if corpus is not None else {})}
    if passage is not None and text(passage, "passage") not in passages:
        where = "" if corpus is not None else f" (corpus {found.corpus} is not indexed here)"
        raise BadInput(f"run {found.id} and its corpus have no passage {passage!r}{where}")
    names = {id: name_of(corpus, one) for id, one in passages.items()} if corpus is not None else {}
    terms = corpus.analyzer.terms if corpus is not None else None
    made: tuple[Diagnosis, ...] = ()
    lines: list[str] = []
    if passage is None and wanted:
        all_made = diagnose(found, funnels, wanted, known.ndcg(found.results), depth)
        made = tuple(one for one in all_made if one.result in results)
        mode = mode_of(found, wanted, known.mode, passages, terms)
        lines += report(made, mode, depth, passages, names)
    if passage is not None:
        ids = [passage]
    else:
        ids = list(dict.fromkeys(furthest(funnel, label) for label in wanted for funnel in own))
    if not ids:
        lines.append(
            "This question has no labels, so no route can be judged. Name the passage that you expected."
        )
    for id in ids:
        graded = f", graded {known.grades[id]}" if id in known.grades else ""
        lines += ["", f"{title(id, passages, names)} [{id}]{graded}"]
        lines += passage_report(own, id, depth)
        if not held(funnels, id) and corpus is not None and id in passages:
            lines.append(unfound(relation(corpus, found.query.text, passages[id])))
    return Explanation(
        found, depth, known.grades, {id: passages[id] for id in ids if id in passages}, made, tuple(lines)
    )
