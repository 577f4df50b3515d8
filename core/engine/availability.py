"""The unmet needs of routes on this machine, and how to meet them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from core.backends import calibrations
from core.backends.llm.none import WHY as NO_MODEL
from core.domain.errors import RouteScopeError
from core.domain.models import PARAMETER
from core.domain.needs import Need
from core.domain.program import COMMAND
from core.routes.declare import EMBEDDER, Route
from core.routes.registry import routes
from core.steps.base import OtherRoute
from core.steps.grade import worth

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.engine.request import Mode
    from core.engine.resources import Resources


class Gaps(dict[Need, str]):
    """The reason for each need that is not met; `models` has those of the tables [models.NAME] by name."""

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[str, str] = {}


def missing(engine: Resources, corpus: str | None = None) -> Mapping[Need, str]:
    """Return the reason for each unmet need; with `corpus`, including what has to be built for it.

    Reads a few small files, and opens and starts nothing.
    """
    from core.backends import fid
    from core.backends.llm import load_reflection
    from core.backends.rerankers import no_cross_encoder
    from core.corpus import tables
    from core.corpus.catalogue import current_fingerprint, held
    from core.corpus.enrichments import store

    gaps = Gaps()
    for name in engine.settings.models:
        try:
            lack = engine.llm(name=name).status()
        except RouteScopeError as error:
            lack = str(error)
        if lack:
            gaps.models[name] = lack
    try:
        reason = engine.llm().status()
    except RouteScopeError as error:
        reason = str(error)
    if reason:
        gaps[Need.LLM] = reason
    if lack := _no_web(engine.settings):
        gaps[Need.WEB] = lack
    if lack := no_cross_encoder(engine.settings.reranker.strip()):
        gaps[Need.CROSS_ENCODER] = lack
    if not engine.settings.fid_model:
        gaps[Need.FID] = f"no Fusion-in-Decoder model is set: {fid.HOW}"
    try:
        load_reflection(engine.settings)
    except RouteScopeError as error:
        gaps[Need.SELF_RAG] = str(error)
    if corpus is not None:
        fingerprint = current_fingerprint(corpus, settings=engine.settings)
        for need in Need:
            if need.enrichment and (
                lack := store.missing(need.enrichment, corpus, fingerprint, engine.settings)
            ):
                gaps[need] = lack
        for need in (Need.TABLES, Need.CSV):
            if lack := tables.missing(need, corpus, engine.settings):
                gaps[need] = lack
        if lack := _no_full_text(corpus, engine.settings):
            gaps[Need.FULL_TEXT] = lack
        if lack := _no_bm25(corpus, engine.settings):
            gaps[Need.BM25] = lack
        if lack := held(corpus, engine.settings).missing_vectors():
            gaps[Need.VECTORS] = lack
        if lack := _no_weights(engine, corpus, gaps):
            gaps[Need.WEIGHTS] = lack
        if lack := _too_long(corpus, engine.settings):
            gaps[Need.FITS] = lack
    return gaps


def without_model(engine: Resources, corpus: str) -> list[Route]:
    """Return the routes that can run on a corpus without a language model."""
    gaps = missing(engine, corpus)
    return [route for route in routes().values() if not route.asks() and not why_not(route, gaps)]


def other_routes(
    engine: Resources, corpus: str, *, models: bool, mode: Mode | None
) -> Callable[[str], OtherRoute | None]:
    """Return a function that gives routers other routes by name. Why a route cannot run on the corpus is
    computed on first use.

    `models` and `mode` are those of the request: without models no model is available, and replayed answers
    do not need a model on this machine.
    """

    @cache
    def gaps() -> Mapping[Need, str]:
        found = dict(missing(engine, corpus))
        if mode is not None:
            lack = engine.llm(mode).status()
            found = {need: why for need, why in found.items() if need is not Need.LLM}
            found |= {Need.LLM: lack} if lack else {}
        return found if models else found | dict.fromkeys((Need.LLM, Need.SELF_RAG, Need.WEB), NO_MODEL)

    def named(name: str) -> OtherRoute | None:
        route = routes().get(name)
        if route is None:
            return None
        defaults = route.settle({})
        return OtherRoute(lambda query, do: route.run(query, do, defaults), lambda: why_not(route, gaps()))

    return named


def why_not(
    route: Route, gaps: Mapping[Need, str], parameters: Mapping[str, Any] | None = None
) -> str | None:
    """Explain why a route cannot run with `parameters` over its defaults, or return None."""
    if route.broken:
        return route.broken
    settled = route.settle(parameters or {})
    if route.embeds and not settled[EMBEDDER] and Need.VECTORS in gaps:
        return gaps[Need.VECTORS]
    needed = route.needed(settled)
    if model := settled.get(PARAMETER):
        gaps = {
            **{need: why for need, why in gaps.items() if need is not Need.LLM},
            **_model_gap(gaps, model),
        }
    return next((gaps[need] for need in needed if need in gaps), None)


def _model_gap(gaps: Mapping[Need, str], model: str) -> dict[Need, str]:
    """Why the model of a table [models.NAME] cannot be asked; nothing if it can."""
    found = gaps.models.get(model) if isinstance(gaps, Gaps) else None
    return {Need.LLM: found} if found else {}


def unprepared(engine: Resources, corpus: str, route: Route) -> tuple[Need, ...]:
    """Return the enrichments that a route computes during a question because the corpus lacks them."""
    from core.backends.rerankers import EMBEDDED
    from core.corpus.catalogue import current_fingerprint
    from core.corpus.enrichments import store

    settings = engine.settings
    fingerprint = current_fingerprint(corpus, settings=settings)
    used = [
        need for need in route.prepared if need is not Need.TOKENS or settings.reranker.strip() == EMBEDDED
    ]
    return tuple(
        need
        for need in used
        if need.enrichment and store.missing(need.enrichment, corpus, fingerprint, settings)
    )


def cautions(engine: Resources, route: Route) -> tuple[str, ...]:
    """Warn, one sentence each, of model decisions that carry no signal or were never calibrated."""
    if not route.decides:
        return ()
    try:
        name = route.settle({}).get(PARAMETER, "")
        model = calibrations.subject(engine.llm(name=name) if name else engine.llm())
    except RouteScopeError:
        return ()  # `why_not` says so
    found = []
    for about in route.decides:
        try:
            state, why = worth(about, model, calibrations.read(about, model, engine.settings.home))
        except RouteScopeError as error:
            state, why = "not calibrated", str(error)
        if state != "calibrated":
            found.append(why)
    return tuple(found)


def _no_weights(engine: Resources, corpus: str, gaps: Mapping[Need, str]) -> str | None:
    """Why the newest fitted weights of a corpus cannot be used, or None: they may fuse what is not there."""
    try:
        fitted = engine.weights(corpus)
    except RouteScopeError as error:
        return str(error)
    for need in fitted.needs():
        if need in gaps:
            return f"the fitted weights {fitted.name} of {corpus} need {need.value}: {gaps[need]}"
    return None


def _too_long(corpus: str, settings: Settings) -> str | None:
    """Why the corpus is not put before the model as a whole, or None. The texts are counted, not read."""
    from core.corpus.catalogue import text_size
    from core.steps.full_context import too_long

    found = text_size(corpus, settings)
    if found is None:
        return f"corpus {corpus} is not built: run {COMMAND} index {corpus}"
    return too_long(corpus, *found, settings.llm_context)


def _no_full_text(corpus: str, settings: Settings) -> str | None:
    """Why a corpus has no full-text search of PostgreSQL, or None."""
    from core.corpus.catalogue import held

    return held(corpus, settings).no_full_text()


def _no_bm25(corpus: str, settings: Settings) -> str | None:
    """Why a corpus has no BM25, or None: a table in place may be too large for one."""
    from core.corpus.catalogue import held

    return held(corpus, settings).no_bm25()


def _no_web(settings: Settings) -> str | None:
    """Explain why there is no web search and how to set one up, or return None if there is one."""
    from core.backends.web import HOW, NONE, SNAPSHOT
    from core.corpus.catalogue import current_fingerprint

    if settings.web_search == NONE:
        return f"no web search is set up: {HOW}"
    if settings.web_search == SNAPSHOT and current_fingerprint("web", settings=settings) is None:
        return f"the stored web pages are not indexed: run {COMMAND} index web"
    return None
