"""The figures of metrics.json as types: what an evaluation states of itself, read once."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from core.analysis.metrics import ANSWERS, METRICS
from core.analysis.token_usage import PRICES, Prices
from core.domain.errors import BadInput
from core.evaluation.comparison import Difference, Equal
from core.evaluation.costs import MachineKind
from core.evaluation.stored import checked

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

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric, or None if no question has a value."""
        return (self.model_extra or {}).get(metric)

    def ends(self, metric: str) -> tuple[float, float] | None:
        """Return the 95% interval of that mean."""
        pair = self.ci95.get(metric)
        return (pair[0], pair[1]) if pair else None


class MetricMeans(Means):
    """The same, in which every other key is a metric."""

    __pydantic_extra__: dict[str, FiniteNumber | None] = Field(init=False)


class RepliesSource(BaseModel):
    """The file that a route's replies were read from."""

    file: str


class CorrectedMean(BaseModel):
    """A mean over all questions, by people's labels and a judge's grades corrected by them."""

    mean: FiniteNumber
    ci95: tuple[FiniteNumber, FiniteNumber]
    # questions that people labelled, and how many, evenly drawn, would give so narrow an interval without a
    # judge
    labels: Count
    equal_to: Count
    # how far the judge's grades count, from 0 (not at all) to 1
    weight: FiniteNumber = 0.0
    # standard deviation by people's labels; None below two
    sd: FiniteNumber | None = None


class CorrectedPair(CorrectedMean):
    """A route minus another."""

    route: str
    other: str

    @property
    def difference(self) -> Difference:
        """Return it as verdicts compare routes."""
        return Difference(self.route, self.other, int(self.labels), self.mean, *self.ci95, self.sd)


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
    source: RepliesSource | None = None
    # of nDCG@10, with `eval --judge`
    corrected: CorrectedMean | None = None

    @property
    def prices(self) -> Prices:
        """Return the prices stored with it; None each if none were set then."""
        known = (self.model_extra or {}).get(PRICES)
        return (known[0], known[1]) if isinstance(known, list) and len(known) == 2 else (None, None)

    def block(self, metric: str) -> Means:
        """Return the figures that a metric is among: those of rankings, of answers, or further ones."""
        return self if metric in METRICS else self.answers if metric in ANSWERS else self.extra

    @model_validator(mode="after")
    def _metrics(self) -> RouteRow:
        found = self.model_extra or {}
        MetricMeans(**{name: found[name] for name in METRICS if name in found})
        return self


class CorrectedFigures(BaseModel):
    """The questions and the judge behind corrected means and differences."""

    metric: str
    labelled: Count
    unlabelled: Count
    # of the judge on passages that people labelled; None if it is not known
    auc: FiniteNumber | None = None
    # whether the labelled questions were drawn with known chances
    drawn: bool = False
    pairs: tuple[CorrectedPair, ...] = ()


class SampleFigures(BaseModel):
    """The sample that was drawn: of how many questions, and with which seed."""

    of: Count
    seed: int


class GeneratedNote(BaseModel):
    """A warning about questions that a model wrote."""

    note: str = ""


class Figures(BaseModel):
    """The content of metrics.json; `model_json_schema` describes it for other programs."""

    model_config = ConfigDict(extra="allow")

    routes: Annotated[dict[str, RouteRow], Field(min_length=1)]
    by_mode: dict[str, dict[str, MetricMeans]]
    baseline: str
    queries: Count
    sample: SampleFigures | None = None
    dataset: str = ""
    corpus: str = ""
    fingerprint: str = ""
    split: str | None = None
    labelled: Count = 0
    timing: str | None = None
    # the machine that measured, in words, and the kinds of machine
    machine: str | None = None
    machines: tuple[MachineKind, ...] = ()
    interrupted: bool = False
    # how answers were written, as of core.domain.types.AnswerStyle; None without answers
    answering: dict[str, Any] | None = None
    generated: GeneratedNote = GeneratedNote()
    # with `eval --judge`
    corrected: CorrectedFigures | None = None
    # routes that returned the same on every question
    equal: tuple[Equal, ...] = ()

    @model_validator(mode="after")
    def _baseline(self) -> Figures:
        if self.baseline not in self.routes:
            raise ValueError(f"baseline {self.baseline!r} is not one of the routes")
        return self


def read(figures: Any, name: str) -> Figures:
    """Return `figures` as types. Raises BadInput with the place that `eval` could not have written; `name` is
    the file.
    """
    try:
        return checked(TypeAdapter(Figures), figures)
    except ValueError as error:
        said = f"{name} is not an evaluation's metrics.json; give the file that `eval` wrote ({error})"
        raise BadInput(said) from None
