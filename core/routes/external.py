"""Makes routes of pipelines that are not ours: those of the settings file and of the command line."""

from __future__ import annotations

from core.domain.errors import Unavailable
from core.domain.pipelines import Pipeline
from core.domain.types import Answer
from core.routes.declare import Parameter, Route
from core.steps import Steps


def route_of(pipeline: Pipeline, broken: str = "") -> Route:
    """Build the route of an external pipeline; `broken` explains why it cannot be called."""

    def ask(do: Steps, k: int) -> Answer:
        if broken:
            raise Unavailable(broken)
        return do.external(pipeline.name, do.query, k)

    if pipeline.door == "file":
        summary = f"Replies of a pipeline from {pipeline.file.name}; it cannot be asked live."
    else:
        asks = "an endpoint" if pipeline.door == "http" else f"{pipeline.function} in {pipeline.file.name}"
        summary = f"Ask your own pipeline ({asks}); measured from outside."
    return Route(
        name=pipeline.name,
        title=pipeline.label,
        family="your pipeline",
        summary=summary,
        embeds=False,
        parameters=(
            Parameter(1, 1_000, "number of passages to ask for", name="k", type=int, default=pipeline.k),
        ),
        function=ask,
        first=True,
        external=True,
        broken=broken,
    )
