"""Makes, keeps and opens enrichments: one folder for each corpus and kind, checked before it is used."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from core.backends.array_files import unwritable
from core.backends.base import LLM, Embedder
from core.corpus import manifest
from core.corpus.build import Progress, Stages, size_of
from core.corpus.corpus import Corpus
from core.corpus.embeddings import KEYS, Begin, Checkpoint, Vectors, gate
from core.corpus.enrichments.graph import RuleGraph, TripleGraph
from core.corpus.enrichments.keys import Children, Contexts, Expanded, Headings, Questions, Sentences
from core.corpus.enrichments.learned import LearnedSparse
from core.corpus.enrichments.recipe import Recipe, Spent, Tools
from core.corpus.enrichments.summaries import Extracts, Summaries
from core.corpus.enrichments.tokens import Tokens
from core.corpus.enrichments.within import Late
from core.corpus.helpers import Helpers
from core.corpus.source import slug
from core.corpus.stages import alone
from core.domain import system
from core.domain.errors import BadInput, IndexDamaged, Unavailable
from core.domain.once import Once
from core.domain.program import COMMAND
from core.domain.settings import Settings

log = logging.getLogger(__name__)
_KEYS = (Headings(), Children(), Sentences(), Contexts(), Questions(), Expanded(), Summaries(), Extracts())
_RECIPES: tuple[Recipe, ...] = (*_KEYS, Tokens(), Late(), LearnedSparse(), RuleGraph(), TripleGraph())
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _RECIPES}
WITHOUT_VECTORS = ("tokens", "learned_sparse", "expanded")  # the same whichever embedder a corpus has


@dataclass(frozen=True, slots=True)
class Made:
    """The record of an enrichment: what it was built for and with, and its cost."""

    name: str
    corpus: str
    fingerprint: str  # of the corpus it was made for
    version: int
    entries: int
    embedder: str
    llm: str | None
    built_at: str  # ISO 8601, UTC
    build_ms: Mapping[str, float]  # by stage; cached replies cost nothing
    bytes: int
    spent: Spent  # its `ms` is the time of the model's original calls
    notes: tuple[str, ...] = ()
    model: str = ""  # the recipe's own, besides the embedder and the language model


_MADE = TypeAdapter(Made)


def recipe(name: str) -> Recipe:
    """Return the recipe called `name`. Raises BadInput, listing the known ones, if it does not exist."""
    if name not in RECIPES:
        raise BadInput(f"no enrichment {name!r}; known: {', '.join(RECIPES)}")
    return RECIPES[name]


def own(name: str, corpus: Corpus) -> Corpus:
    """Return the corpus that owns the enrichment `name`: that of the embedder only if the enrichment has
    vectors.
    """
    return corpus.base if name in WITHOUT_VECTORS else corpus


def no_model(name: str, settings: Settings) -> str | None:
    """Return why the model that an enrichment is made with cannot be named; None if it can, or needs none."""
    try:
        recipe(name).model(settings)
    except Unavailable as error:
        return str(error)
    return None


def missing(
    name: str, corpus: str, fingerprint: str | None, settings: Settings, by: str = "", embedder: str = ""
) -> str | None:
    """None if the enrichment is there for this state of the corpus; else why not and how to get it. `by` is
    the folder of the vectors of another `embedder`.
    """
    wanted = recipe(name)
    more = f" --embedder {embedder}" if by else ""
    how = f"run {COMMAND} index {corpus}{more} --with {name} ({wanted.cost})"
    if why := no_model(name, settings):
        return f"{why}, then {how}"
    model = wanted.model(settings)
    found = describe(name, corpus, settings, by)
    if found is None:
        whose = f" with vectors of {embedder}" if by else ""
        return f"corpus {corpus} has no {wanted.title} yet{whose}: {how}"
    if found.fingerprint != fingerprint or found.version != wanted.version:
        return f"the {wanted.title} were made for an earlier state of corpus {corpus}: {how}"
    if found.model != model:
        return f"the {wanted.title} in corpus {corpus} are by {found.model}, and {model} is set: {how}"
    return None


def describe(name: str, corpus: str, settings: Settings, by: str = "") -> Made | None:
    """Return the record of an enrichment without checking its files, or None."""
    try:
        return _MADE.validate_python(manifest.record(_home(corpus, name, settings, by))[0])
    except FileNotFoundError:
        return None
    except (IndexDamaged, ValueError) as error:
        log.warning("%s; it counts as not made", error)
        return None


def about_bytes(name: str, corpus: Corpus, settings: Settings) -> int:
    """Estimate the bytes on disk of an enrichment of an opened corpus."""
    return recipe(name).about_bytes(corpus.characters, corpus.size, corpus.info.dim, settings)


def stamp(name: str, corpus: str, settings: Settings, by: str = "") -> object:
    """Return a value that changes when an enrichment is rebuilt; None without one. Read by every search."""
    try:
        found = (_home(corpus, name, settings, by) / manifest.NAME).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def load(name: str, corpus: Corpus, settings: Settings) -> Any:
    """Return the enrichment of an opened corpus for search. Raises Unavailable with instructions."""
    corpus = own(name, corpus)
    by, embedder = corpus.by, corpus.info.embedder
    if reason := missing(name, corpus.name, corpus.fingerprint, settings, by, embedder):
        raise Unavailable(reason)
    folder = _home(corpus.name, name, settings, by)
    try:
        manifest.check(folder)
    except IndexDamaged as error:
        how = f"run {COMMAND} index {corpus.name} --with {name}"
        raise Unavailable(f"{error}; it is refused: {how}") from error
    return recipe(name).open(corpus, folder, settings)


class Opened:
    """The enrichments of a process, opened on their first search and again after a rebuild. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: Once[tuple[str, str, str], tuple[tuple[str, object], Any]] = Once()

    def get(self, corpus: Corpus, name: str) -> Any:
        """Return the enrichment `name` of a corpus. Raises Unavailable with instructions."""
        corpus = own(name, corpus)
        # Of another state of the corpus, its rows would be those of other passages.
        wanted = corpus.fingerprint, stamp(name, corpus.name, self._settings, corpus.by)
        _, opened = self._known.get(
            (corpus.name, corpus.by, name),
            lambda: (wanted, load(name, corpus, self._settings)),
            lambda known: known[0] == wanted,
        )
        return opened


