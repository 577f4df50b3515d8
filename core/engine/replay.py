"""A stored run's request, to be repeated, and the parts of it that no longer exist."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.domain.errors import BadInput
from core.domain.types import AnswerStyle, Run
from core.engine.request import Answers, Mode, Request, filters_of
from core.routes.declare import Route

MODES: Mapping[str, Mode] = {"live": "live", "replay": "replay"}
ANSWERS: Mapping[str, Answers] = {"none": "none", "selected": "selected", "all": "all"}


@dataclass(frozen=True, slots=True)
class Here:
    """The current routes by name, corpora with their fingerprints, and models."""

    routes: Mapping[str, Route]
    corpora: Mapping[str, str | None]
    llm: str
    embedders: Mapping[str, str] = field(default_factory=dict)  # by corpus


@dataclass(frozen=True, slots=True)
class Again:
    """A request for the same once more; `gone` is left out of it, `other` is not as it was then."""

    request: Request
    gone: tuple[str, ...]
    other: tuple[str, ...]


def again(run: Run, here: Here, *, evidence: float | None = None) -> Again:
    """Return the request of a stored run, without its session memory, as the session has continued since.

    `evidence` is the threshold below which no answer is written, which runs do not store; None: the default.
    """
    names, gone = _routes(run, here.routes)
    parameters: dict[str, Mapping[str, Any]] = {}
    for result in run.results:
        if result.route in names and result.route not in parameters:
            parameters[result.route], unknown = settled(here.routes[result.route], result.parameters)
            gone += unknown
    answered = [name for name in texts(run.settings.get("answered")) if name in names]
    style = AnswerStyle(
        "extract" if run.settings.get("answers by") == "extract" else "model",
        "best at both ends" if run.settings.get("answer order") == "best at both ends" else "best first",
        *([] if evidence is None else [evidence]),
    )
    session = run.settings.get("session")
    if isinstance(session, str) and session:
        gone.append(f"session {session}, which has new turns since the run")
    if run.corpus not in here.corpora:
        gone.append(f"corpus {run.corpus}")
    try:
        where = filters_of(run.settings)
    except BadInput as error:
        where = ()
        gone.append(str(error))
    request = Request(
        run.query,
        run.corpus,
        tuple(names),
        parameters,
        ANSWERS.get(str(run.settings.get("answers")), "none"),
        tuple(answered),
        "isolated" if run.settings.get("timing") == "isolated" else "shared",
        style=style,
        mode=MODES.get(str(run.settings.get("llm mode")), "live"),
        where=where,
    )
    return Again(request, tuple(gone), tuple(_other(run, here)))


def settled(route: Route, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters that the route still has and whose values it still allows, and the names of the
    others.
    """
    kept: dict[str, Any] = {}
    gone = []
    for name, value in given.items():
        try:
            kept[name] = route.settle({name: value})[name]
        except BadInput:
            gone.append(f"parameter {route.name}.{name}")
    return kept, gone


def texts(value: object) -> list[str]:
    """Return the texts of a list; settings of an imported run may contain anything."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list | tuple) else []


def _routes(run: Run, known: Collection[str]) -> tuple[list[str], list[str]]:
    named = texts(run.settings.get("routes")) or [result.route for result in run.results]
    named = list(dict.fromkeys(named))
    return [name for name in named if name in known], [f"route {name}" for name in named if name not in known]


def _other(run: Run, here: Here) -> list[str]:
    """Describe the differences between a run's models and corpus and the current ones."""
    changes = []
    llm, embedder = run.settings.get("llm"), run.settings.get("embedder")
    if isinstance(llm, str) and llm != here.llm:
        changes.append(f"the language model was {llm} and is {here.llm}")
    now = here.embedders.get(run.corpus)
    if isinstance(embedder, str) and now is not None and embedder != now:
        changes.append(f"the embedder was {embedder} and is {now}")
    if here.corpora.get(run.corpus) not in (None, run.fingerprint):
        changes.append(f"corpus {run.corpus} was reindexed since the run")
    if run.settings.get("llm mode") == "record":
        changes.append("the run recorded model replies, and the rerun calls the model")
    return changes
