"""Steps that act on grades: look beyond the corpus, or say what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from core.backends.prompting.citations import Draft
from core.backends.web import HOW
from core.domain.errors import WebFailed
from core.domain.outputs import Grading, PassageGrade, WebGrades
from core.domain.types import Ranking
from core.steps.decisions import Decided
from core.steps.evaluate import Evaluate
from core.steps.step import step
from core.steps.transform import Transform

Decision = Literal[
    "use what was found",
    "keep what was found",
    "add the web",
    "replace it by the web",
    "go on without the web",
    "knowledge gap",
]
NO_WEB = f"no web search is set up; to have one, {HOW}"
MAX_QUOTED_CHARS = 300  # characters of a question that a text repeats


@dataclass(frozen=True, slots=True)
class Act(Decided):
    """The action that follows a verdict."""

    decision: Decision
    why: str
    earned: int = 0  # number of web results graded high enough to precede the corpus' passages

    FIRES = (
        ("knowledge gap", "go on without the web"),
        ("replace it by the web", "keep what was found"),
        ("add the web", "keep what was found"),
    )


class Correct(Evaluate, Transform):
    """Corrective actions."""

    def beyond(self, text: str) -> tuple[Ranking, str]:
        """Search the web for keywords of `text`. Return the hits, and the reason if there are none.

        A failed web search is such a reason and does not end the route; its step shows the error.
        """
        if self.context.web is None:
            return (), NO_WEB
        try:
            found = self.web(self.web_keywords(text))
        except WebFailed as error:
            return (), f"the web search failed: {error}"
        return found, "" if found else "the web search found nothing"

    @step("CHAIN", "act on the grades", returns=Act)
    def act(self, verdict: Grading, lack: str = "", web: WebGrades | None = None) -> Act:
        """Choose CRAG's action; `lack` explains why there is no web result.

        Source: Yan et al. 2024, arXiv:2401.15884, section 4.3 and algorithm 1. Two actions are added.
        "Knowledge gap": in the paper a web search always finds something. "Keep what was found": the paper
        takes web results ungraded, instead of the passages or in addition to them. Here a web result must
        reach the grade required of a passage, as an audit of this decision showed that ungraded pages only
        made rankings worse.
        """
        return act(verdict, lack, () if web is None else web.grades)

    @step("GUARDRAIL", "say what is missing", returns=Draft)
    def knowledge_gap(self, text: str, verdict: Grading, lack: str) -> Draft:
        """Return the answer for a knowledge gap: the question searched, the best grade found, and why there
        is nothing else.
        """
        known = [grade.grade for grade in verdict.grades if grade.grade is not None]
        best = (
            f"The best of {len(known)} graded passages has {max(known):.2f}, and {verdict.low:.2f} is needed"
            if known
            else "There was no passage to grade"
        )
        asked = text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"
        said = f"Nothing was found that answers “{asked}”. {best}; {lack}."
        return Draft(said, abstained=True)


def act(verdict: Grading, lack: str, web: Sequence[PassageGrade] | None) -> Act:
    """Choose the action for a verdict. `lack` explains why there is no web result; `web` holds the grades of
    the web results. With `web` None, no search was made and a trusted page is assumed.
    """
    if verdict.decision == "correct":
        return Act("use what was found", verdict.why)
    sure = verdict.decision == "incorrect"
    if lack:
        return Act("knowledge gap" if sure else "go on without the web", f"{verdict.why}; {lack}")
    count = 1 if web is None else earned(web, verdict)
    if not count:
        return Act("keep what was found", f"{verdict.why}; {_unearned(web or (), verdict)}")
    told = "" if web is None else f"; {count} of {len(web)} web results reach {verdict.high:.3f}"
    return Act("replace it by the web" if sure else "add the web", verdict.why + told, count)


def earned(web: Iterable[PassageGrade], verdict: Grading) -> int:
    """Count the web results that may precede the corpus' passages: their grade reaches the upper threshold
    and exceeds that of every passage of the corpus.
    """
    best = max((one.grade for one in verdict.grades if one.grade is not None), default=-math.inf)
    return sum(one.grade is not None and one.grade >= verdict.high and one.grade > best for one in web)


def _unearned(web: Sequence[PassageGrade], verdict: Grading) -> str:
    """Why no web result stands before the corpus' passages."""
    known = [one.grade for one in web if one.grade is not None]
    if not known:
        return f"none of {len(web)} web results could be graded: they stay behind"
    if max(known) < verdict.high:
        return f"the best web result, {max(known):.3f}, is below {verdict.high:.3f}: the web stays behind"
    return f"the best web result, {max(known):.3f}, is graded no higher than what was found: it stays behind"
