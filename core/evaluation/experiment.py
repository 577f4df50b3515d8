"""One evaluation from what is wanted to its figures: the same for the command line and the pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.analysis.remarks import command
from core.analysis.token_usage import Prices, prices_in
from core.backends.external import run_files
from core.backends.workers.place import WorkPlace
from core.corpus import catalogue, cautions
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput, RouteScopeError, Unavailable
from core.domain.filters import described, read_filters
from core.domain.models import PARAMETER
from core.domain.needs import Need
from core.domain.process_setup import long_lived
from core.domain.types import AnswerStyle
from core.engine.availability import missing, unprepared, why_not, without_model
from core.engine.engine import Engine
from core.evaluation import comparison, costs, dataset, report, runner, scoring, sets, summary
from core.evaluation.answers import TOLD_BY, Executed, measured
from core.evaluation.calibration import calibrated_on
from core.evaluation.counting import document_of
from core.evaluation.dataset import LabelledSet
from core.evaluation.diff.questions import record
from core.evaluation.experiment_store import FIGURES, RUNS, opened, write_labelled
from core.evaluation.judge.correction import with_corrected
from core.evaluation.judge.nuggets import check_nuggets, judged
from core.evaluation.outcome import Journal, Outcomes
from core.evaluation.runner import Ended, Plan, spread
from core.evaluation.spec import Spec
from core.evaluation.templating import say
from core.routes.declare import Route
from core.routes.registry import pick, pipelines
from core.store import Store

Progress = Callable[[int, int], None]  # (questions done, of how many)
Beside = Callable[["Store | None"], AbstractContextManager[runner.After]]  # what is done after each question


MANY = 2000  # passages from which what a question reads is seldom what an earlier one read


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked spec: the questions drawn, the plan for each, and remarks on it. `of`: how many questions
    they were drawn from, None if all are asked.
    """

    spec: Spec
    labelled: LabelledSet
    plan: Plan
    baseline: str
    warnings: tuple[str, ...]
    of: int | None
    cannot: Mapping[str, str] = field(default_factory=dict)  # by route: why it cannot run, and what to do


def prepare(engine: Engine, spec: Spec, found: dataset.Found | None = None) -> Prepared:
    """Check `spec`; raises BadInput or Unavailable with what is wrong. The corpus must be indexed.

    `found` are its questions where they were read before. An audit does not ask the questions on which a
    threshold of its routes was chosen.
    """
    for run in spec.runs:
        own, _, file = run.partition("=")
        if run_files.used(own) is None:
            raise BadInput(f"route {own!r} is the file {file}, which cannot be asked: give eval --run again")
    chosen, waiting = _routes(engine, spec)
    names = tuple(route.name for route in chosen)
    for name in spec.parameters:
        if name not in names:
            raise BadInput(f"parameters for {name!r}, which is not among the routes: {', '.join(names)}")
    parameters = {route.name: route.settle(spec.parameters.get(route.name, {})) for route in chosen}
    baseline = summary.check_baseline(spec.baseline, names)
    corpus = engine.corpus(spec.corpus)
    labelled, said = _questions(engine, spec, found)
    if spec.nuggets:
        check_nuggets(engine, labelled)
    decisions = {one for route in pick(list(spec.audit)) for one in route.decides} if spec.audit else set()
    chosen_on = calibrated_on(engine, decisions, labelled.name)
    if unasked := chosen_on & {question.id for question in labelled.questions}:
        others = tuple(question for question in labelled.questions if question.id not in unasked)
        labelled = replace(labelled, questions=others)
        said.append(f"{len(unasked)} questions are left out: a threshold in use was chosen on them")
    drawn = labelled.sample_modes(spec.per_mode, spec.seed) if spec.per_mode else labelled
    drawn = drawn.sample(spec.queries, spec.seed) if spec.queries else drawn
    now = engine.settings
    style = AnswerStyle(
        spec.answer_by or now.answer_by,
        spec.answer_order or now.answer_order,
        now.answer_evidence if spec.evidence is None else spec.evidence,
    )
    given = {name: values for name, values in parameters.items() if spec.parameters.get(name)}
    where = read_filters(spec.filters)
    allowed = corpus.allowed(where)  # raises for a field that there is not
    if allowed is not None:
        kept = int(allowed.sum())
        said.append(f"{kept:,} of {corpus.size:,} passages meet {described(where)}; others count as lost")
    plan = Plan(
        corpus.name, names, given, spec.timing or now.timing, style if spec.answers else None, where=where
    )
    gaps = missing(engine, spec.corpus)
    cannot = {route.name: why for route in chosen if (why := why_not(route, gaps, parameters[route.name]))}
    said += [f"{name} cannot run here and fails on every question: {why}" for name, why in cannot.items()]
    said += [one.line() for one in cautions.of_corpus(corpus.info)]
    asked = [question.query.text for question in drawn.questions]
    said += [one.line() for one in cautions.of_questions(asked, corpus.info)]
    said += waiting
    for route in (route for route in chosen if Need.WEIGHTS in route.needs):
        with suppress(RouteScopeError):  # which the route reports itself
            fitted = engine.weights(corpus.name, str(parameters[route.name].get("weights") or ""))
            known = set(fitted.made.get("questions") or ())
            if shared := sum(question.id in known for question in drawn.questions):
                on = (
                    f"{shared} of these {len(drawn.questions)} questions, on which it looks better than it is"
                )
                said.append(f"the weights {fitted.name} of {route.name} were fitted on {on}")
    remembering = [route.name for route in chosen if route.family == "memory"]
    if remembering and not any(question.query.history for question in drawn.questions):
        said.append(f"{', '.join(remembering)}: no question of this set has turns before it (`history`)")
    said += _from_files(names, corpus, drawn)
    if theirs := [route.name for route in chosen if route.external and run_files.used(route.name) is None]:
        said.append(f"{', '.join(theirs)}: a pipeline of your own, whose time is measured from outside")
    warnings = tuple(dict.fromkeys([*corpus.warnings, *said]))
    of = len(labelled.questions) if drawn != labelled else None
    return Prepared(spec, drawn, plan, baseline, warnings, of, cannot)


