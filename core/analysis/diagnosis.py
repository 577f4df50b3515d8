"""Why each route found or lost the labelled passages: its hits, the step to blame, and a possible fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from core.analysis.lineage import is_search
from core.analysis.passage_trace import LossEvidence, PassageTrace
from core.analysis.run_view import recorded, top
from core.corpus.corpus import Corpus
from core.domain.format import milliseconds
from core.domain.outputs import Rewrite
from core.domain.program import table
from core.domain.relevance import RelevantLabel
from core.domain.types import Passage, RouteResult, Run, Span

DEEPER = (5, 10, 20, 50)  # depths that a page offers
MODES: dict[str, str] = table(__file__)["modes"]


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
            soon = milliseconds(ranked_ms(repair))
            return f"{repair.title} has {repaired} of {len(lost)} in its top {depth} (ranking in {soon})."
        id, fate = min(lost, key=lambda one: one[1].rank or 10**9)
        told = [f"No route in this run has a lost passage in its top {depth}."]
        if deeper := next((one for one in DEEPER if one > depth and fate.rank and fate.rank <= one), None):
            told.append(f"The top {deeper} of this route has one.")
        if fate.step is not None and fate.was is not None and fate.was <= depth:
            told.append(f"Before “{fate.step.name}”, it was at rank {fate.was}.")
        best = next(iter(held(funnels, id)), None)
        if best is None:
            told.append("No list in this run contains it: only a different search can find it.")
        elif best.rank <= depth and best.span.parent is None:
            text = f" for {best.text}" if best.text else ""
            told.append(f"“{best.span.name}”{text} has it at rank {best.rank} in {best.title}.")
        rewrites = (one.output for result in run.results for one in recorded(result.spans, Rewrite))
        if run.query.history and not any(one.changed for one in rewrites):
            told.append("The question is a follow-up, and no route in this run rewrote it.")
        return " ".join(told)

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


STEPLESS = {
    "never retrieved": "every search",
    "not read": "reading",
    "damaged in reading": "reading",
    "split": "chunking",
    "removed by a filter": "the run's filters",
}  # blamed where no single step is
OFFERED = 3  # lists that are named as having had a passage
Fated = tuple[PassageTrace, LossEvidence]


@dataclass(frozen=True, slots=True)
class Unfound:
    """The relation of a passage in no list to the question: the terms they share of those `asked`, and its
    place among the `scored` passages of BM25 (None: BM25 gives it no score).
    """

    shared: Sequence[str]
    asked: int
    place: int | None
    scored: int


def headline(made: Sequence[Diagnosis], depth: int, answers: Sequence[bool | None] = ()) -> str:
    """Return the run in one sentence: how many routes have everything, what the others lost it to, and how
    many of `answers` are right (None: not judged).
    """
    ran = [one for one in made if one.ran]
    well = sum(one.well for one in ran)
    of, unit = (ran[0].of, ran[0].unit) if ran else (0, "passage")
    what = f"the relevant {unit}" if of == 1 else f"all {of} relevant {unit}s"
    sentence = f"{well} of {len(ran)} routes have {what} in their top {depth}"
    blamed = [one.blamed for one in ran if one.blamed is not None]
    causes = Counter(one.kind if one.step is None else f"{one.kind} at “{one.step.name}”" for one in blamed)
    for cause, count in causes.most_common(1):
        if count > 1:
            sentence += f"; {count} of the other {len(ran) - well} lost it the same way ({cause})"
    judged = [right for right in answers if right is not None]
    if wrong := judged.count(False):
        sentence += f", {'but' if well else 'and'} {wrong} of {len(judged)} answers {_be(wrong)} wrong"
    elif judged:
        sentence += f", and {len(judged)} of {len(judged)} answers {_be(len(judged))} right"
    return f"{sentence}."


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def hard(mode: Mode) -> str:
    """Return the source of the mode: the author's reason, or that it was inferred and from what."""
    return mode.why if mode.labelled else f"inferred, not labelled: {mode.why}"


def groups(made: Sequence[Diagnosis]) -> list[list[Diagnosis]]:
    """Return the routes that lost something, those whose verdicts read the same together, worst first."""
    numbers: dict[object, int] = {}
    found = []
    for one in made:
        if one.ran and not one.well:
            same = (one.found, one.advice, tuple((id, fate.words) for id, fate in one.lost))
            found.append((numbers.setdefault(same, len(numbers)), one))
    ordered = sorted(found, key=lambda pair: pair[0])
    return [[one for _, one in group] for _, group in groupby(ordered, key=lambda pair: pair[0])]


def verdict(group: Sequence[Diagnosis], depth: int) -> str:
    """Describe the shared verdict of a group of routes in one sentence."""
    one = group[0]
    best = f", best rank {one.best}" if one.best is not None else ", none anywhere in the ranking"
    scores = sorted({f"{each.ndcg:.3f}" for each in group if each.ndcg is not None})
    measure = f", nDCG@10 {'–'.join(scores[:: max(1, len(scores) - 1)])}" if scores else ""
    return f"{one.found} of {one.of} relevant {one.unit}s in the top {depth}{best}{measure}."


def losses(one: Diagnosis) -> str:
    """Return how many labels were lost in which way, or "" for a single one."""
    if len(one.lost) < 2:
        return ""
    kinds = Counter(fate.kind for _, fate in one.lost).most_common()
    return f"Lost: {', '.join(f'{count} {kind}' for kind, count in kinds)}."


