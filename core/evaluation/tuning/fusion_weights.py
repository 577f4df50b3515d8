"""Fitting weights from what is wanted to the kept file: the same for the command line and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core.analysis.metrics import titled
from core.backends import fusion_weights as kept
from core.backends.fusion_weights import FEATURES, LISTS, FittedWeights
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, Cancelled, Unavailable
from core.domain.needs import Need
from core.engine.availability import missing
from core.evaluation.finding import Finding, compared, mean
from core.evaluation.finding import figures as shown
from core.evaluation.templating import say
from core.evaluation.tuning.learn import BASIC, EQUAL, METRIC, Counts, Progress, collect, learned, refusal
from core.evaluation.tuning.sweep_split import ALL, DEV, OTHER, TEST, Split, names, split
from core.routes.registry import routes

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet


@dataclass(frozen=True, slots=True)
class Wanted:
    """The specification of a fit. The labels are those of a saved `evaluation`, of the set `labels` that
    people made, or else the corpus' own. `split`: the questions to fit on, the others are held out; None:
    "dev" if other splits exist, else all but "test". No `lists`: all that can be searched.
    """

    corpus: str
    name: str
    lists: tuple[str, ...] = ()
    evaluation: str | None = None
    labels: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """The labels of a `Wanted`: `questions` to fit on and those `held_out`, all with a relevant passage.

    `rivals` are routes measured before: route -> question -> nDCG@10. `of` says it in words.
    """

    labelled: LabelledSet
    questions: tuple[str, ...]
    held_out: tuple[str, ...]
    rivals: Mapping[str, Mapping[str, float]]
    of: str


def available(engine: Engine, corpus: str) -> dict[str, str | None]:
    """Return for each list why it cannot be searched on a corpus, or None if it can."""
    gaps = missing(engine, corpus)
    return {name: next((gaps[need] for need in kept.needs([name]) if need in gaps), None) for name in LISTS}


def material(engine: Engine, wanted: Wanted) -> Material:
    """Return the labels to fit on. Raises BadInput or Unavailable if none exist, or for another state."""
    labelled, rivals, origin = _origin(engine, wanted)
    on, parts = divided(labelled, wanted.split)
    if on != ALL:
        origin += f", questions {'of split ' if on != OTHER else ''}{on}"
    return Material(labelled, parts.chosen_on, parts.held_out, rivals, origin)


def splits(labelled: LabelledSet) -> list[str]:
    """Return the splits of the labelled questions that can be fitted on, "all" last."""
    ids = _labelled(labelled)
    known = names(labelled, ids)
    of = {question.id: question.split for question in labelled.questions}
    others = DEV not in known and any(of[id] != TEST for id in ids)
    return [OTHER, *known] if TEST in known and others else known


def divided(labelled: LabelledSet, on: str | None = None) -> tuple[str, Split]:
    """Return the split that is fitted on (see `Wanted`), and the labelled questions divided by it."""
    known = splits(labelled)
    if on is None and TEST not in known:
        on = DEV if DEV in known and len(known) > 2 else ALL
    parts = split(labelled, _labelled(labelled), on)
    return on or (DEV if DEV in known else OTHER), parts


def _labelled(labelled: LabelledSet) -> list[str]:
    return [question.id for question in labelled.questions if labelled.labelled(question.id)]


def perform(
    engine: Engine,
    wanted: Wanted,
    progress: Progress = lambda _done, _of: None,
    stage: Callable[[str], None] = lambda _said: None,
    ended: Callable[[], bool] = lambda: False,
) -> FittedWeights:
    """Search, fit, cross-validate and store the weights under their name, replacing earlier ones. Raises
    BadInput for too few labels or lists that cannot be fused, Unavailable for a missing list, Cancelled when
    `ended` turns true.
    """
    name = kept.checked(wanted.name)
    lists = chosen_lists(engine, wanted)
    there = material(engine, wanted)
    if lacking := too_few(there.labelled, there.questions, len(lists)):
        raise BadInput(lacking)
    stage("searching for the labelled questions")
    ids = {*there.questions, *there.held_out}
    asked = replace(there.labelled, questions=tuple(q for q in there.labelled.questions if q.id in ids))
    collected = collect(engine, asked, wanted.corpus, lists, progress, ended)

    def said(what: str) -> None:
        if ended():
            raise Cancelled("stopped by the user")
        stage(what)

    found = learned(
        collected, name, lists, there.questions, there.held_out, of=there.of, rivals=there.rivals, stage=said
    )
    kept.write(engine.settings.home, found)
    return found


def too_few(labelled: LabelledSet, questions: Sequence[str], lists: int) -> str | None:
    """Why that many lists cannot be fitted on the labels of `questions` whatever the lists find, or None."""
    return refusal(len(questions), relevant(labelled, questions), lists)


def relevant(labelled: LabelledSet, questions: Sequence[str]) -> int:
    """Return how many relevant passages `questions` have."""
    return sum(grade >= labelled.relevant_from for id in questions for grade in labelled.qrels[id].values())


def chosen_lists(engine: Engine, wanted: Wanted) -> tuple[str, ...]:
    """Return the lists to fuse, in order. Raises BadInput for an unknown list, Unavailable for a list that
    cannot be searched.
    """
    there = available(engine, wanted.corpus)
    for name in wanted.lists:
        if name not in there:
            raise BadInput(f"there is no list {name!r}; there are: {', '.join(there)}")
        if why := there[name]:
            raise Unavailable(f"the list {name} cannot be searched: {why}")
    return tuple(n for n, why in there.items() if (n in wanted.lists if wanted.lists else why is None))


class Fitting(BackgroundJob):
    """One `perform` in a thread of its own, followed and stopped from a page; stopped, nothing is kept."""

    kind = "fit"

    def __init__(self, engine: Engine, wanted: Wanted) -> None:
        super().__init__(f"{wanted.name} for {wanted.corpus}", home=engine.settings.home)
        self.wanted = wanted
        self.stage = "beginning"
        self.fitted: FittedWeights | None = None
        self._engine = engine

    @property
    def cancelled(self) -> bool:
        """Return whether it was stopped before its end."""
        return self._cancel.is_set() and self.fitted is None

    @property
    def left(self) -> float | None:
        """Seconds of searching left; None while something else is done."""
        return super().left if self.finished < self.total else None

    def _do(self) -> None:
        def follow(done: int, of: int) -> None:
            self.finished, self.total = done, of

        self.fitted = perform(
            self._engine, self.wanted, follow, lambda said: setattr(self, "stage", said), self._cancel.is_set
        )


def begin(engine: Engine, wanted: Wanted) -> Fitting:
    """Begin fitting for a corpus in the background; asked again meanwhile, what is under way.

    Raises BadInput or Unavailable at once for a name or lists that are not allowed.
    """
    kept.checked(wanted.name)
    chosen_lists(engine, wanted)
    key = engine.settings.home, wanted.corpus
    return jobs.begin(Fitting, key, lambda: Fitting(engine, wanted))


def under_way(engine: Engine, corpus: str) -> Fitting | None:
    """Return the last job that this process began for a corpus."""
    return jobs.latest(Fitting, (engine.settings.home, corpus))


def _origin(engine: Engine, wanted: Wanted) -> tuple[LabelledSet, Mapping[str, Mapping[str, float]], str]:
    from core.evaluation import experiment_store
    from core.evaluation.experiment import prepare
    from core.evaluation.spec import Spec

    if wanted.evaluation is None:
        spec = Spec(wanted.corpus, BASIC, split=ALL, labels=wanted.labels)
        found = prepare(engine, spec).labelled
        if wanted.split and wanted.split not in {ALL, *(q.split for q in found.questions)}:
            found = prepare(engine, replace(spec, split=wanted.split)).labelled
        return found, {}, f"the set {wanted.labels}" if wanted.labels else f"the questions of {found.name}"
    one = experiment_store.opened(experiment_store.place(engine.settings, wanted.evaluation))
    if one.spec.get("corpus") != wanted.corpus:
        raise BadInput(
            f"the evaluation {one.name} is of corpus {one.spec.get('corpus')!r}, not of {wanted.corpus!r}"
        )
    made_of = one.figures.get("fingerprint")
    if made_of is not None and made_of != engine.corpus(wanted.corpus).fingerprint:
        raise BadInput(
            f"corpus {wanted.corpus} was reindexed since evaluation {one.name}; its labels refer to earlier "
            "passages. Evaluate again, or fit on the labels themselves"
        )
    known = routes()
    rivals = {
        route: {id: row[METRIC] for id, row in by.items()}
        for route, by in one.values.items()
        if route not in known or Need.WEIGHTS not in known[route].needs  # fitted weights know the answers
    }
    return one.labelled, rivals, f"the evaluation {one.name}"


CALLED = {  # what a weight is for, in words
    "score": "for a score at the list's highest",
    "listed": "for being in the list",
    "1/rank": "for being first",
}


def called(name: str) -> str:
    """Return the name of a route or a fusion by hand."""
    if name == EQUAL:
        return "the same lists with equal weights"
    known = routes().get(name)
    return known.title if known else name


def labels(found: Counts | Mapping[str, Any]) -> str:
    """Return the labels that the weights are fitted on, and the effect of missing ones."""
    n = found if isinstance(found, Counts) else Counts(**found)
    return say("weights.labels", n)


def worth(fitted: FittedWeights) -> list[str]:
    """Return the finding first: the figures of the weights on questions that they were not fitted on."""
    lines = []
    for part, where in (
        ("held out", "On held-out questions"),
        ("out of fold", "By cross-validation on the questions they were fitted on"),
    ):
        figures = fitted.made.get(part)
        if figures:
            found = mean("", titled(METRIC), figures[METRIC], figures["ci95"], figures["n"])
            lines.append(f"{where}: {shown(found)}.")
    return lines


def rivals(fitted: FittedWeights, part: str, group: str = "against") -> list[Finding]:
    """Return the comparisons of a part ("out of fold", "held out"): with fusions by hand, or routes
    "measured".
    """
    found = fitted.made.get(part, {}).get(group, {})
    return [_compared("the fusion by fitted weights", called(name), one) for name, one in found.items()]


def left_out(fitted: FittedWeights) -> list[Finding]:
    """Return the effect of leaving out each list on the figure out of fold; `before` is the mean without
    it.
    """
    return [_compared("Without", LISTS[name], one) for name, one in fitted.made.get("without", {}).items()]


def most(fitted: FittedWeights) -> list[tuple[str, float]]:
    """Each list with the score it adds to its first passage, most first: the sum of the list's weights."""
    tops = [(LISTS[name], sum(row)) for name, row in zip(fitted.lists, fitted.weights, strict=True)]
    return sorted(tops, key=lambda one: -one[1])


def weights(fitted: FittedWeights) -> str:
    """Return the weights in a sentence or three."""
    below = [
        f"{LISTS[name]} {CALLED[feature]}"
        for name, row in zip(fitted.lists, fitted.weights, strict=True)
        for feature, value in zip(FEATURES, row, strict=True)
        if value < 0
    ]
    return say("weights.weights", most(fitted), below)


def _compared(subject: str, name: str, one: Mapping[str, Any]) -> Finding:
    return compared(one, subject, name, titled(METRIC), one[METRIC])