def _routes(engine: Engine, spec: Spec) -> tuple[list[Route], list[str]]:
    """Return the routes to ask, and remarks on those that embed passages while a question waits.

    Nobody who named no route meant those: on a corpus of many passages they are left out.
    """
    chosen = pick(list(spec.routes)) if spec.routes else without_model(engine, spec.corpus)
    lacking = {route.name: needs for route in chosen if (needs := unprepared(engine, spec.corpus, route))}
    if not lacking:
        return chosen, []
    make = command(dict.fromkeys(need for needs in lacking.values() for need in needs), spec.corpus)
    names = ", ".join(lacking)
    many = engine.corpus(spec.corpus).size >= MANY
    if spec.routes or not many or len(lacking) == len(chosen):
        return chosen, [f"{names}: passages are embedded while each question waits; to prepare: {make}"]
    said = f"left out, as they would embed passages while each question waits: {names}; to measure: {make}"
    return [route for route in chosen if route.name not in lacking], [said]


def perform(
    engine: Engine,
    ready: Prepared,
    *,
    out: Path | None = None,
    fresh: bool = False,
    retry: bool = False,
    progress: Progress = lambda _done, _total: None,
    warn: Callable[[str], None] = lambda _warning: None,
    ended: Ended = lambda: False,
    beside: Beside | None = None,
    workers: WorkPlace | None = None,
) -> tuple[dict[str, Any], LabelledSet, Outcomes]:
    """Ask every question and return the figures; questions already asked in `out` are not asked again.
    `ended` is checked between questions, and also stops a running question; the figures are then marked
    "interrupted". `progress` then starts again with the questions whose nuggets a model assigns.
    `beside` does further work with each question, and receives the store of the runs.
    `workers`: where the questions are asked, None for this process. With `out` everything is also written
    there: see core.evaluation.report and core.evaluation.experiment_store.
    """
    from core.store import Store

    spec, plan, drawn = ready.spec, ready.plan, ready.labelled
    warnings = dict.fromkeys(ready.warnings)

    def in_words(warning: str) -> None:
        warnings[warning] = None
        warn(warning)

    if workers is not None and workers != WorkPlace(1):
        in_words("several workers asked at once: times of those that share a machine are longer than alone")
    count = len(drawn.questions)
    rounds: list[Outcomes] = []
    whole = True
    with long_lived(), spread(workers, engine) as elsewhere, ExitStack() as stack:
        runs: Store | None = None
        for nth, one in enumerate([plan, *_further(plan, spec.repeats)]):
            how: dict[str, Any] = {"ended": ended, "warn": in_words, "workers": elsewhere}
            if out is not None:
                folder, again = (out / f"repeat-{nth + 1}", False) if nth else (out, retry)
                lines = Journal.open(folder, conditions_of(one, engine), fresh=fresh, retry=again)
                how["journal"] = stack.enter_context(lines)
            if nth == 0 and out is not None:
                for path in out.glob(f"{RUNS}*") if fresh else ():
                    path.unlink()
                runs = how["runs"] = stack.enter_context(closing(Store(out / RUNS)))
            if nth == 0 and beside:
                how["after"] = stack.enter_context(beside(runs))
            if nth == 0 and out is not None:
                write_labelled(out, drawn, spec.document())
                record(out, engine.corpus(plan.corpus))

            def counted(done: int, _of: int, before: int = nth * count) -> None:
                progress(before + done, count * spec.repeats)

            found, whole = runner.run(engine, drawn, one, progress=counted, **how)
            rounds.append(found)
            if not whole:
                break
    outcomes = rounds[0]
    prices: dict[str, Prices] = {}  # of the model that a route asks: those that it was begun at, else today's
    for route in pick(list(plan.routes)):
        model = route.settle(plan.parameters.get(route.name, {})).get(PARAMETER, "")
        asked = engine.settings.with_model(model)
        prices[route.name] = (asked.llm_price_prompt, asked.llm_price_completion)
    if out is not None and not fresh and (out / FIGURES).is_file():
        prices |= {name: prices_in(row) for name, row in opened(out).figures["routes"].items()}
    nuggets: dict[str, Any] = {}
    if spec.nuggets and whole:
        drawn, nuggets = judged(engine, engine.corpus(plan.corpus), drawn, outcomes, ended, progress)
        if whole := bool(nuggets):
            in_words(say("judge.nuggets", nuggets))
            if out is not None:
                write_labelled(out, drawn, spec.document())
    executed = executed_of(drawn, outcomes, plan.routes, engine, plan.corpus)
    if remark := executed.remark():
        in_words(remark)
    for strangers in scoring.outside_remarks(outcomes, plan.routes, drawn.qrels):
        in_words(strangers)
    bare = [q.id for q in drawn.questions if q.id in outcomes and not drawn.labelled(q.id)]
    if prediction := comparison.predicted(outcomes, bare):
        in_words(prediction["note"])
    figures: dict[str, Any] = {
        **summary.summarise(
            drawn,
            outcomes,
            plan.routes,
            baseline=ready.baseline,
            extra=executed.values,
            again=rounds[1:],
            prices=prices,
        ),
        **({"queries_judged_by": TOLD_BY} if executed.values else {}),
        "corpus": plan.corpus,
        "fingerprint": engine.corpus(plan.corpus).fingerprint,
        "split": spec.split,
        "sample": None if ready.of is None else {"of": ready.of, "seed": spec.seed},
        "timing": plan.timing,
        **costs.machine_figures(outcomes.values()),
        "answering": asdict(plan.style) if plan.style else None,
        **({"nuggets": nuggets} if nuggets else {}),
        "interrupted": not whole,
        **({"predicted": prediction} if prediction else {}),
        "reading": list(drawn.reading),
        "cannot_run": dict(ready.cannot),
        "warnings": list(warnings),
    }
    for name, file in _files(plan).items():
        figures["routes"][name]["source"] = {"file": file.path.name, "sha256": file.sha256}
    if any(question.drawn for question in drawn.questions):
        figures = with_corrected(figures, drawn, outcomes)
    if out is not None:
        report.write(out, figures, drawn, outcomes)
    return figures, drawn, outcomes


