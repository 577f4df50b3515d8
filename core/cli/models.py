"""`models`: listing and downloading models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from core.cli.common import ProgressBar, emit, output_options, stoppable
from core.cli.text import table
from core.domain.format import size

if TYPE_CHECKING:
    from core.backends.named_models import NamedModel
    from core.domain.settings import Settings


@click.group("models", invoke_without_command=True)
@output_options
@click.pass_context
def models_(ctx: click.Context, as_json: bool) -> int:
    """List the known models and whether they are downloaded; `models pull NAME` downloads one."""
    if ctx.invoked_subcommand is not None:
        return 0
    from core.backends import named_models
    from core.backends.llm import catalogue, load_llm
    from core.domain import settings

    now = settings.current()
    llm = load_llm(now)
    listed = [_entry(entry) for entry in catalogue.entries(now)]
    document = {
        "models": listed,
        "in_use": {"model": llm.model, "endpoint": llm.endpoint, "why_not": llm.status()},
        "embedder": now.embedder,
        "retrieval": [_retrieval(model, now) for model in named_models.MODELS],
        "folder": str(now.models_dir),
    }
    emit(document, lambda: _text(document), as_json=as_json)
    return 0


@models_.command("pull")
@click.argument("name")
@output_options
def pull_(name: str, as_json: bool) -> int:
    """Download model NAME ("default" and "fast" also work) and verify its SHA-256.

    A stopped download continues where it was.
    """
    from core.backends.llm import catalogue
    from core.backends.llm.fetch import FetchProgress, pull
    from core.domain import settings

    name = {"default": catalogue.DEFAULT, "fast": catalogue.FAST}.get(name, name)
    bar = ProgressBar("B")

    def report(at: FetchProgress) -> None:
        if at.stage in ("downloading", "verifying"):
            bar(f"{name}: {at.stage}", at.done, at.total)

    with stoppable() as cancel:
        path = pull(name, settings=settings.current(), progress=report, cancel=cancel)
    bar.close()
    document = {"model": name, "path": str(path), "bytes": path.stat().st_size}
    emit(document, lambda: f"{name} is downloaded and verified: {path}", as_json=as_json)
    return 0


@models_.command("reset")
@click.argument("endpoint", required=False)
@output_options
def reset_(endpoint: str | None, as_json: bool) -> int:
    """Forget what was learned of the requests that ENDPOINT (a base URL; without it: each) accepts."""
    from core.backends.llm.profile import StoredProfile, every
    from core.domain import settings
    from core.domain.errors import BadInput

    home = settings.current().home
    known = every(home)
    gone = [one for one in known if endpoint in (None, one.endpoint)]
    if endpoint is not None and not gone:
        there = ", ".join(sorted({one.endpoint for one in known})) or "none"
        raise BadInput(f"nothing is known of {endpoint!r}; known endpoints: {there}")
    for one in gone:
        StoredProfile(home, one.endpoint, one.model).reset()
    document = {"reset": [{"endpoint": one.endpoint, "model": one.model} for one in gone]}
    emit(document, lambda: f"{len(gone)} endpoints reset", as_json=as_json)
    return 0


def _entry(entry: Any) -> dict[str, Any]:
    known = entry.artefact
    return {
        "name": known.name,
        "title": known.title,
        "bytes": known.bytes,
        "sha256": known.sha256,
        "licence": known.licence,
        "use": known.use,
        "present": entry.present,
        "path": str(entry.path),
        "why_not": entry.reason,
    }


def _retrieval(model: NamedModel, now: Settings) -> dict[str, Any]:
    from core.backends.named_models import here

    return {
        "name": model.name,
        "setting": model.setting,
        "hub": model.hub,
        "licence": model.licence,
        "dimensions": model.dim,
        "tokens": model.tokens,
        "pooling": model.pooling,
        "query_prompt": model.query,
        "passage_prompt": model.passage,
        "languages": model.languages,
        "note": model.note,
        "package": f"{model.packaged.package}=={model.packaged.version}" if model.packaged else None,
        "present": here(model),
        "in_use": getattr(now, model.setting).partition("=")[0] in (model.name, model.hub),
    }


def _text(document: dict[str, Any]) -> str:
    rows = [
        (one["name"], "yes" if one["present"] else "no", size(one["bytes"]), one["use"])
        for one in document["models"]
    ]
    used = document["in_use"]
    state = used["why_not"] or "available"
    return "\n".join(
        [
            table(("model", "here", "size", "use"), rows, right=(2,)),
            "",
            "Models of searches, by the setting that takes their name (or NAME=FOLDER for your own weights):",
            table(
                ("setting", "model", "licence", "dim", "reads", "pooling", "from"),
                [
                    (
                        one["setting"],
                        one["name"] + (" *" if one["in_use"] else ""),
                        one["licence"],
                        one["dimensions"] or "",
                        one["tokens"],
                        one["pooling"],
                        (one["package"] + ("" if one["present"] else " (not installed)"))
                        if one["package"]
                        else one["hub"],
                    )
                    for one in document["retrieval"]
                ],
                right=(3, 4),
            ),
            "* in use",
            "",
            f"In use: {used['model']} ({used['endpoint']}): {state}",
            f"Embedder: {document['embedder']}    Models are stored in {document['folder']}",
        ]
    )
