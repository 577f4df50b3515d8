"""A sweep in sentences: the choice, whether it holds on held-out questions, and the questions covered."""

from __future__ import annotations

from core.analysis.metrics import titled
from core.domain.errors import BadInput
from core.domain.format import number
from core.evaluation.finding import Finding, count, sentence
from core.evaluation.tuning.sweep import Curve, Effect, Tried
from core.evaluation.tuning.sweep_grid import shown
from core.evaluation.tuning.sweep_subject import Point, Subject


def in_words(curve: Curve) -> list[str]:
    """Return the finding, one sentence each: the choice, its figures on held-out questions, and the
    advice.
    """
    about, metric = curve.subject, titled(curve.metric)
    now, best = curve.now.effect, curve.best.effect
    if now is None or best is None:
        raise BadInput("the value in use has no figure on these questions")
    over = sum(one.effect is not None for one in curve.tried)
    if over < 2:
        return [f"{named(about, about.now)}, in use: {number(now.mean)} {metric}. The others need a run."]
    so_far = f" of {over} measured so far" if curve.waiting else f" of {over} tried"
    in_use = f"{named(about, about.now)}, in use"
    on = f"the {count(best.n, curve.split.names[0])}"
    if curve.best.point == about.now:
        return [
            f"{in_use}: no value{so_far} is higher on {on}: {number(now.mean)} {metric}.",
            f"Keep {named(about, about.now)}." if not curve.waiting else "The others need a run.",
        ]
    return [
        f"{named(about, curve.best.point)} is the highest{so_far} on {on}: {number(best.mean)} {metric}. "
        f"{sentence(found(curve, curve.best))}",
        _held(curve),
        _advice(curve),
    ]


def found(curve: Curve, tried: Tried) -> Finding:
    """Return the comparison of a point with the value in use, adjusted for all that were tried."""
    if tried.effect is None:
        raise BadInput("a value that needs a run has no figure yet")
    return _finding(curve, tried.point, tried.effect, tried.p_holm, tried.verdict, curve.split.names[0])


def counted(curve: Curve) -> str:
    """Return the questions that the figures cover, and those that are excluded."""
    about = curve.subject
    sentences = [
        f"{len(curve.split.chosen_on)} labelled questions to choose on and {len(curve.split.held_out)} held "
        f"out ({curve.split.said}). Intervals and tests are corrected for all values tried."
    ]
    if curve.untouched:
        sentences.append(
            f"{curve.untouched} never reached the step with this parameter; their ranking stays."
        )
    if about.failed:
        sentences.append(f"{len(about.failed)} failed in the evaluation and are excluded.")
    if failed := sum(one.failed for one in curve.tried):
        sentences.append(f"{failed} question runs at other values failed; each is excluded at its value.")
    if about.unlabelled:
        sentences.append(f"{about.unlabelled} have no relevant passage and are excluded.")
    return " ".join(sentences)


def note(curve: Curve, point: Point) -> str:
    """Return one line on the origin of a saved value."""
    about = curve.subject
    tried = next(one for one in curve.tried if one.point == point)
    line = f"sweep over evaluation {about.evaluation.name}, {titled(curve.metric)}"
    if tried.effect is None or point == about.now:
        return f"{line}: the value in use there" if point == about.now else f"{line}: not measured"
    line += f": {sentence(found(curve, tried))}"
    if point == curve.best.point and (shown_held := held(curve)) is not None:
        line += f" {sentence(shown_held)} {'The choice holds' if curve.holds else 'Not shown to hold'}."
    return line


def named(subject: Subject, point: Point) -> str:
    """Return a point in words: "k = 60, alpha = 0.5"."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in subject.values(point).items())


def _finding(curve: Curve, point: Point, effect: Effect, p: float | None, verdict: str, unit: str) -> Finding:
    about = curve.subject
    return Finding(
        named(about, point),
        titled(curve.metric),
        effect.delta,
        effect.interval,
        p,
        effect.n,
        baseline=f"{named(about, about.now)} (in use)",
        verdict=verdict,
        before=effect.before,
        unit=unit,
    )


def held(curve: Curve) -> Finding | None:
    """Return the chosen point on held-out questions; a difference is shown where the interval
    leaves 0 out.
    """
    effect = curve.held
    if effect is None:
        return None
    return _finding(curve, curve.best.point, effect, None, effect.verdict, "held-out questions")


def _held(curve: Curve) -> str:
    if not curve.split.held_out:
        return f"No questions are held out ({curve.split.said}), so the choice cannot be confirmed."
    one = held(curve)
    return sentence(one) if one else "Its figure on the held-out questions needs a run."


def _advice(curve: Curve) -> str:
    best, now = named(curve.subject, curve.best.point), named(curve.subject, curve.subject.now)
    if curve.holds:
        return f"{best} is the best value tried and holds on held-out questions: use it."
    if curve.best.verdict == "better":
        return f"It is not shown to hold on held-out questions: keep {now}, or label more questions."
    if curve.held is not None and curve.held.interval is not None and curve.held.interval[0] > 0:
        return (
            "The held-out questions agree in direction, but the choice among this many values is not "
            f"significant. Keep {now} for now, and test {best} alone on more questions."
        )
    return f"Keep {now}."