def _from_files(names: Sequence[str], corpus: Corpus, drawn: LabelledSet) -> list[str]:
    """Return remarks on routes whose replies are from a file. Raises BadInput for one that names passages by
    ids alone, of which the corpus has none.
    """
    said = []
    for name in names:
        if (file := run_files.used(name)) is None:
            continue
        named = file.ids()
        ids = {id for pair in named.items() for id in pair}
        documents = {one for id in ids for one in (id, document_of(id)) if corpus.has_document(one)}
        known = {*corpus.by_ids(list(ids)), *(id for id in ids if {id, document_of(id)} & documents)}
        if named and not known:
            none = f"none of the {len(named):,} ids in {file.path.name} is of a passage or document"
            some = f"of corpus {corpus.name}, for example {next(iter(named))!r}"
            raise BadInput(f"--run {name}: {none} {some}; give its ids, or JSON lines with texts")
        parts = [
            f"{name} was not asked: its replies are from {file.path.name} (sha256 {file.sha256[:12]}), and "
            "its time is not measured here"
        ]
        if lacks := sum(not {id, other} & known for id, other in named.items()):
            parts.append(f"{lacks:,} of its {len(named):,} ids are not in the corpus")
        if unanswered := sum(question.id not in file.answered for question in drawn.questions):
            count_as = "nothing found" if file.complete else "failed"
            parts.append(f"{unanswered} questions have no line in it and count as {count_as}")
        said.append("; ".join(parts))
    return said


