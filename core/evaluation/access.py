"""Tests whether text of documents that a group may not see gets into the steps of routes.

Each question is asked unfiltered and with the access rules as a filter of retrieval. It tests retrieval;
it is not a permission system.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from core.corpus import catalogue, index
from core.corpus.build import Progress
from core.corpus.chunk import WHOLE
from core.corpus.corpus import Corpus
from core.corpus.embeddings import gate
from core.corpus.enrichments import store as enrichments
from core.corpus.source import slug
from core.domain import filters, outputs
from core.domain.errors import BadInput, Cancelled, ModelFailed, Unavailable
from core.domain.filters import Filter
from core.domain.types import AnswerStyle, Passage, Query, RouteResult, Run, Span
from core.engine.availability import missing, why_not
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.runner import ask
from core.routes.declare import Route
from core.store import Store

NOTE = (
    "This tests retrieval. It is not a permission system: anyone who may search a corpus may see all of its"
    " documents."
)
KEYS = {  # the kind of step that searches these keys
    **dict.fromkeys(("summaries", "extracts"), "summary"),
    **dict.fromkeys(("questions", "expanded"), "hypothetical question"),
}
NAME = "access-audit"  # of the scratch copy
MOST_COPIED = 2_000  # passages of the scratch copy: a leak does not depend on how many others there are
SHINGLE = 6  # words in a row that two texts share only if one was made from the other
EXAMPLES = 3  # a step
ALIKE = 300  # characters that a canary takes over from a visible document
QUESTIONS, CANARIES = 50, 3
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class StepLeaks:
    """The questions at which forbidden text got into one step of a route, unfiltered and filtered."""

    before: set[str] = field(default_factory=set)
    after: set[str] = field(default_factory=set)
    examples: list[dict[str, str]] = field(default_factory=list)  # ids of filtered leaks, or else of others


class ForbiddenText:
    """Recognises the passages that a group may not see, by their ids, by words that only they have, and by
    SHINGLE words in a row that no visible passage has.
    """

    def __init__(self, corpus: Corpus, where: Sequence[Filter], evidence: Collection[str]) -> None:
        """Read `corpus` once; texts are compared with those of the passages `evidence`."""
        allowed = corpus.allowed(where)
        self.corpus = corpus.name
        self.ids: set[str] = set()
        self.documents: set[str] = set()
        self._shingles: dict[tuple[str, ...], str] = {}
        for id, passage in corpus.by_ids(list(evidence)).items():
            for shingle in _shingles(_words(passage.text)):
                self._shingles.setdefault(shingle, id)
        for row, passage, _ in corpus.everything():
            if allowed is not None and not allowed[row]:
                self.ids.add(passage.id)
                self.documents.add(passage.doc_id)
            else:
                for shingle in _shingles(_words(passage.text)):
                    self._shingles.pop(shingle, None)
        self.words: dict[str, str] = {}  # of canaries, with the passage they are in

    def within(self, value: Any, question: str) -> str | None:
        """Return the id of a forbidden passage that JSON values name or quote, or None if they contain no
        such passage.
        """
        own = _words(question)
        known, asked = set(_shingles(own)), set(own)
        for text in _texts(value):
            if text in self.ids:
                return text
            words = _words(text)
            for word in words:
                if word in self.words and word not in asked:
                    return self.words[word]
            for shingle in _shingles(words):
                if shingle in self._shingles and shingle not in known:
                    return self._shingles[shingle]
        return None


class AccessAudit:
    """An audit: it asks routes, and keeps what their steps contain."""

    def __init__(
        self,
        corpus: str,
        group: str,
        where: Sequence[Filter],
        routes: Sequence[Route],
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self.corpus, self.group, self.where = corpus, group, tuple(where)
        self._routes, self._progress, self._stop = routes, progress, stop
        self.labelled = self.canaries = self.documents = self.passages = 0
        self.asked: Counter[str] = Counter()
        self.problems: dict[str, str] = {}  # by route: why it could not be tested
        self.failed: Counter[str] = Counter()  # by route: questions without a result after the filter
        self.leaks: dict[str, dict[str, StepLeaks]] = {}
        self.notes: list[str] = []

    @property
    def leaked(self) -> int:
        """Return how many steps of routes contain forbidden text after the filter."""
        return sum(bool(one.after) for steps in self.leaks.values() for one in steps.values())

    @property
    def clean(self) -> bool:
        """Return whether every question had a result after the filter, and none contained forbidden text."""
        return not self.leaked and not self.failed

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON values; texts are left out."""
        return {
            "corpus": self.corpus,
            "as": self.group,
            "filter": list(map(str, self.where)),
            "note": NOTE,
            "questions": {"labelled": self.labelled, "canaries": self.canaries},
            "forbidden": {"documents": self.documents, "passages": self.passages},
            "routes": [
                {
                    "route": route,
                    "asked": self.asked[route],
                    "failed": self.failed[route],
                    "problem": self.problems.get(route),
                    "steps": [
                        {
                            "step": step,
                            "before": len(one.before),
                            "after": len(one.after),
                            "examples": one.examples[:EXAMPLES],
                        }
                        for step, one in self.leaks.get(route, {}).items()
                    ],
                }
                for route in dict.fromkeys((*self.asked, *self.problems))
            ],
            "leaked_after": self.leaked,
            "clean": self.clean,
            "notes": self.notes,
        }

    def add(self, run: Run, question: Question, forbidden: ForbiddenText, *, filtered: bool) -> None:
        """Look through every span and answer of a run."""
        for result in run.results:
            failed = result.status != "ok"
            if failed:
                self.problems[result.route] = f"{result.status}: {result.error}"
            if filtered:
                self.asked[result.route] += 1
                self.failed.update([result.route] if failed else [])
            for step, span, passage in found_in(result, run.passages, question.query.text, forbidden):
                at = self.leaks.setdefault(result.route, {}).setdefault(step, StepLeaks())
                example = {"question": question.id, "passage": passage, "span": span}
                if filtered and not at.after:
                    at.examples.clear()  # those of the unfiltered run give way
                if filtered or not at.after:
                    at.examples.append(example)
                (at.after if filtered else at.before).add(question.id)

    def ask(self, engine: Engine, questions: Sequence[Question], forbidden: ForbiddenText) -> None:
        """Ask each question unfiltered, what remembers again in the same session, and all with the filter."""
        gaps = missing(engine, forbidden.corpus)
        lacking = {route.name: why for route in self._routes if (why := why_not(route, gaps))}
        self.problems |= {name: why for name, why in lacking.items() if name not in self.asked}
        able = tuple(route.name for route in self._routes if route.name not in lacking)
        remembering = tuple(r.name for r in self._routes if r.family == "memory" and r.name not in lacking)
        for at, question in enumerate(questions if able else ()):
            self._progress("ask questions", at, len(questions))
            # Copied text leaks no less than a model's, and is the same each time.
            how: dict[str, Any] = {"answers": "all", "style": AnswerStyle("extract"), "stored": False}
            plain = Request(question.query, forbidden.corpus, able, session=f"access-{at}", **how)
            again = [replace(plain, routes=remembering)] if remembering else []
            for request in (plain, *again, replace(plain, where=self.where)):
                run = ask(engine, request, self._stop.is_set)
                if run is None:
                    raise Cancelled("stopped by the user")
                self.add(run, question, forbidden, filtered=bool(request.where))
        self._progress("ask questions", len(questions), len(questions))

    def with_canaries(self, engine: Engine, corpus: Corpus, planted: Sequence[Canary], home: Path) -> None:
        """Index the documents in `home`, which have canaries among them, and ask for these there."""
        settings = engine.settings.model_copy(update={"home": home, "database": None})
        origin = catalogue.source(corpus.name, settings=engine.settings)
        scratch = home / "indexes" / NAME
        if corpus.folder is not None and not corpus.info.place:  # its vectors need not be made again
            shutil.copytree(corpus.folder, scratch / corpus.folder.name)
        answers = engine.settings.home / "cache" / "answers.sqlite"
        if answers.is_file():  # what a model wrote for enrichments need not be asked for again
            (home / "cache").mkdir()
            with (
                closing(sqlite3.connect(answers)) as known,
                closing(sqlite3.connect(home / "cache" / "answers.sqlite")) as copy,
            ):
                known.backup(copy)
        how: dict[str, Any] = {"settings": settings, "progress": self._progress, "cancel": self._stop}
        how["begin"] = gate(settings, confirmed=False)
        chunking = origin.chunking if origin.kind != "table" else WHOLE
        language = corpus.info.language
        built = index.build(NAME, home / "documents", chunking=chunking, language=language, **how)
        needed = (need for route in self._routes for need in route.needed(route.settle({})))
        with closing(built), closing(Store(home / "canaries.sqlite")) as store:
            for name in dict.fromkeys(need.enrichment for need in needed if need.enrichment):
                former = engine.settings.home / "enrichments" / slug(corpus.name) / name
                recipe = enrichments.recipe(name)
                if recipe.uses_llm and not former.is_dir():
                    continue  # its routes cannot run in the corpus itself either
                if former.is_dir():
                    shutil.copytree(former, home / "enrichments" / NAME / name)
                try:
                    enrichments.build(name, built, **how)
                except (Unavailable, ModelFailed, BadInput) as error:
                    self.notes.append(f"the {recipe.title} could not be made: {error}")
            forbidden = ForbiddenText(built, self.where, ())
            for one in planted:
                passages = built.document(one.id)[1]
                forbidden.words |= dict.fromkeys(one.words, passages[0].id)
            questions = [question for one in planted for question in one.questions]
            self.canaries = len(planted)
            self.ask(Engine(settings, store), questions, forbidden)