def remove(corpus: str, settings: Settings) -> None:
    """Delete all that was made for a corpus, after what is being made for it has ended."""
    for name in RECIPES:
        home = _home(corpus, name, settings)
        if home.parent.is_dir():
            with alone(home.with_suffix(".lock"), threading.Event()):
                shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(_home(corpus, "", settings), ignore_errors=True)


def build(
    name: str,
    corpus: Corpus,
    *,
    settings: Settings,
    llm: LLM | None = None,
    embedder: Embedder | None = None,
    progress: Progress = lambda _stage, _done, _total: None,
    cancel: threading.Event | None = None,
    helpers: Helpers | None = None,
    begin: Begin | None = None,
) -> Made:
    """Build an enrichment, or keep the existing one for this corpus and model.

    Replies and vectors are cached as they arrive, so a stopped build resumes, and after a change of the
    corpus only the changes are built. `helpers` embed and ask instead of this process; `begin` is that of
    `core.corpus.index.build`. Raises BadInput, Unavailable, ModelFailed, Cancelled.
    """
    from core.backends.embedder import load_embedder
    from core.backends.llm import load_llm

    wanted, corpus = recipe(name), own(name, corpus)
    stages = Stages(progress, cancel or threading.Event())
    home, by, identity = (
        _home(corpus.name, name, settings, corpus.by),
        corpus.info,
        corpus.info.embedder_identity,
    )
    checkpoint = Checkpoint(home.parent, f"{name} {identity}")
    load = cache(lambda: embedder or load_embedder(by.embedder, settings=settings))

    def vectors() -> Vectors:
        former = [home] if (home / KEYS).exists() and _sound(home) else []
        ask = begin or gate(settings, confirmed=False)
        return Vectors(by.embedder, identity, load, former, checkpoint, helpers, begin=ask)

    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with alone(home.with_suffix(".lock"), stages.cancel):
            for leftover in home.parent.glob(f".new-{name}-*"):  # of a build that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            now = settings.model_copy(update={"llm": settings.index_llm or settings.llm})
            writer = (llm or load_llm(now)) if wanted.uses_llm else None
            made_by = (writer.model if writer else None, wanted.model(settings))
            found = describe(name, corpus.name, settings, corpus.by)
            # Failures of the model are worth another attempt.
            if found is not None and not found.spent.failed and (found.llm, found.model) == made_by:
                current = (found.fingerprint, found.version) == (corpus.fingerprint, wanted.version)
                if current and _sound(home):
                    return found
            if writer is not None and (reason := writer.status()):
                raise Unavailable(reason)
            tools = Tools(settings, stages, writer, vectors, helpers=helpers)
            made = _make(wanted, corpus, home, tools, *made_by)
            checkpoint.clear()
            return made
    except OSError as error:
        raise unwritable("the enrichment", home, error) from error


def _make(wanted: Recipe, corpus: Corpus, home: Path, tools: Tools, llm: str | None, model: str) -> Made:
    folder = Path(tempfile.mkdtemp(dir=home.parent, prefix=f".new-{wanted.name}-"))
    try:
        entries = wanted.make(corpus, folder, tools)
        made = Made(
            name=wanted.name,
            corpus=corpus.name,
            fingerprint=corpus.fingerprint,
            version=wanted.version,
            entries=entries,
            embedder=corpus.info.embedder,
            llm=llm,
            built_at=manifest.now(),
            build_ms=tools.stages.taken(),
            bytes=size_of(folder),
            spent=tools.spent,
            notes=tuple(tools.notes),
            model=model,
        )
        manifest.seal(folder, asdict(made))
        shutil.rmtree(home, ignore_errors=True)
        system.replace(folder, home)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return made


def _sound(folder: Path) -> bool:
    try:
        manifest.check(folder)
    except (IndexDamaged, FileNotFoundError) as error:
        log.warning("%s; building it again", error)
        return False
    return True


def _home(corpus: str, name: str, settings: Settings, by: str = "") -> Path:
    return settings.home / "enrichments" / slug(corpus) / by / name
