"""`module`: a route with its parameters as a Python module that answers questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from core.cli.ask import read_parameters
from core.cli.common import emit, output_options, parameter_options, preset_option
from core.domain.errors import BadInput


@click.command("module")
@click.argument("route_name", metavar="ROUTE")
@click.option("--corpus", default="support", show_default=True, help="A corpus that `corpora` lists.")
@parameter_options
@preset_option("A preset; --parameter overrides it.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Output file. Default: stdout.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@output_options
def module_(
    route_name: str,
    corpus: str,
    parameters: Sequence[str],
    preset: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Write ROUTE as a small Python module that imports `core`: the same code path as `ask` and `eval`."""
    from core.domain.errors import Unavailable
    from core.engine.engine import shared_engine
    from core.evaluation.release.module import module
    from core.routes.registry import pick
    from core.store import presets

    engine = shared_engine()
    (route,) = pick([route_name])
    values, evidence, purpose = (
        dict(read_parameters(parameters, [route]).get(route.name, {})),
        None,
        "parameters set by hand",
    )
    if preset is not None:
        if engine.store is None:
            raise Unavailable(f"cannot read the preset {preset!r}: run storage is off")
        kept = presets.named(engine.store, preset)
        values = {**kept.parameters.get(route.name, {}), **values}
        evidence, purpose = kept.evidence, f"with the preset {kept.name}"
    if out is not None and out.exists() and not force:
        raise BadInput(f"{out} already exists; use another --out, or --force to overwrite it")
    text = module(
        engine,
        route.name,
        corpus,
        values,
        evidence=evidence,
        purpose=purpose,
        file=out.name if out is not None else "route.py",
    )
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadInput(f"cannot write --out {out}: {error.strerror or error}") from None
    told = {"route": route.name, "corpus": corpus, "file": str(out) if out else None, "source": text}
    emit(told, lambda: f"Wrote {out}" if out else text, as_json=as_json)
    return 0
