"""A sweep in sentences: what was chosen, whether it held, and what the figures are of."""

from __future__ import annotations

from core.domain.errors import BadInput
from core.evaluation.tuning.sweep import METRICS, Curve, Effect, Tried
from core.evaluation.tuning.sweep_grid import shown
from core.evaluation.tuning.sweep_subject import Point, Subject


def told(curve: Curve) -> list[str]:
    """The finding, one sentence each: the choice, what held-out questions say of it, and what to do."""
    about, metric = curve.subject, METRICS[curve.metric]
    now, best = curve.now.effect, curve.best.effect
    if now is None or best is None:
        raise BadInput("the value in use has no figure on these questions")
    over = sum(one.effect is not None for one in curve.tried)
    if over < 2:
        return [f"{named(about, about.now)}, in use: {metric} {now.mean:.3f}. The others take a run."]
    so_far = f" of {over} measured so far" if curve.waiting else f" of {over} tried"
    on = f"the {best.n} {curve.split.names[0]}"
    if curve.best.point == about.now:
        return [
            f"{named(about, about.now)}, in use: none{so_far} is higher on {on}: {metric} {now.mean:.3f}.",
            f"Keep {named(about, about.now)}." if not curve.waiting else "The others take a run.",
        ]
    first = (
        f"{named(about, curve.best.point)} is the highest{so_far} on {on}: {metric} {best.mean:.3f}, "
        f"{difference(best)} against {named(about, about.now)} in use; "
        f"{_verdict(curve.best)} ({_p(curve.best.p_holm)}, adjusted for {over - 1} tried)."
    )
    return [first, _held(curve), _advice(curve)]


def counted(curve: Curve) -> str:
    """What the figures are of, and what does not count."""
    about = curve.subject
    said = [
        f"{len(curve.split.chosen_on)} labelled questions to choose on and {len(curve.split.held_out)} held "
        f"out ({curve.split.said}); intervals are a paired bootstrap's, tests are randomisation tests."
    ]
    if curve.untouched:
        said.append(f"{curve.untouched} never went by the step that is set and keep their ranking.")
    if about.failed:
        said.append(f"{len(about.failed)} failed in the evaluation and do not count.")
    if failed := sum(one.failed for one in curve.tried):
        said.append(f"{failed} runs of questions at other values failed; each is left out at its value.")
    if about.unlabelled:
        said.append(f"{about.unlabelled} have no relevant passage and do not count.")
    return " ".join(said)


def note(curve: Curve, point: Point) -> str:
    """Where a kept value comes from, in one line."""
    about = curve.subject
    found = next(one for one in curve.tried if one.point == point)
    line = f"sweep over evaluation {about.evaluation.name}, {METRICS[curve.metric]}"
    if found.effect is None or point == about.now:
        return f"{line}: the value in use there" if point == about.now else f"{line}: not measured"
    line += f": {difference(found.effect)} on {found.effect.n} {curve.split.names[0]}"
    line += f" against {named(about, about.now)}, {_verdict(found)}"
    if point == curve.best.point and curve.held is not None:
        line += f"; {difference(curve.held)} on {curve.held.n} held-out questions"
        line += ", which holds" if curve.holds else ", which does not show that it holds"
    return line


def named(subject: Subject, point: Point) -> str:
    """A point as people say it: "k = 60, alpha = 0.5"."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in subject.values(point).items())


def difference(effect: Effect) -> str:
    """The mean difference with its interval."""
    if effect.interval is None:
        return f"{_signed(effect.delta)} (one question alone has no interval)"
    low, high = effect.interval
    return f"{_signed(effect.delta)} (95 % interval {_signed(low)} to {_signed(high)})"


def _signed(value: float) -> str:
    """What rounds to nothing is +0.000, whichever side it is on."""
    return f"{round(value, 3) + 0.0:+.3f}"


def _held(curve: Curve) -> str:
    if not curve.split.held_out:
        return f"No questions are held out ({curve.split.said}), so nothing shows that it holds."
    if curve.held is None:
        return "What it does on the held-out questions takes a run."
    shown_ = curve.held.interval is not None and (curve.held.interval[0] > 0 or curve.held.interval[1] < 0)
    verdict = "no difference shown" if not shown_ else "better" if curve.held.delta > 0 else "worse"
    return f"On {curve.held.n} held-out questions: {difference(curve.held)}: {verdict}."


def _advice(curve: Curve) -> str:
    best, now = named(curve.subject, curve.best.point), named(curve.subject, curve.subject.now)
    if curve.holds:
        return f"{best} is the best of those tried, and it holds: use it."
    if curve.best.verdict == "better":
        return f"That it holds is not shown: keep {now}, or label more questions."
    if curve.held is not None and curve.held.interval is not None and curve.held.interval[0] > 0:
        return (
            f"The held-out questions point the same way, but the choice itself is not shown among so many "
            f"values: try {best} alone, on more questions; until then keep {now}."
        )
    return f"Keep {now}."


def _verdict(tried: Tried) -> str:
    return {"better": "shown better", "worse": "shown worse"}.get(tried.verdict, "no difference shown")


def _p(p: float | None) -> str:
    return "p unknown" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
