"""Steps that search by walking over the corpus' graph of entities."""

from __future__ import annotations

from typing import Literal

import numpy as np

from core.backends.base import Vector
from core.corpus.enrichments.graph import ALIKE, GraphIndex
from core.domain.needs import Need
from core.domain.outputs import Edge, Entities, Node, Search, Seed, Walk
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.retrieve import POOL
from core.steps.step import step

Relations = Literal["rules", "triples"]
SEEDS, PHRASES, PASSAGES = 10, 20, 10  # nodes of each kind that the span keeps


class WalkGraph(StepBase):
    """Personalised PageRank from the question's entities.

    Source: Gutiérrez et al. 2025, "From RAG to Memory" (HippoRAG 2), arXiv:2502.14802, section 3.
    """

    @step("CHAIN", "find the question's entities in the graph", returns=Entities)
    def entities(self, text: str, vector: Vector, relations: Relations = "rules", facts: int = 5) -> Entities:
        """Return the seed phrases of a walk: those `text` names, the nearest phrases for unknown names, and,
        in a graph of triples, those in the `facts` nearest to `vector`. A phrase weighs its score (1 if
        named, else the mean cosine) divided by the number of passages that mention it.
        """
        index = self._graph(relations)
        named, unknown = index.asked(text)
        seeds: dict[int, Seed] = {at: _seed(index, at, 1.0, "name", one.shown) for at, one in named.items()}
        lacking = []
        for name in unknown:
            near = index.nearest(self.context.embedder.embed_query(name))
            if near is None or near[1] < ALIKE:
                lacking.append(name)
            elif near[0] not in seeds:
                seeds[near[0]] = _seed(index, *near, "alike", name)
        stated: dict[int, list[tuple[float, str]]] = {}
        for fact, a, b, cosine in index.stated(vector, facts):
            for at in {a, b}:
                stated.setdefault(at, []).append((cosine, fact))
        for at, by in stated.items():
            if at not in seeds:
                mean = sum(cosine for cosine, _ in by) / len(by)
                seeds[at] = _seed(index, at, max(mean, 1e-6), "relation", by[0][1])
        if not seeds:
            self.note("the question names nothing that the graph has: passages are ranked by dense alone")
        heaviest = sorted(seeds.values(), key=lambda one: (-one.weight, one.node))
        return Entities(tuple(heaviest), tuple(lacking))

    @step("RETRIEVER", "walk the graph", returns=Ranking)
    def walk(
        self,
        entities: Entities,
        first: Ranking,
        relations: Relations = "rules",
        passage_weight: float = 0.05,
        damping: float = 0.5,
        k: int = POOL,
    ) -> Ranking:
        """Rank passages by a random walk with restart, and return the `k` it visits most; ties break by row.
        The walk restarts at `entities` and at the passages of `first`, whose scores are scaled to 0 to 1 and
        multiplied by `passage_weight`. Passages it never reaches are not hits.
        """
        index, corpus = self._graph(relations), self.context.corpus
        count = len(index.phrases)
        restart = np.zeros(index.graph.size)
        for seed in entities.seeds:
            restart[seed.node] += seed.weight
        scores = [hit.score for hit in first]
        low, span = (min(scores), max(scores) - min(scores)) if scores else (0.0, 0.0)
        for hit in first:
            share = (hit.score - low) / span if span else 1.0
            restart[count + corpus.row(hit.passage.id)] += passage_weight * share
        walked = index.graph.walk(restart, damping)
        reached, allowed = walked.scores[count:], self.allowed()
        rows = np.argsort(-(reached if allowed is None else reached * allowed), kind="stable")[:k]
        rows = rows[reached[rows] > 0] if allowed is None else rows[(reached * allowed)[rows] > 0]
        passages = corpus.passages(rows.tolist())
        begin = restart / restart.sum()
        best = np.argsort(-walked.scores[:count], kind="stable")[:PHRASES].tolist()
        seeds = [seed.node for seed in entities.seeds[:SEEDS]]
        visited = [at for at in dict.fromkeys([*seeds, *best]) if walked.scores[at] > 0][:PHRASES]
        nodes = [*visited, *(count + rows[:PASSAGES]).tolist()]
        names = [index.phrases[node] for node in nodes if node < count] + [one.id for one in passages]
        kept = tuple(
            Node(
                name, "phrase" if node < count else "passage", float(walked.scores[node]), float(begin[node])
            )
            for node, name in zip(nodes, names, strict=False)
        )
        edges = tuple(Edge(*edge) for edge in index.between(nodes))
        took = (damping, walked.iterations, walked.change, int((restart > 0).sum()))
        walk = Walk(kept, edges, *took, count, corpus.size, index.edges)
        self.span.output = Search(walk=walk, where=self.context.where)
        return tuple(
            Hit(passage, float(walked.scores[count + row]))
            for passage, row in zip(passages, rows.tolist(), strict=True)
        )

    def _graph(self, relations: Relations) -> GraphIndex:
        found: GraphIndex = self.context.prepared(Need.GRAPH if relations == "rules" else Need.GRAPH_TRIPLES)
        return found


def _seed(
    index: GraphIndex, at: int, score: float, by: Literal["name", "alike", "relation"], asked: str
) -> Seed:
    passages = index.passages[at]
    return Seed(index.phrases[at], at, float(score) / max(1, passages), float(score), passages, by, asked)
