"""`sweep`: a parameter of a measured route over a grid of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.analysis.metrics import titled
from core.backends.workers.place import WorkPlace
from core.cli.commands import WORKERS, argument, command
from core.cli.common import attributes, emit, followed, note, warn
from core.domain import settings
from core.domain.errors import BadInput, Unavailable
from core.domain.format import milliseconds
from core.engine import engine as engines
from core.evaluation import experiment_store
from core.evaluation.finding import Finding, figures
from core.evaluation.spec import option
from core.evaluation.tuning import sweep
from core.evaluation.tuning.sweep import METRICS, Curve, counted, curve, in_words, named, waiting
from core.evaluation.tuning.sweep_grid import cells, default, read
from core.evaluation.tuning.sweep_split import split as divided
from core.evaluation.tuning.sweep_subject import Rankings, subject
from core.routes.declare import Parameter
from core.routes.registry import pick


@command("sweep")
def sweep_(
    evaluation: str,
    parameters: Sequence[str] = argument("ROUTE.PARAMETER..."),
    grids: Sequence[str] = option(
        (), '"0, 0.1, 0.2" or "0..1 step 0.1". Default: over the range.', "[PARAMETER=]VALUES", "--grid"
    ),
    metric: str = option("ndcg@10", "Metric to compare."),
    split: str | None = option(
        None, "Questions to choose on, not the held-out ones. Default: dev, else all but test.", "SPLIT"
    ),
    ask: bool = option(False, "Also run values that may call a language model."),
    workers: WorkPlace | None = WORKERS,
) -> int:
    """Try other values of one or two parameters of a route on the questions of a saved evaluation.

    Rankings are recomputed from the stored steps of the evaluation. Where that is not possible, the route is
    rerun; runs that may call a language model need --ask. Values are chosen on dev questions and tested on
    test questions.
    """
    if metric not in METRICS:
        raise BadInput(f"metric {metric!r}; give one of {', '.join(METRICS)}")
    pairs = [parameter.partition(".") for parameter in parameters]
    route, names = pairs[0][0], [name for _, _, name in pairs]
    if len({route for route, _, _ in pairs}) != 1 or not all(names):
        raise BadInput(f"parameters {', '.join(parameters)}: give ROUTE.PARAMETER, or two of one route")
    (known,) = pick([route])
    now = settings.current()
    about = subject(experiment_store.opened(experiment_store.place(now, evaluation)), route, names)
    points = _points(dict(zip(names, about.tuned, strict=True)), grids, route, about.now)
    parts = divided(about.labelled, tuple(about.results), split)
    rankings = Rankings(about)
    todo = waiting(rankings, points, metric, {})
    fresh: dict[Any, Any] = {}
    stopped = False
    if todo:
        engine = engines.shared_engine()
        for point, why in sweep.lacking(engine, about, todo).items():
            note(f"warning: {known.name} cannot run with {about.values(point)}: {why}")
            todo.pop(point)
        held_back = sweep.asking(about, todo)
        if held_back and not ask:
            cost = sweep.cost(about, held_back)
            of = f"{cost.questions} questions at {cost.points} value(s) need a run that may call a model"
            price = "the cost is not known"
            if cost.calls is not None and cost.seconds is not None:
                price = f"about {cost.calls} calls, {milliseconds(1000 * cost.seconds)}"
            note(f"{of}: {price}. Add --ask to run them")
            todo = {point: ids for point, ids in todo.items() if point not in held_back}
        running = sweep.running(engine, about)
        if todo:
            running.ask(todo, workers)
            followed(running, "questions")
            if running.error:
                raise Unavailable(running.error)
            warn(f"{count} questions failed: {message}" for message, count in running.errors.items())
        stopped, fresh = running.cancelled, running.rankings
    found = curve(rankings, points, metric, fresh, parts=parts)
    emit(_document(found), _text(found))
    return 1 if stopped else 0


def _points(
    specs: dict[str, Parameter], given: Sequence[str], route: str, now: tuple[Any, ...]
) -> tuple[tuple[Any, ...], ...]:

    texts: dict[str, str] = {}
    for one in given:
        name, equals, values = one.partition("=")
        name, values = (name.strip(), values) if equals else (next(iter(specs)), one)
        if name not in specs or (not equals and len(specs) > 1):
            raise BadInput(f"--grid {one!r}: give PARAMETER=VALUES for one of {', '.join(specs)}")
        texts[name] = values
    grids = [
        read(texts[name], spec, route) if name in texts else default(spec, now[at], paired=len(specs) > 1)
        for at, (name, spec) in enumerate(specs.items())
    ]
    return tuple((value,) for value in grids[0]) if len(grids) == 1 else cells(grids[0], grids[1])


def _document(found: Curve) -> dict[str, Any]:
    about = found.subject
    return {
        "evaluation": about.evaluation.name,
        "route": about.route,
        "parameters": list(about.names),
        "metric": found.metric,
        "in_use": about.values(about.now),
        "best": about.values(found.best.point),
        "holds": found.holds,
        "held_out": None if found.held is None else _effect(found.held),
        "points": [
            {
                "values": about.values(one.point),
                "from": one.by,
                **attributes(one, "waiting failed"),
                **({} if one.effect is None else _effect(one.effect)),
                "verdict": one.verdict or None,
            }
            for one in found.tried
        ],
        "chosen_on": len(found.split.chosen_on),
        "held_out_questions": len(found.split.held_out),
        "failed": len(about.failed),
        "unlabelled": about.unlabelled,
        "told": [*in_words(found), counted(found)],
    }


def _effect(effect: Finding) -> dict[str, Any]:
    ends = effect.interval and list(effect.interval)
    return {**attributes(effect, "mean n"), "delta": effect.estimate, "p_holm": effect.p, "ci95": ends}


def _text(found: Curve) -> str:

    lines = [*in_words(found), ""]
    wide = max(len(named(found.subject, one.point)) for one in found.tried)
    for one in found.tried:
        name = named(found.subject, one.point).ljust(wide)
        if one.effect is None:
            lines.append(f"{name}  {one.waiting} questions need a run")
        elif one.point == found.subject.now:
            lines.append(f"{name}  {titled(found.metric)} {one.effect.mean:.3f}  in use")
        else:
            apart = figures(one.effect)
            lines.append(f"{name}  {titled(found.metric)} {one.effect.mean:.3f}  {apart}  {one.verdict}")
    return "\n".join([*lines, "", counted(found)])
