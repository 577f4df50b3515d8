"""`module`: a route with its parameters as a Python module that answers questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.cli.commands import PARAMETERS, PRESET, argument, command
from core.cli.common import emit
from core.cli.named import merged, preset_of
from core.domain.errors import BadInput
from core.engine import engine as engines
from core.evaluation.release.module import module
from core.evaluation.spec import option
from core.routes.registry import pick


@command("module")
def module_(
    route_name: str = argument("ROUTE"),
    corpus: str = option("support", "A corpus that `corpora` lists."),
    parameters: Sequence[str] = PARAMETERS,
    preset: str | None = PRESET,
    out: Path | None = option(None, "Output file. Default: stdout.", "FILE"),
    force: bool = option(False, "Overwrite an existing file."),
) -> None:
    """Write ROUTE as a small Python module that imports `core`, with the code path of `ask`."""
    engine = engines.shared_engine()
    (route,) = pick([route_name])
    kept = preset_of(engine, preset)
    values = merged(kept, [route], parameters).get(route.name, {})
    if out is not None and out.exists() and not force:
        raise BadInput(f"{out} already exists; use another --out, or --force to overwrite it")
    purpose = "parameters set by hand" if preset is None else f"with the preset {kept.name}"
    file = out.name if out is not None else "route.py"
    text = module(engine, route.name, corpus, values, evidence=kept.evidence, purpose=purpose, file=file)
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadInput(f"cannot write --out {out}: {error.strerror or error}") from None
    told = {"route": route.name, "corpus": corpus, "file": str(out) if out else None, "source": text}
    emit(told, f"Wrote {out}" if out else text)
