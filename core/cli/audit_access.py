"""`audit-access`: whether text of documents that a group may not see gets into the steps of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from core.cli.commands import COLUMNS, command
from core.cli.common import emit, warn, working
from core.cli.text import table
from core.domain.errors import BadInput, Unavailable
from core.evaluation.spec import option


@command("audit-access")
def audit_access_(
    corpus: str,
    group: str = option(MISSING, "The group whose view is tested.", "GROUP", flags="--as"),
    rules: Sequence[str] = option(
        (),
        "Documents with this metadata may be seen by these groups alone; over [access] of the settings; "
        "repeatable. VALUE * means all others.",
        "FIELD=VALUE:GROUP,...",
        flags="--access",
    ),
    routes: str | None = option(None, "Names from `routes`, or all. Default: all that ask no model.", "A,B"),
    questions: Sequence[Path] = option((), "As of `eval`; repeatable.", "FILE"),
    columns: Mapping[str, str] = COLUMNS,
    labels: str | None = option(None, "Questions and labels of a label set from the Label page.", "NAME"),
    canaries: int = option(
        3, "Made-up forbidden documents, planted in a scratch copy of the index.", "N", most=50
    ),
    limit: int = option(50, "At most N labelled questions.", "N", least=1),
) -> int:
    """Test whether text of documents that GROUP may not see gets into the steps of routes.

    Asks questions whose best evidence is forbidden, unfiltered and with the access rules as a filter of
    retrieval: labelled ones, and ones about canaries. Shows by route and step at how many questions forbidden
    text got in. Prints ids, never the texts. This tests retrieval; it is not a permission system.

    Exit code 0: nothing forbidden got in after the filter; 1: something did, or a route failed on a
    question; 2: bad input.
    """
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.domain import filters, settings
    from core.engine.engine import shared_engine
    from core.evaluation import sets
    from core.evaluation.access import audit_access, own_questions
    from core.evaluation.dataset import LabelledSet
    from core.evaluation.labels.final import labelled_set
    from core.routes.registry import pick

    if labels is not None and questions:
        raise BadInput("--labels cannot be combined with --questions")
    now = settings.current()
    merged = filters.with_rules(now.access, rules)
    filters.conditions(merged, group)  # before an index is built
    chosen = pick(routes) if routes is not None else [one for one in pick("all") if not one.asks()]
    engine = shared_engine()
    source = catalogue.source(corpus, settings=now)
    ensure(source, now)
    opened = engine.corpus(source.name)
    labelled: LabelledSet | None
    said: list[str] = []
    if labels is not None:
        if engine.store is None:
            raise Unavailable("labels are not stored here")
        labelled, said = labelled_set(engine.store, labels, opened, split="all")
    elif questions:
        read = sets.read(source.name, source.path, split="all", questions=questions, columns=columns)
        labelled, said = sets.tie(read, opened)
    else:
        labelled = own_questions(opened, source.path)
    warn(said)
    with working() as (bar, stop):
        found = audit_access(
            engine,
            source.name,
            group,
            merged,
            chosen,
            labelled=labelled,
            limit=limit,
            canaries=canaries,
            progress=bar,
            cancel=stop,
        )
    document = found.document()
    emit(document, lambda: _text(document))
    return 0 if found.clean else 1


def _text(document: Mapping[str, Any]) -> str:
    """Draw the table for people."""

    heads = ["route", "step", "questions asked", "leaked unfiltered", "leaked filtered", "example"]
    rows = []
    for route in document["routes"]:
        if not route["asked"]:
            rows.append([route["route"], "", 0, "", "", f"not tested: {route['problem']}"])
        if route["failed"]:
            why = f"{route['failed']} questions have no result: {route['problem']}"
            rows.append([route["route"], "", route["asked"], "", "", why])
        elif route["asked"] and not route["steps"]:
            rows.append([route["route"], "", route["asked"], 0, 0, "forbidden text was never found"])
        for step in route["steps"]:
            first = step["examples"][0] if step["examples"] else {}
            example = f"{first.get('question', '')}: {first.get('passage', '')} in {first.get('span', '')}"
            rows.append(
                [route["route"], step["step"], route["asked"], step["before"], step["after"], example]
            )
    asked, hidden = document["questions"], document["forbidden"]
    failed = [route["route"] for route in document["routes"] if route["failed"]]
    result = (
        f"Forbidden text got into {document['leaked_after']} steps after the filter."
        if document["leaked_after"]
        else "Nothing forbidden got in after the filter."
    )
    if failed:
        result += f" Not shown for {', '.join(failed)}, which failed on some questions."
    return "\n".join(
        (
            f"As {document['as']}, who may see what meets: {' and '.join(document['filter'])}",
            f"{asked['labelled']} labelled questions, {asked['canaries']} canaries; "
            f"{hidden['documents']} documents of the corpus are forbidden",
            "",
            table(heads, rows),
            "",
            *document["notes"],
            result,
            document["note"],
        )
    )
