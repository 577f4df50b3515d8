"""A whole audit: an evaluation of routes and baselines, with the decisions on each question also turned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.engine.availability import missing, why_not
from core.evaluation import experiment
from core.evaluation.audit import decisions, report
from core.evaluation.audit.decisions import cases, measuring
from core.evaluation.audit.turning import BASELINE, BASELINES, fires, loops, own, read, turning
from core.evaluation.comparison import ByRoute
from core.evaluation.dataset import Found
from core.evaluation.experiment import Prepared
from core.evaluation.experiment_store import LABELLED, opened
from core.evaluation.model_calibration import calibrated_on
from core.evaluation.outcome import Outcomes
from core.evaluation.runner import Course
from core.evaluation.spec import Spec
from core.routes.registry import pick

if TYPE_CHECKING:
    from core.engine.engine import Engine


def prepare(
    engine: Engine, spec: Spec, found: Found | None = None, folder: Path | None = None
) -> tuple[Prepared, list[str]]:
    """Check `spec` and complete it: the baselines, its routes, and those it audits, which are all loops that
    can run here where it names none. Also what is to be said of it. Raises BadInput or Unavailable with what
    is wrong.
    """
    gaps = missing(engine, spec.corpus)

    def lacks(name: str) -> str:
        """Return why a route cannot run with its parameters, or ""."""
        route = pick([name])[0]
        return why_not(route, gaps, route.settle(spec.parameters.get(name, {}))) or ""

    def calibrated(of: str) -> frozenset[str]:
        """Return the questions of a set that thresholds of the audited routes were chosen on."""
        decisions = {decision for route in pick(names) for decision in route.decides}
        return calibrated_on(engine, decisions, of)

    said = []
    names = [route.name for route in pick(list(spec.audit))] if spec.audit else []
    if not names:
        lacking = {route.name: lacks(route.name) for route in loops()}
        names = [name for name, why in lacking.items() if not why]
        said = [f"{name} is left out: {why}" for name, why in lacking.items() if why]
        if not names:
            raise Unavailable(f"no route that makes decisions can run here: {'; '.join(said)}")
    baseline = spec.baseline or BASELINE
    asked = list(dict.fromkeys((baseline, *BASELINES, *spec.routes, *names)))
    for name in asked:
        if why := lacks(name):
            raise Unavailable(f"{name} cannot be audited here: {why}; give --routes without it")
    if silent := [name for name in names if not own(name)]:
        said.append(f"{', '.join(silent)}: no decision of its own to turn")
    by_model = (spec.answer_by or engine.settings.answer_by) == "model"
    if spec.answers and by_model and Need.LLM in gaps:
        raise Unavailable(f"answers cannot be written by a model: {gaps[Need.LLM]}; give --answer-by extract")
    whole = replace(spec, routes=tuple(asked), baseline=baseline, audit=tuple(names))
    ready = experiment.prepare(engine, whole, found, folder, left_out=calibrated)
    drawn = ready.labelled
    if not any(drawn.labelled(q.id) or q.answers or q.answerable is False for q in drawn.questions):
        few = f"none of the {len(drawn.questions)} questions drawn"
        raise BadInput(f"{drawn.name}: {few} has a relevant passage or a gold answer")
    return ready, said


def answers_here(engine: Engine) -> bool:
    """Return whether a language model is available to write answers."""
    return Need.LLM not in missing(engine)


def perform(
    engine: Engine,
    ready: Prepared,
    out: Path,
    *,
    said: Sequence[str] = (),
    **course: Unpack[Course],
) -> dict[str, Any]:
    """Ask every question both ways and write the figures into `out`; gives those of audit.json.

    What was asked in `out` before is not asked again. BadInput where it holds another audit or evaluation.
    Stopped between questions, or killed, it goes on where it was; stopped, the figures are of what was asked.
    """
    if not course.get("fresh") and (out / LABELLED).is_file():
        before, now = Spec.read(opened(out).spec).document(), ready.spec.document()
        other = [f"{key}: {before[key]!r} there, {now[key]!r} now" for key in now if before[key] != now[key]]
        if other:
            raise BadInput(f"{out} holds another audit or evaluation ({'; '.join(other)[:400]}); or --fresh")
    plan = ready.plan
    turned = {name: sorted(own(name)) for name in ready.spec.audit}
    pairs = {step: fires()[step] for step in sorted({step for some in turned.values() for step in some})}
    conditions = {**experiment.conditions_of(plan, engine), "turned": turned, "pairs": pairs}
    beside = turning(engine, ready.labelled, plan, turned, out, conditions, report.FILES, course)
    figures, labelled, outcomes = experiment.perform(engine, ready, out=out, beside=beside, **course)

    def executed(of: Outcomes, names: Sequence[str]) -> ByRoute:
        return experiment.executed_of(labelled, of, names, engine, plan.corpus).values

    measure = measuring(labelled, executed)
    values = measure(outcomes, plan.routes)
    found = cases(outcomes, read(out), measure)
    llm = engine.llm()
    document = {
        **{key: figures[key] for key in report.TAKEN},
        "warnings": [*said, *figures["warnings"]],
        "spec": ready.spec.document(),
        "baselines": [name for name in dict.fromkeys((ready.baseline, *BASELINES)) if name in plan.routes],
        "model": {"name": llm.model, "endpoint": llm.endpoint},
        "answering": asdict(plan.style) if plan.style else None,
        "versions": report.versions(),
        "pairs": pairs,
        "turned": {"asked_again": len(found), "left_out": sum(bool(case.left_out) for case in found)},
    }
    judged = [name for name in turned if name not in document["baselines"]]
    document["routes"] = decisions.route_table(outcomes, values, judged, document["baselines"])
    document |= {"decisions": decisions.table(found), "unpaired": decisions.unpaired(outcomes, turned)}
    report.write(out, document, values, found)
    return document
