"""`models`: listing and downloading models."""

from __future__ import annotations

from typing import Any

import click

from core.backends import named_models
from core.backends.llm import catalogue, load_llm
from core.backends.llm.fetch import pull
from core.backends.llm.profile import StoredProfile, every
from core.cli.commands import argument, command, output
from core.cli.common import attributes, emit, table, working
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.format import size
from core.evaluation.templating import say


@click.group("models", invoke_without_command=True, params=output())
@click.pass_context
def models_(ctx: click.Context) -> None:
    """List the known models and whether they are downloaded; `models pull NAME` downloads one."""
    if ctx.invoked_subcommand is not None:
        return

    now = settings.current()
    llm = load_llm(now)
    listed = [
        attributes(one.artefact, "name title bytes sha256 licence use")
        | {"present": one.present, "path": str(one.path), "why_not": one.reason}
        for one in catalogue.entries(now)
    ]
    retrieval = [
        {
            **attributes(one, "name setting hub licence tokens pooling languages note"),
            "dimensions": one.dim,
            "query_prompt": one.query,
            "passage_prompt": one.passage,
            "package": f"{one.packaged.package}=={one.packaged.version}" if one.packaged else None,
            "present": named_models.here(one),
            "in_use": getattr(now, one.setting).partition("=")[0] in (one.name, one.hub),
        }
        for one in named_models.MODELS
    ]
    document = {
        "models": listed,
        "in_use": {"model": llm.model, "endpoint": llm.endpoint, "why_not": llm.status()},
        "embedder": now.embedder,
        "retrieval": retrieval,
        "folder": str(now.models_dir),
    }
    emit(document, _text(document))


@command("pull", models_)
def pull_(name: str) -> None:
    """Download model NAME ("default" and "fast" also work) and verify its SHA-256.

    A stopped download continues where it was.
    """
    name = {"default": catalogue.DEFAULT, "fast": catalogue.FAST}.get(name, name)
    with working("B") as (bar, stop):

        def report(stage: str, done: int, total: int) -> None:
            if stage in ("downloading", "verifying"):
                bar(f"{name}: {stage}", done, total)

        path = pull(name, settings=settings.current(), progress=report, cancel=stop)
    document = {"model": name, "path": str(path), "bytes": path.stat().st_size}
    emit(document, f"{name} is downloaded and verified: {path}")


@command("reset", models_)
def reset_(endpoint: str | None = argument("[ENDPOINT]")) -> None:
    """Forget what was learned of the requests that ENDPOINT (a base URL; without it: each) accepts."""
    home = settings.current().home
    known = every(home)
    gone = [one for one in known if endpoint in (None, one.endpoint)]
    if endpoint is not None and not gone:
        there = ", ".join(sorted({one.endpoint for one in known})) or "none"
        raise BadInput(f"nothing is known of {endpoint!r}; known endpoints: {there}")
    for one in gone:
        StoredProfile(home, one.endpoint, one.model).reset()
    document = {"reset": [{"endpoint": one.endpoint, "model": one.model} for one in gone]}
    emit(document, f"{len(gone)} endpoints reset")


def _text(document: dict[str, Any]) -> str:
    rows = [
        (one["name"], "yes" if one["present"] else "no", size(one["bytes"]), one["use"])
        for one in document["models"]
    ]
    retrieval = []
    for one in document["retrieval"]:
        name, missing = one["name"] + " *" * one["in_use"], "" if one["present"] else " (not installed)"
        where = one["package"] + missing if one["package"] else one["hub"]
        about = one["licence"], one["dimensions"] or "", one["tokens"], one["pooling"]
        retrieval.append((one["setting"], name, *about, where))
    chat = table(("model", "here", "size", "use"), rows)
    heads = ("setting", "model", "licence", "dim", "reads", "pooling", "from")
    return say("commands.models", document, chat, table(heads, retrieval))
