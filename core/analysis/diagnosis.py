"""Why each route found or lost the labelled passages: its hits, the step to blame, and a possible fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.analysis.passage_trace import LossEvidence, PassageTrace
from core.analysis.run_view import recorded, top
from core.domain.format import milliseconds
from core.domain.outputs import Rewrite
from core.domain.relevance import RelevantLabel
from core.domain.types import Passage, RouteResult, Run, Span

DEEPER = (5, 10, 20, 50)  # depths that a page offers
MODES = {
    "ambiguous_followup": "a follow-up that needs the conversation",
    "vocabulary_mismatch": "no terms in common with the passage",
    "exact_identifier": "an exact identifier",
    "multi_hop": "evidence in several documents",
    "comparison": "a comparison that needs evidence for each side",
    "no_answer": "no answer in the corpus",
    "outside_knowledge": "needs knowledge from outside the corpus",
    "no_retrieval": "needs no retrieval",
    "structured": "needs tables",
    "abstract": "an abstract question",
    "plain": "a plain question",
}


@dataclass(frozen=True, slots=True)
class Mode:
    """The reason a question is hard: `labelled` by its author, or else inferred; `why` says from what."""

    name: str
    labelled: bool
    why: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One route on one labelled question.

    `found` of `of` labels (`unit`: passages or documents) are in the top, `best` is the best rank of one,
    `lost` the fates of the others, each by the passage of it that came furthest. `blamed` is the fate that
    stands for the step which lost most of them, `there` how many it lost. `repair` is the route that has
    most of them in its top, `repaired` how many; `advice` says it in words.
    """

    result: RouteResult
    found: int
    of: int
    best: int | None
    ndcg: float | None
    lost: tuple[tuple[str, LossEvidence], ...]
    blamed: LossEvidence | None
    there: int
    repair: RouteResult | None
    repaired: int
    advice: str
    unit: str = "passage"

    @property
    def well(self) -> bool:
        """Return whether every label was found."""
        return self.found == self.of

    @property
    def ran(self) -> bool:
        """Return whether there is a ranking to judge."""
        return self.result.status == "ok"


def diagnose(
    run: Run,
    funnels: Sequence[PassageTrace],
    wanted: Sequence[RelevantLabel],
    measured: Mapping[str, float],
    depth: int,
) -> list[Diagnosis]:
    """Return a diagnosis of every route, worst first; routes without a ranking come after those that lost
    something. `measured` is nDCG@10 by route.
    """
    if not wanted:
        return []
    tops = {
        funnel.result.route: {label.id for label in wanted if (_rank(funnel, label) or depth + 1) <= depth}
        for funnel in funnels
        if funnel.result.status == "ok"
    }

    def advised(lost: Sequence[tuple[str, LossEvidence]], repair: RouteResult | None, repaired: int) -> str:
        """Return the route that has the lost passages, else the advice of the spans."""
        if repair is not None:
            what = "it" if len(lost) == 1 else f"all {len(lost)}" if repaired == len(lost) else f"{repaired}"
            of = f" of these {len(lost)}" if repaired < len(lost) else ""
            rest = " No route has all." if repaired < len(lost) else ""
            soon = milliseconds(ranked_ms(repair))
            return f"{repair.title} has {what}{of} in its top {depth} (ranking in {soon}).{rest}"
        id, fate = min(lost, key=lambda one: one[1].rank or 10**9)
        sentences = [
            f"No route in this run has {'it' if len(lost) == 1 else 'any of them'} in its top {depth}."
        ]
        deeper = next((one for one in DEEPER if one > depth and fate.rank and fate.rank <= one), None)
        if deeper:
            sentences.append(f"The top {deeper} of this route has {'it' if len(lost) == 1 else 'one'}.")
        if fate.step is not None and fate.was is not None and fate.was <= depth:
            sentences.append(f"Before “{fate.step.name}”, it was at rank {fate.was}.")
        best = next(iter(held(funnels, id)), None)
        if best is None:
            sentences.append("No list in this run contains it: only a different search can find it.")
        elif best.rank <= depth and best.span.parent is None:
            text = f" for {best.text}" if best.text else ""
            sentences.append(f"“{best.span.name}”{text} has it at rank {best.rank} in {best.title}.")
        rewrites = [one.output for result in run.results for one in recorded(result.spans, Rewrite)]
        if run.query.history and not any(one.changed for one in rewrites):
            sentences.append("The question is a follow-up, and no route in this run rewrote it.")
        return " ".join(sentences)

    def diagnosed(funnel: PassageTrace) -> Diagnosis:
        result = funnel.result
        own = tops.get(result.route, set())
        places = [rank for label in wanted if (rank := _rank(funnel, label)) is not None]
        missing = [label for label in wanted if label.id not in own]
        lost = tuple((id, funnel.fate(id, depth)) for id in (furthest(funnel, label) for label in missing))
        by_step: dict[tuple[str, str], list[LossEvidence]] = {}
        for _, fate in lost:
            by_step.setdefault((fate.step.name if fate.step is not None else "", fate.kind), []).append(fate)
        blamed = max(by_step.values(), key=len, default=[])
        # the route with most of them in its top; of equal ones that whose ranking is ready soonest alone
        ids = {label.id for label in missing}
        others = [one for one in run.results if one.route in tops and one.route != result.route]
        others.sort(key=lambda one: (-len(ids & tops[one.route]), ranked_ms(one), one.route))
        repaired = len(ids & tops[others[0].route]) if others else 0
        repair = others[0] if repaired else None
        advice = advised(lost, repair, repaired) if lost and result.status == "ok" else ""
        return Diagnosis(
            result,
            len(own),
            len(wanted),
            min(places, default=None) if result.status == "ok" else None,
            measured.get(result.route),
            lost,
            next(iter(blamed), None),
            len(blamed),
            repair,
            repaired,
            advice,
            "document" if all(label.document for label in wanted) else "passage",
        )

    return sorted(map(diagnosed, funnels), key=_badness)


