"""`diff`: what broke and what was fixed between two evaluations, question by question."""

from __future__ import annotations

from collections.abc import Sequence

from core.cli.commands import argument, command
from core.cli.common import emit
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.text import one_line
from core.evaluation.diff import evaluations as words
from core.evaluation.diff.evaluations import EvaluationsDiff, evaluations_diff
from core.evaluation.release.measured import find_evaluation
from core.evaluation.spec import option


@command("diff")
def diff_(
    before: str = argument("A"),
    after: str = argument("B"),
    routes: Sequence[str] = option(
        (), "A route, or one of A with one of B; repeatable. Default: all.", "R|A_ROUTE:B_ROUTE", "--route"
    ),
    metric: str = option("ndcg@10", "Metric of the means; its number after @ is k (10 if it has none)."),
) -> None:
    """Show which questions broke and which were fixed from evaluation A to B, and at which step.

    Each is listed with the passage that was lost or found. A and B are names of saved evaluations or folders
    of `eval --out`.

    A relevant passage is found if it is among the first k of the ranking. A question is broken if B finds
    fewer of its relevant passages than A, fixed if B finds more, and unchanged if B finds as many; a route
    that failed found nothing. Compared are the questions that both have with the same text and a relevant
    passage in common. The step is read from the recorded traces, and "not recorded" if there are none.

    If the corpus changed, displaced_by names the new and changed documents now ranked above a relevant
    passage that left the first k or whose reciprocal rank halved. rank_without is its rank in B's recorded
    ranking without these documents; if B did not rank it, the best rank that leaves.

    Exits with 0 whatever the difference, 2 on invalid input.
    """

    now = settings.current()
    found = evaluations_diff(
        find_evaluation(now, before), find_evaluation(now, after), [_pair(one) for one in routes], metric
    )
    emit(found.document(), _text(found))


def _pair(given: str) -> tuple[str, str]:
    before, colon, after = given.partition(":")
    if not before or (colon and not after):
        raise BadInput(f"--route {given!r}: give the name of a route, or A_ROUTE:B_ROUTE")
    return before, after or before


def _text(found: EvaluationsDiff) -> str:
    lines = [f"{found.before} to {found.after}, {found.metric}", words.rule(found.depth), *found.notes]
    for one in found.routes:
        lines += ["", words.route_name(one), *words.summary(found, one)]
        for question in (*one.questions.of("broken"), *one.questions.of("fixed")):
            about = f"{question.change:7} {question.id} {question.text}"
            lines += [about, *(f"{'':8}{words.passage_change(one)}" for one in [question.decisive] if one)]
        lines += [line for question in one.questions.questions for line in words.displacements(question)]
    return "\n".join(_line(line) for line in lines)


def _line(line: str) -> str:
    return line[: len(line) - len(line.lstrip())] + one_line(line)