def _questions(engine: Engine, spec: Spec, found: dataset.Found | None) -> tuple[LabelledSet, list[str]]:
    """Return the questions that `spec` names, tied to the corpus' passages, and remarks on them."""
    corpus = engine.corpus(spec.corpus)
    if spec.labels is not None:
        from core.evaluation.labels.final import labelled_set

        if engine.store is None:
            raise Unavailable(f"labels are not stored here, so the set {spec.labels!r} cannot be read")
        labelled, said = labelled_set(engine.store, spec.labels, corpus, split=spec.split)
        return dataset.of_mode(labelled, spec.mode), said
    if found is None:
        folder = None
        if not spec.questions:
            folder = catalogue.source(spec.corpus, settings=engine.settings, known_only=True).path
        found = sets.of_spec(spec, folder)
    return sets.tie(dataset.of_mode(found, spec.mode), corpus)


def _further(plan: Plan, repeats: int) -> list[Plan]:
    """Return the further rounds, of the routes that ask a model alone: every call of it has another seed."""
    names = plan.routes
    if plan.style is None or plan.style.by != "model":
        settled = {one: one.settle(plan.parameters.get(one.name, {})) for one in pick(list(plan.routes))}
        names = tuple(route.name for route, parameters in settled.items() if route.asks(parameters))
    parameters = {name: values for name, values in plan.parameters.items() if name in names}
    rounds = range(1, repeats if names else 1)
    return [replace(plan, routes=names, parameters=parameters, draw=nth) for nth in rounds]


def executed_of(
    labelled: LabelledSet, outcomes: Outcomes, names: Sequence[str], engine: Engine, corpus: str
) -> Executed:
    """Return how the routes' SQL scores on the corpus' database; empty without a database or gold SQL."""
    if not any(question.sql for question in labelled.questions):
        return Executed({})
    try:
        return measured(labelled, outcomes, names, engine.tables(corpus, Need.TABLES))
    except Unavailable:
        return Executed({})  # routes that need the database have reported it


def conditions_of(plan: Plan, engine: Engine) -> dict[str, Any]:
    """Return the conditions that must be equal for outcomes to be merged."""
    llm, files = engine.llm(), _files(plan)
    own = {name: one.target for name, one in pipelines().items() if name in plan.routes and name not in files}
    return {
        "corpus": plan.corpus,
        "fingerprint": engine.corpus(plan.corpus).fingerprint,
        "routes": list(plan.routes),
        "parameters": plan.parameters,
        "timing": plan.timing,
        "answers": asdict(plan.style) if plan.style else None,
        "llm": llm.model,
        "llm endpoint": llm.endpoint,
        "draw": plan.draw,
        **({"filters": list(map(str, plan.where))} if plan.where else {}),
        **({"pipelines": own} if own else {}),
        **({"run files": {name: file.sha256 for name, file in files.items()}} if files else {}),
    }


def _files(plan: Plan) -> dict[str, run_files.RunFile]:
    """Return the files that routes' replies are from."""
    return {name: file for name in plan.routes if (file := run_files.used(name)) is not None}