def audit_access(
    engine: Engine,
    corpus_name: str,
    group: str,
    rules: filters.Rules,
    routes: Sequence[Route],
    *,
    labelled: LabelledSet | None = None,
    limit: int = QUESTIONS,
    canaries: int = CANARIES,
    progress: Progress = lambda _stage, _done, _total: None,
    cancel: threading.Event | None = None,
) -> AccessAudit:
    """Ask `routes` the labelled questions whose relevant passages are forbidden to `group`, and questions
    about canaries in a scratch copy of the index, each unfiltered and with `rules` as a filter. Nothing is
    stored.

    Raises BadInput if there is nothing to ask, or if no route could be asked; Unavailable, Cancelled.
    """
    where = filters.conditions(rules, group)
    corpus = engine.corpus(corpus_name)
    found = AccessAudit(corpus_name, group, where, routes, progress, cancel or threading.Event())
    fields = {one.name.casefold() for one in corpus.metadata.fields}
    # Without the fields of the rules only canaries are forbidden.
    ruled = where if all(one.field.casefold() in fields for one in where) else ()
    with tempfile.TemporaryDirectory(prefix="routescope-access-") as folder:
        home = Path(folder)
        evidence = _forbidden_evidence(corpus, ruled, labelled)
        asked = list(evidence)[:limit]
        forbidden = ForbiddenText(corpus, ruled, {id for q in asked for id in evidence[q]})
        found.labelled = len(asked)
        found.documents, found.passages = len(forbidden.documents), len(forbidden.ids)
        if not asked and not canaries:
            raise BadInput(f"no labelled question needs a document that {group!r} may not see")
        if asked:
            with closing(Store(home / "labelled.sqlite")) as store:
                found.ask(Engine(engine.settings, store), asked, forbidden)
        if canaries:
            found.with_canaries(engine, corpus, _plant(corpus, rules, group, canaries, home), home)
    if not any(found.asked.values()):
        problems = "; ".join(f"{name}: {why}" for name, why in found.problems.items())
        raise BadInput(f"no route could be asked: {problems}")
    return found


