"""The unmet needs of routes on this machine, and how to meet them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from core.backends import calibrations, fid
from core.backends.llm import load_reflection
from core.backends.llm.model import NO_MODEL
from core.backends.rerankers import EMBEDDED, no_cross_encoder
from core.backends.web import HOW, NONE, SNAPSHOT
from core.corpus import tables
from core.corpus.catalogue import Held, current_fingerprint, held
from core.corpus.enrichments import store
from core.domain.errors import RouteScopeError
from core.domain.models import PARAMETER
from core.domain.needs import Need
from core.domain.program import COMMAND
from core.domain.settings import Settings
from core.engine.request import Mode
from core.engine.resources import Resources
from core.routes.declare import EMBEDDER, Route
from core.routes.registry import routes
from core.steps.base import OtherRoute
from core.steps.full_context import too_long
from core.steps.grade import worth


class Gaps(dict[Need, str]):
    """The reason for each need that is not met; `models` has those of the tables [models.NAME] by name."""

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[str, str] = {}


def missing(engine: Resources, corpus: str | None = None) -> Mapping[Need, str]:
    """Return the reason for each unmet need; with `corpus`, including what has to be built for it.

    Reads a few small files, and opens and starts nothing.
    """
    settings, gaps = engine.settings, Gaps()
    lacks: dict[Need, str | None] = {
        Need.LLM: _no_model(engine, ""),
        Need.WEB: no_web(settings),
        Need.CROSS_ENCODER: no_cross_encoder(settings.reranker.strip()),
        Need.FID: None if settings.fid_model else f"no Fusion-in-Decoder model is set: {fid.HOW}",
        Need.SELF_RAG: _lack(lambda: load_reflection(settings).status()),
    }
    if corpus is not None:
        kept = held(corpus, settings)
        fingerprint = kept.fingerprint()
        for need in Need:
            if need.enrichment:
                lacks[need] = store.missing(need.enrichment, corpus, fingerprint, settings)
        lacks |= {need: tables.missing(need, corpus, settings) for need in (Need.TABLES, Need.CSV)}
        lacks |= {**kept.lacks(), Need.FITS: _too_long(kept, settings)}
    gaps.update({need: lack for need, lack in lacks.items() if lack})
    gaps.models = {name: lack for name in settings.models if (lack := _no_model(engine, name))}
    if corpus is not None and (lack := _no_weights(engine, corpus, gaps)):
        gaps[Need.WEIGHTS] = lack
    return gaps


def _lack(look: Callable[[], str | None]) -> str | None:
    """Return what `look` finds lacking, which may be that it cannot look; None if nothing."""
    try:
        return look()
    except RouteScopeError as error:
        return str(error)


def _no_model(engine: Resources, name: str, mode: Mode | None = None) -> str | None:
    return _lack(lambda: engine.llm(mode, name).status())


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
            found.pop(Need.LLM, None)
            found |= {Need.LLM: lack} if (lack := _no_model(engine, "", mode)) else {}
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
    reasons = dict(gaps)
    if model := settled.get(PARAMETER):
        reasons.pop(Need.LLM, None)
        if isinstance(gaps, Gaps) and model in gaps.models:
            reasons[Need.LLM] = gaps.models[model]
    return next((reasons[need] for need in route.needed(settled) if need in reasons), None)


def unprepared(engine: Resources, corpus: str, route: Route) -> tuple[Need, ...]:
    """Return the enrichments that a route computes during a question because the corpus lacks them."""
    settings = engine.settings
    fingerprint = current_fingerprint(corpus, settings=settings)
    used = (one for one in route.prepared if one is not Need.TOKENS or settings.reranker.strip() == EMBEDDED)
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


def _too_long(kept: Held, settings: Settings) -> str | None:
    """Why the corpus is not put before the model as a whole, or None. The texts are counted, not read."""
    if (found := kept.text_size()) is None:
        return f"corpus {kept.name} is not built: run {COMMAND} index {kept.name}"
    return too_long(kept.name, *found, settings.llm_context)


def no_web(settings: Settings) -> str | None:
    """Explain why there is no web search and how to set one up, or return None if there is one."""
    if settings.web_search == NONE:
        return f"no web search is set up: {HOW}"
    if settings.web_search == SNAPSHOT and current_fingerprint("web", settings=settings) is None:
        return f"the stored web pages are not indexed: run {COMMAND} index web"
    return None
