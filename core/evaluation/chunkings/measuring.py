"""An evaluation of one source in several chunkings: the same questions, routes and labels over each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Unpack

from core.corpus import catalogue
from core.corpus.corpus import Corpus
from core.corpus.source import AT, Source, check_varies, fits, is_reading, key_of, variant_key
from core.domain.errors import BadInput, Unavailable
from core.domain.machine import machine
from core.domain.program import COMMAND
from core.engine.availability import missing, why_not, without_model
from core.engine.engine import Engine
from core.evaluation import experiment, sets
from core.evaluation.chunkings import report
from core.evaluation.chunkings.coverage import (
    BUDGET,
    COVERAGE,
    Areas,
    Tokens,
    areas,
    following,
    in_words,
    measures,
    ranges,
    reachable,
    written_of,
)
from core.evaluation.dataset import Found, LabelledSet, Written
from core.evaluation.experiment import Prepared
from core.evaluation.experiment_store import LABELLED, opened, write_labelled
from core.evaluation.labels.final import labelled_set
from core.evaluation.labels_file import place, resolved
from core.evaluation.outcome import Journal
from core.evaluation.runner import Course
from core.evaluation.spec import Spec
from core.routes.registry import pick

FOLDER = "chunkings"  # in that of the evaluation: one of each chunking but the corpus' own


@dataclass(frozen=True, slots=True)
class Group:
    """A checked spec: for each corpus what is asked of it, the source's own first, and the labelled text."""

    spec: Spec
    parts: Mapping[str, Prepared]
    placed: Areas  # in the source's own corpus and its chunkings
    readings: Mapping[str, Areas]  # by corpus, the same text in other readings of the source

    @property
    def total(self) -> int:
        """Return how many questions are asked over all chunkings."""
        return sum(len(part.labelled.questions) * self.spec.repeats for part in self.parts.values())


def prepare(engine: Engine, spec: Spec, found: Found | None = None) -> Group:
    """Check `spec`, whose chunkings must be indexed; see core.evaluation.experiment.prepare.

    Raises BadInput for a set without any labelled text, and Unavailable where a route that is named cannot
    run over one of the chunkings; without names, those routes are measured that can run over all.
    """
    source = catalogue.source(spec.corpus, settings=engine.settings, known_only=True)
    check_varies(source)
    if spec.runs:
        raise BadInput("replies from a file (--run) are of one corpus; measure chunkings without them")
    names = _names(source, spec.chunkings)
    routes = _routes(engine, spec, names)
    base = engine.corpus(spec.corpus)
    if spec.labels is None and found is None:
        found = sets.of_spec(spec, source.path)
    written, relevant_from, lost = _written(engine, spec, found, base)
    placed = areas(written, base, relevant_from)
    whole = replace(spec, routes=routes)
    parts = {spec.corpus: experiment.prepare(engine, whole, found)}
    readings: dict[str, Areas] = {}
    for name in names[1:]:
        given, corpus, moved = found, engine.corpus(name), written
        if is_reading(name):
            readings[name] = areas(written, corpus, relevant_from, original=base)
            moved = following(written, corpus)
        if isinstance(found, LabelledSet):
            placed_here = place(moved, corpus, relevant_from=relevant_from)
            given = replace(found, qrels=placed_here.qrels, places=placed_here.places)
        elif moved is not written and spec.labels is None:
            given = moved
        own = replace(whole, corpus=name, chunkings=())
        parts[name] = experiment.prepare(engine, own, given)
    asked = [question.id for question in parts[spec.corpus].labelled.questions]
    placed = {id: placed[id] for id in asked if id in placed}
    if all(area.lost for some in placed.values() for area in some):
        raise BadInput(f"{written.name}: none of its {len(asked)} questions has labelled text to be covered")
    said = list(parts[spec.corpus].labelled.reading)
    if lost:
        said += [f"{len(lost)} labels are not in the text of {spec.corpus}, for example {lost[0]!r}"]
    for name, found_there in readings.items():
        lost = [id for id in placed if any(area.lost for area in found_there[id])]
        readings[name] = {id: found_there[id] for id in placed}
        if lost:
            said += [f"{name} lacks labelled words of {len(lost)} questions, for example {lost[0]}"]
    first = parts[spec.corpus]
    parts[spec.corpus] = replace(first, warnings=(*said, *first.warnings))
    return Group(whole, parts, placed, readings)


