"""The decision which measured route to ship by given criteria; in a test, whether there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from core.api import html
from core.api.arguments import File, count, listed, path, text
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.format import milliseconds
from core.engine import engine as engines
from core.evaluation.experiment_store import Evaluation
from core.evaluation.release.criteria import Criteria, keywords
from core.evaluation.release.gate import Decision, decide
from core.evaluation.release.measured import Measured, find, of_evaluation, settled
from core.evaluation.release.regressions import regressed
from core.evaluation.release.snapshot import Against, Snapshot, compare, earlier, failures
from core.evaluation.spec import with_keywords
from core.evaluation.templating import say

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class GateDecision(Decision):
    """A decision and its comparison with an earlier release: `chosen` is the route to ship, None without one,
    and `verdict` holds the evidence.
    """

    against: Against | None = None

    @property
    def ok(self) -> bool:
        """True if a build passes: there is a route to ship and no complaint broke again; with an earlier
        release, no drop is shown.
        """
        return not failures(self, self.against)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        """Return the decision in sentences, as a failed assertion shows it."""
        return "\n".join(self._sentences())

    def __repr__(self) -> str:
        return f"<GateDecision {self.verdict.decision}: {self.chosen or 'no route'}>\n{self}"

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each route: whether it passes, its mean of the metric, p95 in ms, tokens and calls
        for a question, the price of 1,000 questions, the share of failures, and what it misses.
        """
        import pandas as pd

        rows = [
            {
                "route": one.route,
                "passes": one.passes,
                self.criteria.metric: one.mean,
                "p95_ms": one.p95_ms,
                "tokens": one.tokens,
                "calls": one.calls,
                "cost": one.cost,
                "failed": one.failed,
                "misses": "" if one.passes else say("decision.lacking", one),
            }
            for one in self.candidates
        ]
        return pd.DataFrame(rows).set_index("route")

    def _repr_html_(self) -> str:
        rows = [
            (
                one.route,
                say("decision.standing", self, one),
                "" if one.mean is None else f"{one.mean:.3f}",
                "" if one.p95_ms is None else milliseconds(one.p95_ms),
                "" if one.passes else say("decision.lacking", one),
            )
            for one in self.candidates
        ]
        return html.table(
            ("route", "gate", self.criteria.metric, "p95", "misses"),
            rows,
            above=self._sentences(),
            right=(2, 3),
        )

    def _sentences(self) -> list[str]:
        told = [*self.sentences, self.required]
        return told if self.against is None else [*told, *self.against.sentences()]


def gate(
    measured: Evaluation | File,
    *,
    planned: str | Sequence[str] | None = None,
    regressions: File | None = None,
    against: File | None = None,
    max_broken: int | None = None,
    **criteria: Any,
) -> GateDecision:
    """Decide which route of an evaluation to ship, as the command `gate` does.

    `measured` is the result of `evaluate`, the name of a saved evaluation, its folder, or its metrics.json
    (which alone does not show how sure the choice is). `min_quality` is of the mean of `metric`; `max_cost`
    is for 1,000 questions at the evaluation's prices, `max_tokens` and `max_calls` for one question,
    `max_failed` and `max_unjudged` are shares. Without `allow_loss` a route fails that is shown to be
    worse than the baseline on a kind of question. A route ships if it is shown to be at most `margin` worse
    than every other; `cheapest`: the cheapest such route, else only the one with the highest mean.
    `min_questions` replaces the scored questions that this takes (25, and 3 / margin to call routes
    equivalent). Limits on quality, p95 and unjudged passages that are not given follow from the baseline
    (`derive=False`: there are none), and `criteria.derived` names them. `planned`: the only routes compared
    with the baseline; None for all that were measured. `regressions`: a label set of complaints, whose
    questions the route to ship is asked now, or an evaluation of one, by name or folder. `against` is the
    snapshot of an earlier release, or another evaluation by its folder or name: the decision is then false
    only if a drop larger than `min_effect` (the margin unless given) is shown, or a limit is missed by
    every route; `max_broken` is how many questions may break since then, None for any number. A criterion
    without a figure does not pass.

    The decision is true if there is a route to ship. Raises BadInput.
    """
    asked = Criteria.of_keywords(criteria)
    if against is None and (max_broken is not None or asked.min_effect is not None):
        raise BadInput("max_broken and min_effect need against")
    settings = settings_module.current()
    before = None
    if against is not None:
        before = earlier(settings, str(path(against, "against")), asked, "against")
    if isinstance(measured, Evaluation):
        found = of_evaluation(measured)
    else:
        found = find(settings, text(str(path(measured, "measured")), "measured"))
    if planned is not None:
        found = found.planned(listed(planned))
    if regressions is not None:
        regressions = text(str(path(regressions, "regressions")), "regressions")
    most = None if max_broken is None else count(max_broken, "max_broken", least=0)
    decision, change = decided(found, asked, before, regressions, most)
    return GateDecision(**{one.name: getattr(decision, one.name) for one in fields(Decision)}, against=change)


def decided(
    measured: Measured,
    criteria: Criteria,
    before: Snapshot | None,
    regressions: str | None,
    max_broken: int | None,
    **asking: Any,
) -> tuple[Decision, Against | None]:
    """Decide, and compare with the earlier release `before`. `asking` says how the questions of `regressions`
    are asked.
    """
    decision = decide(measured, settled(measured, criteria))
    if regressions is not None:
        found = regressed(engines.shared_engine(), regressions, measured, decision.shown, **asking)
        decision = replace(decision, regressions=found)
    return decision, None if before is None else compare(before, measured, decision, max_broken=max_broken)


# what help and notebooks show
gate.__signature__ = with_keywords(gate, keywords(), allow_loss=False)  # type: ignore[attr-defined]
