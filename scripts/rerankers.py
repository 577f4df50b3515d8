"""Compare rerankers: `python -m scripts.rerankers SET... [--candidates 50] [--queries N] [--llm] [--pairs]`.

A SET is a corpus with questions (support, pydocs) or a BEIR folder, indexed and with token vectors
(`python -m core index SET --with tokens`). Every question is run by the route `rerank`; what the embedded
reranker is made of is also tried alone. Prints a table of means: nDCG@10, recall@10, and the median time of
the reranking. `--llm` adds the language model's grades: minutes for each question. `--pairs` compares the
first stage with the configured cross-encoder or server instead, alone and as parts of a blend, from one
scoring of each pair; it needs no token vectors.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")  # times are those of one thread

from core.analysis import metrics
from core.analysis.run_view import recorded
from core.corpus import catalogue
from core.domain import settings
from core.domain.errors import RouteScopeError
from core.domain.format import ProgressBar
from core.domain.needs import Need
from core.domain.outputs import Rerank
from core.domain.types import RouteResult, Scored
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets
from core.evaluation.dataset import LabelledSet, Question
from core.steps.rerank import by_score

NONE, COSINE, MAXSIM, WEIGHTED, BLEND, LLM = (
    "none",
    "cosine",
    "MaxSim",
    "MaxSim by IDF",
    "embedded (blend)",
    "llm, P(yes)",
)


SHARES = (0.1, 0.3, 0.5, 1.0)  # of the score of a model of pairs
PAIRS = {share: f"pairs, share {share:.0%}" for share in SHARES}


class Comparison:
    """One labelled set: the ranking of each question by each choice, and the times of reranking."""

    def __init__(self, engine: Engine, corpus: str, candidates: int) -> None:
        self._engine, self._corpus, self._candidates = engine, engine.corpus(corpus), candidates
        self.rankings: dict[str, dict[str, Scored]] = defaultdict(dict)
        self.ms: dict[str, list[float]] = defaultdict(list)

    def ask(self, question: Question, *, llm: bool) -> None:
        """Run one question, and order its candidates by each signal alone."""
        result = self._run(question, "embedded")
        before = [id for id, _ in next(s for s in result.spans if s.name.startswith("fuse")).hits or ()]
        self._keep(NONE, question, before)
        self._keep(BLEND, question, [hit.passage.id for hit in result.hits])
        reranked = next(iter(recorded(result.spans, Rerank)))
        self.ms[BLEND].append(reranked.span.ms)
        if "token vectors" in reranked.span.attributes:
            raise SystemExit(f"{self._corpus.name}: {reranked.span.attributes['token vectors']}")
        order = {one.id: one for one in reranked.output.order}
        head = [order[id] for id in before if id in order]
        for choice, signal in ((COSINE, "cosine"), (WEIGHTED, "maxsim")):
            self._reorder(choice, question, before, [one.parts[signal][0] for one in head])
        tokens = self._engine.enrichment(self._corpus, Need.TOKENS)
        began = time.perf_counter()
        asked = tokens.embed_query(question.query.text).vectors
        plain = tokens.scores(asked, [self._corpus.row(one.id) for one in head])
        self.ms[MAXSIM].append((time.perf_counter() - began) * 1000)
        self._reorder(MAXSIM, question, before, [round(float(score), 6) for score in plain])
        if llm:
            graded = self._run(question, "llm")
            self._keep(LLM, question, [hit.passage.id for hit in graded.hits])
            self.ms[LLM].append(next(span.ms for span in graded.spans if span.kind == "RERANKER"))

    def ask_pairs(self, question: Question) -> None:
        """Run one question with the configured model of pairs, and order its candidates by each share."""
        result = self._run(question, "configured", 0.5)
        before = [id for id, _ in next(s for s in result.spans if s.name.startswith("fuse")).hits or ()]
        self._keep(NONE, question, before)
        reranked = next(iter(recorded(result.spans, Rerank)))
        order = {one.id: list(one.parts.values()) for one in reranked.output.order}
        head = [order[id] for id in before if id in order]
        for share, choice in PAIRS.items():
            self.ms[choice].append(reranked.span.ms)
            scores = [2 * (1 - share) * first[1] + 2 * share * second[1] for first, second in head]
            self._reorder(choice, question, before, scores)

    def _run(self, question: Question, reranker: str, share: float = 0.0) -> RouteResult:
        parameters = {"rerank": {"candidates": self._candidates, "reranker": reranker, "share": share}}
        request = Request(question.query, self._corpus.name, ("rerank",), parameters)
        result = self._engine.ask(request).results[0]
        if result.status != "ok":
            raise SystemExit(f"{question.id}: {result.status}: {result.error}")
        return result

    def _reorder(
        self, choice: str, question: Question, before: Sequence[str], scores: Sequence[float]
    ) -> None:
        head = [before[at] for at in by_score(scores)]
        self._keep(choice, question, [*head, *before[len(head) :]])

    def _keep(self, choice: str, question: Question, ids: Sequence[str]) -> None:
        self.rankings[choice][question.id] = tuple((id, 1 / rank) for rank, id in enumerate(ids, 1))


def means(labelled: LabelledSet, rankings: Mapping[str, Scored]) -> tuple[float, float]:
    """nDCG@10 and recall@10; a passage with the question's own id is no result in BEIR."""
    kept = {
        id: tuple(hit for hit in hits if not (labelled.drop_self and hit[0] == id))
        for id, hits in rankings.items()
    }
    values = metrics.by_question(labelled.qrels, kept, relevant_from=labelled.relevant_from)
    return (
        statistics.fmean(value["ndcg@10"] for value in values.values()),
        statistics.fmean(value["recall@10"] for value in values.values()),
    )