def found_in(
    result: RouteResult, passages: Mapping[str, Passage], question: str, forbidden: ForbiddenText
) -> Iterator[tuple[str, str, str]]:
    """Yield (step, span name, id of a forbidden passage) for each span of a result with forbidden text."""
    by_id = {span.id: span for span in result.spans}

    @cache
    def of_passage(id: str) -> str | None:
        text = f"{passages[id].title} {passages[id].text}" if id in passages else ""
        return forbidden.within([id, text], question)

    for span in result.spans:
        inside = [outputs.document(span.output), dict(span.args), dict(span.attributes)]
        leaked = forbidden.within(inside, question)
        leaked = leaked or next((got for id, _ in span.hits or () if (got := of_passage(id))), None)
        if leaked:
            yield step_of(span, by_id), span.name, leaked
    answer = forbidden.within([result.answer or "", *result.citations], question)
    if answer:
        yield "answer", "answer", answer
    final = next((got for hit in result.hits if (got := of_passage(hit.passage.id))), None)
    if final:
        yield "ranking", "final list", final


def step_of(span: Span, by_id: Mapping[int, Span]) -> str:
    """Name the kind of step that a span is; a call of a model counts with the step that made it."""
    if span.cached is not None:
        return "cache"
    match span.output:
        case outputs.Search(recalled=recalled) if recalled:
            return "memory"
        case outputs.Search(walk=walk) if walk is not None:
            return "graph"
        case outputs.Search() if span.args.get("keys") in KEYS:
            return KEYS[span.args["keys"]]
        case outputs.Entities():
            return "graph"
        case outputs.Rewrite(role="context") | outputs.Embedding(recalled=(_, *_)):
            return "memory"
        case outputs.Rewrite():
            return "rewrite"
        case outputs.TableResult():
            return "table"
        case outputs.Written() | outputs.ShortAnswer():
            return "answer"
    if isinstance(span.output, outputs.Reply) and span.parent is not None:
        return step_of(by_id[span.parent], by_id)
    return "search" if span.kind in ("RETRIEVER", "EMBEDDING", "TOOL") else "ranking"


