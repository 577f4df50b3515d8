"""Evaluations of routes on labelled questions, run now or opened from a saved one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.analysis.metrics import COMPARED, HEADLINE, titled
from core.api import arguments, html
from core.api.arguments import File, Names, Parameters, Progress
from core.backends.workers.place import place
from core.corpus import catalogue
from core.corpus.source import Source, key_of
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.format import milliseconds, number
from core.domain.settings import Settings
from core.engine import engine as engines
from core.evaluation import experiment_store, leaderboard, sets
from core.evaluation import text as words
from core.evaluation.chunkings import measuring
from core.evaluation.experiment import perform, prepare
from core.evaluation.experiment_store import Evaluation
from core.evaluation.question_formats import read_columns
from core.evaluation.runner import Course
from core.evaluation.spec import Spec, options, with_keywords
from core.evaluation.summary import check_baseline

if TYPE_CHECKING:
    import pandas as pd

    from core.api.explaining import Explanation


USE = ("failed", "p50_ms", "p95_ms", "llm_calls")  # of a route's figures


@dataclass(frozen=True, repr=False)
class Evaluated(Evaluation):
    """Measured routes: `figures` is what metrics.json holds, `values` each metric by route and question. In a
    notebook it is the leaderboard. `folder` is where it was saved; Path() for one that was not.
    """

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each route, best nDCG@10 first: for each compared metric its mean with the 95%
        interval (`ndcg@10`, `ndcg@10 low`, `ndcg@10 high`), the difference from the baseline (`ndcg@10
        delta`) with its Holm-adjusted p-value (`ndcg@10 p`); then questions, failures, p50 and p95 in ms,
        model calls.
        """
        import pandas as pd

        return pd.DataFrame(
            [self._row(route) for route in leaderboard.ranked(self.figures, HEADLINE)]
        ).set_index("route")

    @property
    def chunkings(self) -> pd.DataFrame:
        """Routes x chunkings by coverage, a row for each route and corpus: `coverage` by 1,000 tokens with
        its 95% interval (`low`, `high`), the difference from the corpus as it is (`delta`) with its
        Holm-adjusted `p`, `area`, `density`, `documents`, `passages`, `questions`; see docs/internals.md.
        BadInput where one chunking was measured.
        """
        import pandas as pd

        from core.evaluation.chunkings import report

        found = report.read(self.folder) if self.spec.get("chunkings") else None
        if found is None:
            raise BadInput(f"evaluation {self.name} measured one chunking; call evaluate with chunkings")
        return pd.DataFrame(report.flat(found)).set_index(["route", "corpus"])

    @property
    def findings(self) -> list[str]:
        """Return the findings in sentences, most important first."""
        return words.found(self.figures)

    def why(
        self, question: str, passage: str | None = None, *, route: str | None = None, depth: int = 10
    ) -> Explanation:
        """Why the routes found or lost the passages labelled for a question, or one passage: see
        core.api.why. BadInput for a question that was not asked, and where no runs were saved (`keep`).
        """
        from core.api.explaining import why

        if question not in self.questions:
            some = ", ".join(list(self.questions)[:5])
            raise BadInput(f"evaluation {self.name} has no question {question!r}; it has for example: {some}")
        grades = self.labelled.qrels.get(question, {})
        return why(self.run(question), passage, route=route, depth=depth, grades=grades)

    def _row(self, route: str) -> dict[str, Any]:
        row = self.figures["routes"][route]
        told: dict[str, Any] = {"route": route}
        for metric in COMPARED:
            low, high = row["ci95"].get(metric) or (None, None)
            told |= {metric: row[metric], f"{metric} low": low, f"{metric} high": high}
            difference = leaderboard.difference(row, metric)
            told |= {
                f"{metric} delta": difference["delta"] if difference else None,
                f"{metric} p": difference["p_holm"] if difference else None,
            }
        return {**told, "questions": row["n"], **{name: row[name] for name in USE}}

    def _repr_html_(self) -> str:
        first = HEADLINE
        rows = []
        for route in leaderboard.ranked(self.figures, first):
            row = self.figures["routes"][route]
            rows.append(
                (
                    route,
                    _mean(row, first),
                    _mean(row, "recall@10"),
                    _difference(row, first),
                    "" if row["p95_ms"] is None else milliseconds(row["p95_ms"]),
                    row["failed"],
                )
            )
        against = f"{titled(first)} against {self.baseline}"
        return html.table(
            ("route", titled(first), "recall@10", against, "p95", "failed"),
            rows,
            above=[f"{self.name}: {self.figures['queries']} questions", *self.findings],
            below=[str(one) for one in self.figures.get("warnings", ())],
            right=(1, 2, 4, 5),
        )

    def __repr__(self) -> str:
        return f"<Evaluated {self.name!r}: {len(self.outcomes)} questions, routes {', '.join(self.routes)}>"