def main() -> None:
    """Print a row for each set and choice."""
    parser = argparse.ArgumentParser(description="Compare rerankers on labelled sets.")
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--queries", type=int, help="a sample of this many questions")
    parser.add_argument("--split", default="test", help="of a folder of questions and labels")
    parser.add_argument("--pairs", action="store_true", help="the configured model of pairs instead")
    parser.add_argument("--llm", action="store_true", help="also the language model's grades")
    given = parser.parse_args()
    now = settings.load(
        route_timeout_s=3600,
        llm_timeout_s=3600,
        route_max_calls=2 * given.candidates,
        route_max_tokens=1_000_000,
    )
    engine = Engine(now)
    sys.stdout.write(
        "| set | questions | reranker | nDCG@10 | recall@10 | median ms |\n|---|---|---|---|---|---|\n"
    )
    for target in given.sets:
        source = catalogue.source(target, settings=now)
        split = "all" if source.kind == "built-in" and not given.pairs else given.split
        found = sets.read(source.name, source.path, split=split)
        labelled, _ = sets.tie(found, engine.corpus(source.name))
        drawn = labelled.sample(given.queries, 0) if given.queries else labelled
        compared = Comparison(engine, source.name, given.candidates)
        asked = [question for question in drawn.questions if labelled.labelled(question.id)]
        bar = ProgressBar("q")
        for number, question in enumerate(asked, 1):
            if given.pairs:
                compared.ask_pairs(question)
            else:
                compared.ask(question, llm=given.llm)
            bar(source.name, number, len(asked))
        for choice in (NONE, COSINE, MAXSIM, WEIGHTED, BLEND, LLM, *PAIRS.values()):
            if choice in compared.rankings:
                ndcg, recall = means(labelled, compared.rankings[choice])
                ms = f"{statistics.median(compared.ms[choice]):.0f}" if choice in compared.ms else ""
                sys.stdout.write(
                    f"| {source.name} | {len(asked)} | {choice} | {ndcg:.4f} | {recall:.4f} | {ms} |\n"
                )
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except RouteScopeError as error:
        raise SystemExit(str(error)) from None
