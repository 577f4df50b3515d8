"""One question by several routes, as a run that shows itself as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from core.analysis.rank_overlap import rank_rows
from core.analysis.run_view import worked
from core.api import arguments, html
from core.api.arguments import File, Names, Parameters, Progress
from core.corpus import catalogue, cautions
from core.domain.format import milliseconds
from core.domain.types import AnswerStyle, Query, Run, Turn
from core.engine import engine as engines
from core.engine.job import Job
from core.engine.request import Request

if TYPE_CHECKING:
    import pandas as pd

LOOK_S = 0.2  # between looks at a run under way
DEFAULT_DEPTH = 10  # the depth of a table that nobody asked for
MAX_ROWS = 10_000  # rows


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Run):
    """A run: the question, and for each route its `hits`, spans and times in `results`. In a notebook it
    shows as a table of passages by routes, with the rank of each passage in each route, and `warnings` below.
    """

    warnings: tuple[str, ...] = ()

    def to_frame(self, depth: int = DEFAULT_DEPTH) -> pd.DataFrame:
        """Passages by routes: a row for each passage that a route has in its top `depth`, best first, with
        "title" and the rank in each route, from 1, missing where the route has not got it. The index is the
        passage's id.
        """
        import pandas as pd

        rows = rank_rows(self, depth=arguments.count(depth, "depth"), limit=MAX_ROWS)
        frame = pd.DataFrame(
            {"title": [row.name for row in rows]}, index=pd.Index([row.id for row in rows], name="passage")
        )
        for at, result in enumerate(worked(self)):
            frame[result.route] = pd.array([row.ranks[at] for row in rows], dtype="Int64")
        return frame

    def _repr_html_(self) -> str:
        routes = worked(self)
        rows = rank_rows(self, depth=DEFAULT_DEPTH, limit=MAX_ROWS)
        lost = [
            f"{one.route}: {one.status}" + (f": {one.error}" if one.error else "")
            for one in self.results
            if one.status != "ok"
        ]
        answers = [f"{one.route} answers: {one.answer}" for one in self.results if one.answer is not None]
        return html.table(
            (*(f"{one.route} ({milliseconds(one.ms)})" for one in routes), "passage", "title"),
            [(*("" if rank is None else rank for rank in row.ranks), row.id, row.name) for row in rows],
            above=[f"{self.query.text}", f"corpus {self.corpus}, run {self.id}: ranks by route"],
            below=[*answers, *lost, *self.warnings],
            right=range(len(routes)),
        )

    def __repr__(self) -> str:
        states = ", ".join(f"{one.route} {one.status}" for one in self.results)
        return f"<Comparison {self.id}: {self.query.text[:60]!r} in {self.corpus}: {states}>"


def compare(
    question: str,
    corpus: File,
    routes: Names = None,
    *,
    own: Mapping[str, str] | None = None,
    python: File = "",
    parameters: Parameters = None,
    history: Sequence[Turn | Mapping[str, str]] = (),
    filters: Sequence[str] = (),
    answers: bool = False,
    stored: bool = True,
    build: bool = True,
    progress: Progress | bool = True,
) -> Comparison:
    """Ask `question` over `corpus` by several `routes`, as the command `ask` does.

    `corpus` is a name that the command `corpora` lists, or the path of a folder or file. An index that is
    missing is built first; with `build=False` that raises Unavailable, and a path BadInput. `routes` are
    names; None stands for all that can run here without a language model. `own` adds your own pipelines,
    {name: "FILE.py:FUNCTION" or an address}; `python` is the interpreter of those that are functions, else
    this one. `parameters` are {route: {name: value}}. `history` are the turns before the question. `filters`
    are conditions on metadata that passages have to meet, such as ["owner~Logistics", "last_updated>=2026"].
    With `answers` every route writes an answer. The run is stored, so that the dashboard shows it, unless
    `stored` is False.

    A route that fails reports the error in its result and does not affect the others. Ctrl-C stops the run
    and stores its finished routes. Raises BadInput and Unavailable.
    """
    query, where = (
        Query(arguments.text(question, "question"), arguments.conversation(history)),
        arguments.conditions(filters),
    )
    engine = engines.shared_engine()  # it knows the routes that the settings name
    named, values = None if routes is None else arguments.listed(routes), arguments.of_routes(parameters)
    for value, name in ((answers, "answers"), (stored, "stored"), (build, "build")):
        arguments.flag(value, name)
    added = arguments.own_routes(own, python)
    now = engine.settings
    with arguments.reporting(progress) as report:
        origin = arguments.source(corpus, None, now, known=not build)
        if build:
            arguments.ensure(origin, now, report)
        names = tuple(dict.fromkeys((*(named or arguments.chosen(None, engine, origin.name)), *added)))
        request = Request(
            query,
            origin.name,
            names,
            values,
            answers="all" if answers else "none",
            timing=now.timing,
            style=AnswerStyle(now.answer_by, now.answer_order, now.answer_evidence),
            stored=stored,
            where=where,
        )
        job = engine.start(request)
        run = _wait(job, len(names), report)
    if engine.store is not None and stored:
        engine.store.flush()  # so that a failure to store is reported here
        job.warnings += [line for line in engine.store.warnings if line not in job.warnings]
    info = catalogue.describe(origin.name, now).info
    warned = cautions.of_run(run, info) if info is not None else ()
    return as_comparison(run, [*job.warnings, *(caution.line() for caution in warned)])


def as_comparison(run: Run, warnings: Sequence[str] = ()) -> Comparison:
    """Convert a run to a Comparison."""
    return Comparison(**{one.name: getattr(run, one.name) for one in fields(Run)}, warnings=tuple(warnings))


def _wait(job: Job, total: int, report: Progress) -> Run:
    """Wait for the finished run; on an interrupt, stop it before the interrupt propagates."""
    try:
        while True:
            try:
                return job.wait(LOOK_S)
            except TimeoutError:
                report("routes", total - len(job.pending()), total)
    except BaseException:  # of `report` too: nobody would wait for the run any more
        job.cancel()
        job.wait()
        raise