def blamed(one: Diagnosis) -> tuple[str, str]:
    """Return the step that lost most, and how; two empty strings if none is to blame."""
    if one.blamed is None:
        return "", ""
    step = one.blamed.step
    many = f"lost {one.there} of {len(one.lost)}" if len(one.lost) > 1 else ""
    name = step.name if step is not None else STEPLESS.get(one.blamed.kind, "the route itself")
    return name, " · ".join(part for part in (one.blamed.kind, many) if part)


def in_top(fate: LossEvidence, depth: int) -> bool:
    """Return whether the passage is among the first `depth`."""
    return fate.rank is not None and fate.rank <= depth


def fates(funnels: Sequence[PassageTrace], id: str, depth: int) -> list[Fated]:
    """Return the fate of a passage in each route that has a ranking."""
    return [(funnel, funnel.fate(id, depth)) for funnel in funnels if funnel.result.status == "ok"]


def alike(known: Iterable[Fated], depth: int) -> list[list[Fated]]:
    """Return the routes that did not simply find a passage, those of the same fate together, the lost ones
    first.
    """
    rows: dict[tuple[str, str], list[Fated]] = {}
    for funnel, fate in known:
        if not in_top(fate, depth) or fate.kind != "found":
            rows.setdefault((fate.kind, fate.words), []).append((funnel, fate))
    return sorted(rows.values(), key=lambda group: (in_top(group[0][1], depth), -len(group)))


def best_searches(funnels: Sequence[PassageTrace], id: str) -> str | None:
    """Return the searches that found a passage, with its rank in each; "" if no search did, None if no list
    has it.
    """
    lists = held(funnels, id)
    if not lists:
        return None
    places = [
        f"rank {one.rank} in “{one.span.name}”{f' for {one.text}' if one.text else ''} ({one.title})"
        for one in [one for one in lists if is_search(one.span)][:OFFERED]
    ]
    return f"Best search ranks: {'; '.join(places)}." if places else ""


def relation(corpus: Corpus, question: str, passage: Passage) -> Unfound:
    """Describe how a question and a passage of `corpus` relate in the index."""
    asked = set(corpus.analyzer.questions.terms(question))
    shared = asked & set(corpus.analyzer.terms(f"{passage.title}\n{passage.text}"))
    place, scored = corpus.bm25_place(question, passage.id) if shared else (0, 0)
    return Unfound(sorted(shared), len(asked), place or None, scored)


def unfound(found: Unfound) -> str:
    """Return why no list has a passage, as far as the index can show."""
    if not found.shared:
        return "It shares no term with the question. Only dense retrieval or a rewrite can find it, not BM25."
    ranked = f"BM25 ranks it {found.place:,} of {found.scored:,}" if found.place else "BM25 gives it no score"
    terms = ", ".join(found.shared)
    terms = terms if len(terms) <= 120 else f"{terms[:119].rstrip()}…"
    return f"It shares {len(found.shared)} of {found.asked} terms with the question ({terms}); {ranked}."


def report(
    made: Sequence[Diagnosis],
    mode: Mode | None,
    depth: int,
    passages: Mapping[str, Passage],
    names: Mapping[str, str] | None = None,
) -> list[str]:
    """Return lines on every route for a labelled question; routes that lost something come first."""
    lines = [headline(made, depth)]
    if mode is not None:
        lines.append(f"What makes this question hard: {mode.name} ({hard(mode)})")
    for group in groups(made):
        one = group[0]
        lines += ["", f"{', '.join(each.result.title for each in group)}: {verdict(group, depth)}"]
        if told := losses(one):
            lines.append(told)
        for id, fate in one.lost:
            lines.append(f"- {title(id, passages, names)}: {fate.words}" if one.of > 1 else f"- {fate.words}")
        step, how = blamed(one)
        lines += [f"Lost at: {step} ({how})", f"Possible fix: {one.advice}"]
    good = sorted((one for one in made if one.ran and one.well), key=lambda one: one.best or 0)
    if good:
        listed = (f"{one.result.title} (best rank {one.best}, nDCG@10 {one.ndcg or 0:.3f})" for one in good)
        lines += ["", f"Routes with every relevant passage: {', '.join(listed)}"]
    lines += [
        f"No ranking: {one.result.title}. {one.blamed.words if one.blamed else ''}".rstrip()
        for one in made
        if not one.ran
    ]
    return lines


def passage_report(funnels: Sequence[PassageTrace], id: str, depth: int) -> list[str]:
    """Return the fate of one passage in every route, line by line: the routes that lost it first."""
    known = fates(funnels, id, depth)
    inside = sum(in_top(fate, depth) for _, fate in known)
    searches = best_searches(funnels, id)
    where = "No list in this run contains it." if searches is None else searches
    lines = [f"{inside} of {len(known)} routes have it in their top {depth}.", *([where] if where else [])]
    for group in alike(known, depth):
        names = ", ".join(funnel.result.title for funnel, _ in group)
        fate = group[0][1]
        said = fate.words.lower().startswith(fate.kind)
        kind = "" if in_top(fate, depth) or said else f"{fate.kind}. "
        lines.append(f"- {names}: {kind}{fate.words}")
    if ranked := sorted(
        (fate.rank or 0, funnel.result.title) for funnel, fate in known if fate.kind == "found"
    ):
        lines.append(f"Found: {', '.join(f'{name} at rank {rank}' for rank, name in ranked)}.")
    return lines


def title(id: str, passages: Mapping[str, Passage], names: Mapping[str, str] | None = None) -> str:
    """Return the title of a passage for a sentence."""
    known = passages.get(id)
    return (names or {}).get(id) or (known.title or known.doc_id if known else id)
