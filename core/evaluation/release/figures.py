"""The figures of metrics.json that a decision uses."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.analysis.metrics import METRICS
from core.domain.errors import BadInput

FiniteNumber = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[float, Field(strict=True, ge=0, multiple_of=1)]
Pair = Annotated[list[FiniteNumber], Field(min_length=2, max_length=2)]


class BaselineDifference(BaseModel):
    """A route minus the baseline in one metric."""

    delta: FiniteNumber
    p: FiniteNumber
    p_holm: FiniteNumber
    n: Count
    sd: FiniteNumber | None = None


class Means(BaseModel):
    """Means by metric, over `n` questions, with their intervals and differences; {} is allowed."""

    model_config = ConfigDict(extra="allow")
    n: Count = 0
    counts: dict[str, Count] = {}
    ci95: dict[str, Pair | None] = {}
    vs_baseline: dict[str, BaselineDifference] = {}


class MetricMeans(Means):
    """The same, in which every other key is a metric."""

    __pydantic_extra__: dict[str, FiniteNumber | None] = Field(init=False)


class RouteRow(Means):
    """A route's figures: metrics of rankings among its keys, answers and further measures below theirs."""

    llm_calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    failed: Count
    p50_ms: FiniteNumber | None
    p95_ms: FiniteNumber | None
    answers: MetricMeans = MetricMeans()
    extra: MetricMeans = MetricMeans()

    @model_validator(mode="after")
    def _metrics(self) -> RouteRow:
        found = self.model_extra or {}
        MetricMeans(**{name: found[name] for name in METRICS if name in found})
        return self


class SampleFigures(BaseModel):
    """The sample that was drawn: of how many questions, and with which seed."""

    of: Count
    seed: int


class Figures(BaseModel):
    """The content of metrics.json; `model_json_schema` describes it for other programs."""

    routes: Annotated[dict[str, RouteRow], Field(min_length=1)]
    by_mode: dict[str, dict[str, MetricMeans]]
    baseline: str
    queries: Count
    sample: SampleFigures | None = None

    @model_validator(mode="after")
    def _baseline(self) -> Figures:
        if self.baseline not in self.routes:
            raise ValueError(f"baseline {self.baseline!r} is not one of the routes")
        return self


def check(figures: Any, name: str) -> None:
    """Check that `eval` could have written `figures`. Raises BadInput with the place; `name` is the file."""
    try:
        Figures.model_validate(figures)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))[:200]
        raise BadInput(
            f"{name} is not an evaluation's metrics.json; give the file that `eval` wrote "
            f"({place or 'all of it'}: {first['msg']})"
        ) from None
