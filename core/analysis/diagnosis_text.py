"""A diagnosis in sentences, the same on the page Why and in the Python interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from core.analysis.diagnosis import Diagnosis, Mode, held
from core.analysis.lineage import is_search
from core.analysis.passage_trace import LossEvidence, PassageTrace
from core.domain.types import Passage

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus

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
