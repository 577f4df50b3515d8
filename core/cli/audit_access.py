"""`audit-access`: whether text of documents that a group may not see gets into the steps of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from core.cli.asked_corpus import with_questions
from core.cli.commands import COLUMNS, QUESTIONS, ROUTES, command
from core.cli.common import emit, table, working
from core.domain import filters, settings
from core.domain.errors import BadInput
from core.engine import engine as engines
from core.evaluation.access import audit_access
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.routes.registry import pick


@command("audit-access")
def audit_access_(
    corpus: str,
    group: str = option(MISSING, "The group whose view is tested.", "GROUP", flags="--as"),
    rules: Sequence[str] = option(
        (),
        "Who may see documents with this metadata, VALUE * for all others; adds to [access] of the settings; "
        "repeatable.",
        "FIELD=VALUE:GROUP,...",
        flags="--access",
    ),
    routes: str | None = ROUTES,
    questions: Sequence[Path] = QUESTIONS,
    columns: Mapping[str, str] = COLUMNS,
    labels: str | None = option(None, "Questions and labels of a label set from the Label page.", "NAME"),
    canaries: int = option(3, "Forbidden documents planted in a copy of the index.", "N", most=50),
    limit: int = option(50, "At most N labelled questions.", "N", least=1),
) -> int:
    """Test whether text of documents that GROUP may not see gets into the steps of routes.

    Asks questions whose best evidence is forbidden, unfiltered and with the access rules as a filter of
    retrieval: labelled ones, and ones about canaries. Shows by route and step at how many questions forbidden
    text got in. Prints ids, never the texts. This tests retrieval; it is not a permission system.

    Exit code 0: nothing forbidden got in after the filter; 1: something did, or a route failed on a
    question; 2: bad input.
    """
    if labels is not None and questions:
        raise BadInput("--labels cannot be combined with --questions")
    now = settings.current()
    merged = filters.with_rules(now.access, rules)
    filters.conditions(merged, group)  # before an index is built
    chosen = pick(routes) if routes is not None else [one for one in pick("all") if not one.asks()]
    source, _, labelled = with_questions(corpus, questions, columns, labels)
    with working() as (bar, stop):
        how: dict[str, Any] = {"limit": limit, "canaries": canaries, "progress": bar, "cancel": stop}
        about = engines.shared_engine(), source.name, group, merged, chosen
        found = audit_access(*about, labelled=labelled, **how)
    document = found.document()
    emit(document, _text(document))
    return 0 if found.clean else 1


def _text(document: Mapping[str, Any]) -> str:
    """Draw the table for people."""
    heads = ["route", "step", "questions asked", "leaked unfiltered", "leaked filtered", "example"]
    rows: list[tuple[object, ...]] = []
    for route in document["routes"]:
        name, asked = route["route"], route["asked"]
        if not asked:
            rows.append((name, "", 0, "", "", f"not tested: {route['problem']}"))
        if route["failed"]:
            why = f"{route['failed']} questions have no result: {route['problem']}"
            rows.append((name, "", asked, "", "", why))
        elif asked and not route["steps"]:
            rows.append((name, "", asked, 0, 0, "forbidden text was never found"))
        for step in route["steps"]:
            example = (
                "{question}: {passage} in {span}".format(**step["examples"][0]) if step["examples"] else ""
            )
            rows.append((name, step["step"], asked, step["before"], step["after"], example))
    return say("commands.access", document, table(heads, rows))