def evaluate(
    target: File,
    routes: Names = None,
    *,
    own: Mapping[str, str] | None = None,
    python: File = "",
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    parameters: Parameters = None,
    filters: Sequence[str] = (),
    answers: bool = False,
    chunkings: Names = None,
    out: File | None = None,
    keep: str | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    build: bool = True,
    progress: Progress | bool = True,
    **asked: Any,
) -> Evaluated:
    """Measure `routes` on the labelled questions of `target`, as the command `eval` does.

    `target` is the name of a corpus with questions, or the path of a BEIR folder; with `questions` (files of
    this tool or of another, whose columns `columns` names by field), `qrels` (TREC) or `labels` (a label set)
    of any corpus. `routes` are names; None stands for all that can run here without a language model. `own`
    adds your own pipelines, {name: "FILE.py:FUNCTION" or an address}; `python` is the interpreter of those
    that are functions, else this one. `baseline` is the route that the others are compared with, the first
    unless given. `split` is dev, test or all; `mode` keeps one kind of question; `queries` and `per_mode`
    draw a sample with `seed`. An index that is missing is built first; with `build=False` that raises
    Unavailable. `filters` are conditions on metadata that passages have to meet to be found.

    `chunkings` ("all", or names such as "256" and "headings") also measures the source chunked in these ways,
    by how much of the labelled text each covers: `Evaluated.chunkings`. It needs `out` or `keep`.

    With `out` (a folder) or `keep` (a name, for the page Evaluate) all is saved there, and the same call
    continues a stopped evaluation; without them, it is in memory only. `workers` (processes of this machine)
    or `scheduler` (of Dask, "tcp://host:port") ask the questions instead of this process. Ctrl-C stops it and
    raises KeyboardInterrupt; finished questions are saved. Raises BadInput and Unavailable.
    """
    settings = settings_module.current()
    if unknown := [one for one in asked if one not in ASKED]:
        raise TypeError(f"evaluate() got an unexpected keyword argument {unknown[0]!r}")
    if keep is not None and out is not None:
        raise BadInput("keep and out cannot be combined; give one")
    folder = None if out is None else arguments.path(out, "out")
    if keep is not None:
        folder = experiment_store.place(settings, arguments.text(keep, "keep"))
    if folder is None and (arguments.flag(fresh, "fresh") or arguments.flag(retry_failed, "retry_failed")):
        raise BadInput("fresh and retry_failed need out or keep")
    if asked.get("questions"):
        asked["questions"] = tuple(map(str, arguments.paths(asked["questions"], "questions")))
    if asked.get("qrels") is not None:
        asked["qrels"] = str(arguments.path(asked["qrels"], "qrels"))
    if asked.get("labels") is not None and (asked.get("questions") or asked.get("qrels")):
        raise BadInput("labels cannot be combined with questions or qrels")
    if chunkings is not None and folder is None:
        raise BadInput("chunkings need out or keep: they are saved with the evaluation")
    course: Course = {"fresh": fresh, "retry": retry_failed, "workers": place(workers, scheduler)}
    engine = engines.shared_engine()  # it knows the routes that the settings name
    names = () if routes is None else arguments.listed(routes)
    added = arguments.own_routes(own, python)
    if names:
        names = tuple(dict.fromkeys((*names, *added)))
        check_baseline(asked.get("baseline"), names)
    origin = arguments.source(target, name, settings, known=not arguments.flag(build, "build"))
    others = () if chunkings is None else chunkings_of(origin, chunkings, settings)
    spec = Spec(
        origin.name,
        names,
        arguments.of_routes(parameters),
        answers=arguments.flag(answers, "answers"),
        chunkings=tuple(str(key_of(one.name)) for one in others),
        filters=tuple(map(str, arguments.conditions(filters))),
        columns=read_columns(f"{name}={column}" for name, column in (columns or {}).items()),
        **asked,
    )
    # before an index is built: a wrong file is reported at once
    found = sets.of_spec(spec, origin.path) if spec.labels is None else None
    with arguments.reporting(progress) as report:
        for one in (origin, *others) if build else ():
            arguments.ensure(one, settings, report)
        course["progress"] = partial(report, "questions")
        if others and folder is not None:
            group = measuring.prepare(engine, spec, found)
            _check_whole(measuring.perform(engine, group, out=folder, **course), folder)
            return evaluation(folder)
        ready = prepare(engine, spec, found)
        figures, labelled, outcomes = perform(engine, ready, out=folder, **course)
    _check_whole(figures, folder)
    called = labelled.name if folder is None else folder.name
    return Evaluated(called, folder or Path(), spec.document(), labelled, outcomes, figures)


