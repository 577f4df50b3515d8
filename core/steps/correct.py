"""Steps that act on grades: look beyond the corpus, or say what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.backends.prompting.citations import Draft
from core.backends.web import HOW
from core.domain.errors import WebFailed
from core.domain.outputs import Grading
from core.domain.types import Ranking
from core.steps.decisions import Decided
from core.steps.evaluate import Evaluate
from core.steps.step import step
from core.steps.transform import Transform

Decision = Literal[
    "use what was found", "add the web", "replace it by the web", "go on without the web", "knowledge gap"
]
NO_WEB = f"no web search is set up; to have one, {HOW}"
LONGEST = 300  # characters of a question that a text repeats


@dataclass(frozen=True, slots=True)
class Act(Decided):
    """What is done about a verdict, and why."""

    decision: Decision
    why: str

    FIRES = (("knowledge gap", "go on without the web"), ("replace it by the web", "add the web"))


class Correct(Evaluate, Transform):
    """Corrective actions."""

    def beyond(self, text: str) -> tuple[Ranking, str]:
        """What a web search finds for keywords of `text`, and, where that is nothing, the reason.

        A web search that fails is such a reason, not the end of the route: its step shows the error.
        """
        if self.context.web is None:
            return (), NO_WEB
        try:
            found = self.web(self.web_keywords(text))
        except WebFailed as error:
            return (), f"the web search failed: {error}"
        return found, "" if found else "the web search found nothing"

    @step("CHAIN", "act on the grades")
    def act(self, verdict: Grading, lack: str = "") -> Act:
        """CRAG's action with what there is of a web search; `lack` tells why there is nothing from it.

        Source: Yan et al. 2024, arXiv:2401.15884, section 4.3 and algorithm 1. The knowledge gap is added
        here: there a web search always finds something.
        """
        return act(verdict, lack)

    @step("GUARDRAIL", "say what is missing")
    def knowledge_gap(self, text: str, verdict: Grading, lack: str) -> Draft:
        """The answer of a route that has nothing to answer from: a text that says what was looked for, how
        poor the best of it was, and why nothing else was found.
        """
        known = [grade.grade for grade in verdict.grades if grade.grade is not None]
        best = (
            f"The best of {len(known)} graded passages has {max(known):.2f}, and {verdict.low:.2f} is needed"
            if known
            else "There was no passage to grade"
        )
        asked = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        said = f"Nothing was found that answers “{asked}”. {best}; {lack}."
        return Draft(said, abstained=True)


def act(verdict: Grading, lack: str) -> Act:
    """The action for a verdict, and for what there is not (`lack`) of a web search."""
    if verdict.decision == "correct":
        return Act("use what was found", verdict.why)
    if verdict.decision == "ambiguous":
        if lack:
            return Act("go on without the web", f"{verdict.why}; {lack}")
        return Act("add the web", verdict.why)
    if lack:
        return Act("knowledge gap", f"{verdict.why}; {lack}")
    return Act("replace it by the web", verdict.why)