def furthest(funnel: PassageTrace, label: RelevantLabel) -> str:
    """Return the passage of a label that ranks best in the final ranking, else in any list of the route."""
    for places in (funnel.flow.final, *map(funnel.flow.places, reversed(funnel.flow.lists))):
        if ranked := [id for id in label.passages if id in places]:
            return min(ranked, key=lambda id: places[id])
    return label.passages[0] if label.passages else label.id


def _rank(funnel: PassageTrace, label: RelevantLabel) -> int | None:
    """Return the best rank of a label's passages in the final ranking."""
    return min((rank for id in label.passages if (rank := funnel.flow.final.get(id))), default=None)


def mode_of(
    run: Run,
    wanted: Sequence[RelevantLabel],
    labelled: str | None,
    passages: Mapping[str, Passage],
    terms: Callable[[str], Iterable[str]] | None = None,
) -> Mode | None:
    """Return the failure mode of the question: the author's, else a measured one, or None if nothing shows.

    `passages` are the relevant ones by id; `terms` is how BM25 sees a text here, where the corpus is at hand.
    """
    if labelled:
        return Mode(MODES.get(labelled, labelled.replace("_", " ")), True, "labelled by its author")
    if run.query.history:
        turns = len(run.query.history)
        why = "it follows 1 message" if turns == 1 else f"it follows {turns} messages"
        return Mode(MODES["ambiguous_followup"], False, why)
    from core.steps.gate import exact_terms

    if exact := exact_terms(run.query.text):
        return Mode(MODES["exact_identifier"], False, f"it names {', '.join(one.text for one in exact[:3])}")
    if terms is not None:
        # the labels none of whose passages, as far as they are known, shares a term
        asked = set(terms(run.query.text))
        known = [[passages[id] for id in label.passages if id in passages] for label in wanted]
        shares = [any(asked & set(terms(f"{p.title}\n{p.text}")) for p in some) for some in known if some]
        if missing := shares.count(False):
            why = f"{missing} of {len(wanted)} relevant passages share no term with it"
            return Mode(MODES["vocabulary_mismatch"], False, why)
    documents = {label.passages[0].rsplit(":", 1)[0] for label in wanted if label.passages}
    if len(documents) > 1:
        return Mode(MODES["multi_hop"], False, f"its relevant passages are in {len(documents)} documents")
    return None


def _badness(one: Diagnosis) -> tuple[int, float, float, int]:
    groups = {"failed": 1, "timeout": 1, "unavailable": 4, "cancelled": 4}
    group = (3 if one.well else 0) if one.ran else groups.get(one.result.status, 2)
    return group, one.found, one.ndcg or 0.0, -(one.best or 10**6)


def ranked_ms(result: RouteResult) -> float:
    """Return the milliseconds on the route's own clock until its last list was made, without the answer after
    it.
    """
    ends = [span.start_ms + span.ms for span in top(result) if span.hits is not None]
    return max(ends, default=result.ms)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A list somewhere in a run that had a passage."""

    route: str
    title: str
    span: Span
    rank: int
    text: str | None  # searched with, where the step is a search


def held(funnels: Iterable[PassageTrace], id: str) -> list[Occurrence]:
    """Return each list of a run's routes that has the passage, best rank first; a shared list comes once."""
    found: dict[object, Occurrence] = {}
    for funnel in funnels:
        for stage in funnel.stages(id):
            if stage.rank is not None:
                text = funnel.asked(stage.span)
                same = (stage.span.name, text, stage.span.hits)
                result = funnel.result
                found.setdefault(same, Occurrence(result.route, result.title, stage.span, stage.rank, text))
    return sorted(found.values(), key=lambda one: one.rank)