ASKED = {name: one for name, (one, _) in options(Spec).items()}
# what help and notebooks show
evaluate.__signature__ = with_keywords(evaluate, ASKED)  # type: ignore[attr-defined]


def chunkings_of(origin: Source, given: str | Sequence[str], settings: Settings) -> Sequence[Source]:
    """Return the chunkings to measure in addition to `origin`. Raises BadInput if no other is named."""
    if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise BadInput(f"chunkings={given!r}; give all, or names such as 256 and headings")
    found = catalogue.chosen_variants(origin, settings, given if isinstance(given, str) else ",".join(given))
    if not found:
        raise BadInput(f"{origin.name} is cut as {origin.chunking.key} itself; name another chunking, or all")
    return found


def _check_whole(figures: Mapping[str, Any], folder: Path | None) -> None:
    """Raise KeyboardInterrupt if the evaluation was stopped."""
    if figures["interrupted"]:
        kept = f"; what was asked is in {folder}, and the same call goes on with it" if folder else ""
        raise KeyboardInterrupt(f"the evaluation was stopped{kept}")


def evaluations() -> list[str]:
    """Return the names of the saved evaluations, the last changed first."""
    return experiment_store.names(settings_module.current())


def evaluation(name: File) -> Evaluated:
    """Open a saved evaluation by its name or folder. Raises BadInput if it does not exist or has no figures
    yet.
    """
    settings = settings_module.current()
    if isinstance(name, str) and experiment_store.NAME.fullmatch(name) and not Path(name).is_dir():
        if name not in evaluations():
            known = ", ".join(evaluations()) or "none"
            raise BadInput(f"{name!r} is no saved evaluation and no folder of one; saved are: {known}")
        folder = experiment_store.place(settings, name)
    else:
        folder = arguments.path(name, "name")
    opened = experiment_store.opened(folder)
    if not opened.figures:
        raise BadInput(f"evaluation {opened.name} has no figures yet; wait until it finishes")
    fresh = leaderboard.against(opened, opened.baseline)  # those of an earlier version lack some
    made = {one.name: getattr(opened, one.name) for one in fields(Evaluation)}
    return Evaluated(**{**made, "figures": fresh})


def _mean(row: Mapping[str, Any], metric: str) -> str:
    if row[metric] is None:
        return ""
    ends = row["ci95"].get(metric)
    return f"{row[metric]:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "")


def _difference(row: Mapping[str, Any], metric: str) -> str:
    found = leaderboard.difference(row, metric)
    if found is None:
        return ""
    ends = found.get("ci95")
    interval = f" [{', '.join(number(end, signed=True) for end in ends)}]" if ends else ""
    return f"{number(found['delta'], signed=True)}{interval}, p {found['p_holm']:.3f}: {found['verdict']}"
