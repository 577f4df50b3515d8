"""A sweep in sentences: the choice, whether it holds on held-out questions, and the questions covered."""

from __future__ import annotations

from core.analysis.metrics import titled
from core.domain.errors import BadInput
from core.evaluation.finding import Finding, sentence
from core.evaluation.templating import sentences
from core.evaluation.tuning.sweep import Curve, Effect, Tried
from core.evaluation.tuning.sweep_grid import shown
from core.evaluation.tuning.sweep_subject import Point, Subject


def in_words(curve: Curve) -> list[str]:
    """Return the finding, one sentence each: the choice, its figures on held-out questions, and the
    advice.
    """
    if curve.now.effect is None or curve.best.effect is None:
        raise BadInput("the value in use has no figure on these questions")
    over = sum(one.effect is not None for one in curve.tried)
    shown_held = held(curve)
    best, by_held = sentence(found(curve, curve.best)), sentence(shown_held) if shown_held else ""
    return sentences("sweep.found", curve, named, over, best, by_held)


def found(curve: Curve, tried: Tried) -> Finding:
    """Return the comparison of a point with the value in use, adjusted for all that were tried."""
    if tried.effect is None:
        raise BadInput("a value that needs a run has no figure yet")
    return _finding(curve, tried.point, tried.effect, tried.p_holm, tried.verdict, curve.split.names[0])


def counted(curve: Curve) -> str:
    """Return the questions that the figures cover, and those that are excluded."""
    return " ".join(sentences("sweep.counted", curve))


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
