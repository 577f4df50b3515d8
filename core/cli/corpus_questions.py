"""`audit-access`, `gaps` and `hubs`: what the questions of a corpus show about it, its access rules too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from core.cli import corpora
from core.cli.commands import COLUMNS, QUESTIONS, ROUTES, command
from core.cli.common import emit, table, warn, working
from core.cli.imports import open_store
from core.corpus import catalogue
from core.corpus.corpus import Corpus
from core.corpus.source import Source
from core.domain import filters, settings
from core.domain.errors import BadInput
from core.domain.text import one_line
from core.engine import engine as engines
from core.engine.availability import without_model
from core.evaluation import access, gaps, hubs, sets
from core.evaluation.dataset import LabelledSet
from core.evaluation.labels.final import labelled_set
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.routes.registry import pick

KEYS = ("returned", "displaces", "passage", "title")  # of a hub, that are printed


def with_questions(
    target: str, questions: Sequence[Path], columns: Mapping[str, str], labels: str | None = None
) -> tuple[Source, Corpus, LabelledSet | None]:
    """Return a corpus, built if it is not ready, with the questions of the files, or of the label set.
    Without either, with its own labelled ones, or None if it has none.
    """
    now, engine = settings.current(), engines.shared_engine()
    source = catalogue.source(target, settings=now)
    given: dict[str, Any] = {"questions": questions, "columns": columns}
    # before an index is built: an invalid file is reported immediately
    found = sets.read(source.name, source.path, split="all", **given) if questions else None
    corpora.ensure(source, now)
    corpus = engine.corpus(source.name)
    if labels is not None:
        labelled, said = labelled_set(open_store(), labels, corpus, split="all")
    elif found is None:
        return source, corpus, access.own_questions(corpus, source.path)
    else:
        labelled, said = sets.tie(found, corpus)
    warn(said)
    return source, corpus, labelled


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
        found = access.audit_access(*about, labelled=labelled, **how)
    document = found.document()
    emit(document, _leaks(document))
    return 0 if found.clean else 1


def _leaks(document: Mapping[str, Any]) -> str:
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


@command("gaps")
def gaps_(
    corpus: str,
    questions: tuple[Path, ...] = option(MISSING, "As of `eval`, labelled or not; repeatable.", "FILE"),
    columns: Mapping[str, str] = COLUMNS,
    routes: str | None = ROUTES,
) -> None:
    """Sort questions that no route answers into gaps (in no document) and misses (not found).

    A question is answered if one of a route's first five passages answers it: by its labels, or else by a
    test that is calibrated on labelled questions of the corpus, or on its own sentences, with and without
    their documents. The test calls one in ten answerable questions a gap; how many real gaps it finds is
    printed. Names the document to write for each cluster of gaps, and the nearest route for misses.
    """
    source, opened, labelled = with_questions(corpus, questions, columns)
    assert labelled is not None  # --questions is required
    engine = engines.shared_engine()
    chosen = pick(routes) if routes is not None else without_model(engine, source.name)
    names, known = [route.name for route in chosen], access.own_questions(opened, source.path) or labelled
    with working() as (bar, stop):
        document = gaps.find(engine, opened, labelled, names, known, progress=bar, cancel=stop)
    warn(document["warnings"])
    emit(document, _clusters(document))


def _clusters(document: Mapping[str, Any]) -> str:
    """Format the clusters, the questions and the test for people."""
    texts = {one["id"]: one["text"] for kind in ("gaps", "misses") for one in document[kind]}
    rows = [
        (one["kind"], len(one["questions"]), one_line(texts[one["questions"][0]]), one_line(one["advice"]))
        for one in document["clusters"]
    ]
    heads = ("kind", "questions", "for example", "advice")
    return say("commands.gaps", document, table(heads, rows) if rows else "")


@command("hubs")
def hubs_(
    corpus: str,
    questions: tuple[Path, ...] = option((), "As of `eval`, labelled; repeatable.", "FILE"),
    columns: Mapping[str, str] = COLUMNS,
) -> None:
    """List hubs, the passages returned for many questions, and those never returned.

    A sentence of each passage is asked, up to 2,000, by words and by vectors. With labelled questions, those
    of `--questions` or of the corpus, it also names the relevant passages that hubs keep out of the first 10,
    and measures what taking the hubs out of the rankings changes.
    """
    _, opened, labelled = with_questions(corpus, questions, columns)
    with working() as (bar, stop):
        document = hubs.find(engines.shared_engine(), opened, labelled, progress=bar, cancel=stop)
    emit(document, _hubs(document))


def _hubs(document: Mapping[str, Any]) -> str:
    """Format the hubs of each search for people."""
    heads = ("returned for", "displaces", "passage", "title")
    grids = {}
    for name, search in document["searches"].items():
        shown = (dict(one, title=one_line(one["title"])) for one in search["hubs"])
        grids[name] = table(heads, ([one[key] for key in KEYS] for one in shown))
    return say("commands.hubs", document, grids)