def perform(
    engine: Engine, group: Group, *, out: Path | None = None, **course: Unpack[Course]
) -> dict[str, Any]:
    """Ask every question over every chunking and give the figures of core.evaluation.chunkings.report.

    With `out` each is saved as an evaluation: that of the corpus itself there, the others in folders below;
    the same call goes on where it was stopped. Raises BadInput where another evaluation is there.
    """
    base = group.spec.corpus
    first = group.parts[base]
    warnings = dict.fromkeys(first.warnings)
    if out is not None:  # listed before the first chunking is asked, so that it can be resumed
        fresh = course.get("fresh", False)
        before = Spec.read(opened(out).spec) if (out / LABELLED).is_file() and not fresh else None
        if before not in (None, Spec.read(first.spec.document())):
            raise BadInput(f"{out} holds another evaluation; give another name, or --fresh to replace it")
        with Journal.open(out, experiment.conditions_of(first.plan, engine), fresh=fresh):
            write_labelled(out, first.labelled, first.spec.document())
    progress = course.get("progress", lambda _done, _total: None)
    own = Tokens(engine.corpus(base))
    labelled = {id: ranges(found, own) for id, found in group.placed.items()}
    values: dict[str, report.Values] = {}
    rows: dict[str, Mapping[str, Mapping[str, Any]]] = {}
    done, whole = 0, True
    for name in (*(name for name in group.parts if name != base), base):  # the list says finished at the end
        part = group.parts[name]
        folder = out if out is None or name == base else out / FOLDER / str(key_of(name))
        course["progress"] = lambda asked, _of, before=done: progress(before + asked, group.total)  # type: ignore[misc,no-untyped-call]
        figures, drawn, outcomes = experiment.perform(engine, part, out=folder, **course)
        done += len(drawn.questions) * group.spec.repeats
        warnings |= dict.fromkeys(f"{name}: {one}" for one in figures["warnings"] if one not in warnings)
        texts, wanted, corpus = own, labelled, engine.corpus(name)
        if name in group.readings:
            texts = Tokens(corpus)
            wanted = {id: ranges(found, texts) for id, found in group.readings[name].items()}
        values[name] = {route: {} for route in part.plan.routes}
        for question, by in outcomes.items():  # where text is labelled and the route ended well
            dropped = question if drawn.drop_self else None  # BEIR's rule, for passages of the own document
            for route, one in by.items() if question in wanted else ():
                found = corpus.by_ids([id for id, _ in one.hits]) if one.status == "ok" else {}
                known = [found[id] for id, _ in one.hits if id in found]
                ranking = [texts.of(passage) for passage in known if passage.doc_id != dropped]
                if one.status == "ok" and (row := measures(wanted[question], ranking)) is not None:
                    values[name][route][question] = row
        rows[name] = figures["routes"]
        if figures["interrupted"]:
            whole = False
            break
    ordered = {name: values[name] for name in group.parts if name in values}
    document = {
        "dataset": first.labelled.name,
        "corpus": base,
        "split": group.spec.split,
        "queries": len(first.labelled.questions),
        "labelled": len(labelled),
        "labels": in_words(group.placed),
        "budget": BUDGET,
        "reachable": fmean(map(reachable, labelled.values())),
        "chunkings": {name: report.of_corpus(engine.corpus(name)) for name in ordered},
        **report.table(ordered, base, COVERAGE, rows),
        "machine": machine(),
        "interrupted": not whole,
        "warnings": list(warnings),
    }
    if out is not None:
        report.write(out, document, ordered, {base: group.placed, **group.readings})
    return document


def _names(source: Source, chunkings: Sequence[str]) -> list[str]:
    """Return the corpora to measure, that of the source first. Raises BadInput if it would be alone."""
    keys = dict.fromkeys(map(variant_key, chunkings))
    names = [source.name, *(f"{source.name}{AT}{key}" for key in keys if not fits(source, key))]
    if len(names) == 1:
        make = f"{COMMAND} index {source.name} --chunkings 256,512,headings"
        raise BadInput(f"{source.name} is compared with no other chunking; make some: {make}")
    return names


def _routes(engine: Engine, spec: Spec, names: Sequence[str]) -> tuple[str, ...]:
    """Return the routes to measure: those named, else those without a model that can run over every
    corpus.
    """
    if not spec.routes:
        first, *others = ([route.name for route in without_model(engine, name)] for name in names)
        return tuple(route for route in first if all(route in able for able in others))
    for name in names:
        gaps = missing(engine, name)
        for route in pick(list(spec.routes)):
            if why := why_not(route, gaps):
                raise Unavailable(f"{route.name} cannot run over {name}: {why}")
    return tuple(route.name for route in pick(list(spec.routes)))


def _written(engine: Engine, spec: Spec, found: Found | None, base: Corpus) -> tuple[Written, int, list[str]]:
    """Return the labels as places in documents, from which grade they count, and what was lost of them."""
    if spec.labels is not None:
        if engine.store is None:
            raise Unavailable(f"labels are not stored here, so the set {spec.labels!r} cannot be read")
        found, _ = labelled_set(engine.store, spec.labels, base, split=spec.split)
    if isinstance(found, LabelledSet):
        written, lost = written_of(found, base)
        return written, found.relevant_from, lost
    assert found is not None
    written, lost_labels, _ = resolved(found, base)
    return written, 2, [id for ids in lost_labels.values() for id in ids]