def own_questions(corpus: Corpus, folder: Path | None) -> LabelledSet | None:
    """Read the labelled questions that belong to a corpus; None if it has none."""
    try:
        found = sets.read(corpus.name, folder, split="all")
    except BadInput:
        return None
    return sets.tie(found, corpus)[0]


def _forbidden_evidence(
    corpus: Corpus, where: Sequence[Filter], labelled: LabelledSet | None
) -> dict[Question, list[str]]:
    """Return the questions whose relevant passages are all forbidden, with those passages."""
    allowed, found = corpus.allowed(where), dict[Question, list[str]]()
    if labelled is None or allowed is None:
        return found
    for question in labelled.questions:
        known = corpus.by_ids(labelled.relevant(question.id))
        if known and not any(allowed[corpus.row(id)] for id in known):
            found[question] = list(known)
    return found


# --- canaries


@dataclass(frozen=True, slots=True)
class Canary:
    """A made-up forbidden document, the words that only it has, and the questions it answers."""

    id: str
    title: str
    text: str
    words: tuple[str, ...]
    questions: tuple[Question, ...]


def canary(number: int, about: str, like: str) -> Canary:
    """Make a document with unguessable words on the subject of a visible one, and with its beginning, so that
    both come to stand in one group of passages.
    """
    words = tuple(
        "".join(secrets.choice("bcdfghklmnprstvz") + secrets.choice("aeiou") for _ in range(5))
        for _ in range(3)
    )
    name, code, person = (word.capitalize() for word in words)
    subject = " ".join(about.split()[:12])
    text = f"{like[:ALIKE]} {subject} has the code name {name}, which {person} keeps in {code}."
    id = f"access-canary-{number}"
    asked = (
        Question(f"{id}-subject", Query(f"What is the code name of {subject}?")),
        Question(f"{id}-name", Query(f"Who gave the code name {name}?")),
    )
    return Canary(id, f"{subject} ({name})", text, words, asked)


def _plant(corpus: Corpus, rules: filters.Rules, group: str, count: int, home: Path) -> list[Canary]:
    """Write documents of `corpus`, evenly chosen, with canaries among them, as a BEIR folder."""
    folder = home / "documents"
    folder.mkdir()
    share = max(1, -(-corpus.size // MOST_COPIED))
    fields = [name for name in rules if name in {one.name for one in corpus.metadata.fields}]
    ids = list(dict.fromkeys(passage.doc_id for _, passage, _ in corpus.everything()))[::share]
    allowed = corpus.allowed(filters.conditions(rules, group)) if len(fields) == len(rules) else None
    subjects = []
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for id in ids:
            document, passages = corpus.document(id)
            named = {name: corpus.value(passages[0].id, name) for name in fields}
            given = {**document.meta, **{name: value for name, value in named.items() if value is not None}}
            _write(file, id, document.title, document.text, given)
            if document.title and (allowed is None or allowed[corpus.row(passages[0].id)]):
                subjects.append((document.title, passages[0].text))
        chosen = subjects[:: max(1, len(subjects) // count)] or [("the archive", "")]
        planted = [canary(number, *chosen[number % len(chosen)]) for number in range(1, count + 1)]
        name, value = filters.forbidden_value(rules, group)
        for one in planted:
            _write(file, one.id, one.title, one.text, {name: value})
    return planted


def _write(file: Any, id: str, title: str, text: str, meta: Mapping[str, str]) -> None:
    file.write(json.dumps({"_id": id, "title": title, "text": text, "metadata": dict(meta)}) + "\n")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _shingles(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[at:] for at in range(SHINGLE)), strict=False)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in JSON values, keys of objects too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, Iterable):
        items = list(value)
        for item in items:
            yield from _texts(item)
        yield " ".join(str(item) for item in items if isinstance(item, str | int | float))  # a table's row
