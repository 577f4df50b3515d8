"""`audit-access`: whether text of documents that a group may not see gets into the steps of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.cli.common import ProgressBar, columns_option, emit, note, output_options, stoppable
from core.domain.errors import BadInput

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet

_FILE = click.Path(path_type=Path)


@click.command("audit-access")
@click.argument("corpus", metavar="CORPUS")
@click.option("--as", "group", required=True, metavar="GROUP", help="The group whose view is tested.")
@click.option(
    "--access",
    "rules",
    multiple=True,
    metavar="FIELD=VALUE:GROUP,...",
    help="Documents with this metadata may be seen by these groups alone; over [access] of the settings; "
    "repeatable. VALUE * means all others.",
)
@click.option("--routes", metavar="A,B", help="Names from `routes`, or all. Default: all that ask no model.")
@click.option("--questions", type=_FILE, multiple=True, metavar="FILE", help="As of `eval`; repeatable.")
@columns_option
@click.option("--labels", metavar="NAME", help="Questions and labels of a label set from the Label page.")
@click.option(
    "--canaries",
    type=click.IntRange(0, 50),
    default=3,
    show_default=True,
    metavar="N",
    help="Made-up forbidden documents, planted in a scratch copy of the index.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="At most N labelled questions.",
)
@output_options
def audit_access_(
    corpus: str,
    group: str,
    rules: Sequence[str],
    routes: str | None,
    questions: Sequence[Path],
    columns: Mapping[str, str],
    labels: str | None,
    canaries: int,
    limit: int,
    as_json: bool,
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
    from core.domain import access, settings
    from core.engine.engine import shared_engine
    from core.evaluation.access import audit_access
    from core.routes.registry import pick

    if labels is not None and questions:
        raise BadInput("--labels cannot be combined with --questions")
    now = settings.current()
    merged = access.with_rules(now.access, rules)
    access.conditions(merged, group)  # before an index is built
    chosen = pick(routes) if routes is not None else [one for one in pick("all") if not one.asks()]
    engine = shared_engine()
    source = catalogue.source(corpus, settings=now)
    ensure(source, now)
    labelled, said = _labelled(engine, engine.corpus(source.name), source.path, questions, columns, labels)
    for line in said:
        note(f"warning: {line}")
    bar = ProgressBar("")
    with stoppable() as asked:
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
            cancel=asked,
        )
    bar.close()
    document = found.document()
    emit(document, lambda: _text(document), as_json=as_json)
    return 0 if found.clean else 1


def _labelled(
    engine: Engine,
    corpus: Corpus,
    folder: Path | None,
    questions: Sequence[Path],
    columns: Mapping[str, str],
    labels: str | None,
) -> tuple[LabelledSet | None, list[str]]:
    """Read the questions given, or those that the corpus has; None if it has none."""
    from core.domain.errors import Unavailable
    from core.evaluation import sets
    from core.evaluation.access import own_questions

    if labels is not None:
        from core.evaluation.labels.final import labelled_set

        if engine.store is None:
            raise Unavailable("labels are not stored here")
        return labelled_set(engine.store, labels, corpus, split="all")
    if not questions:
        return own_questions(corpus, folder), []
    found = sets.read(corpus.name, folder, split="all", questions=questions, columns=columns)
    return sets.tie(found, corpus)


def _text(document: Mapping[str, Any]) -> str:
    """Draw the table for people."""
    from core.cli.text import table

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
