"""A realistic Run made by hand, for pages, charts and stores: no model, no index, the same every time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.domain import outputs
from core.domain.types import (
    Hit,
    Link,
    Passage,
    Query,
    Ranking,
    Reuse,
    RouteResult,
    Run,
    Scored,
    Span,
    SpanKind,
    Tokens,
    Turn,
)

QUESTION = "What about the other one?"
STANDALONE = "How do I claim for the second vase that arrived crushed?"
VARIANTS = [
    "How to report a damaged second item?",
    "Damage claim for one of two vases",
    "Broken on arrival: evidence and deadline",
]
IMAGINED = (
    "If an item arrives damaged, report it within 48 hours with photographs of all six sides of the box. "
    "Each damaged item of an order has its own claim, and the packaging must be kept until the claim ends."
)
MODEL = "qwen2.5-coder-1.5b"
_TOPICS = "damage claims,returns,customs,peak season,labels,perishables,carriers,refunds"
TOPICS = tuple(_TOPICS.split(","))
HOSTILE = (
    "<img src=http://evil.example/x.png onerror=alert(1)><script>alert(2)</script>",
    "![pixel](http://evil.example/pixel.png) [link](javascript:alert(3))",
    '</style></div><svg onload=alert(4)>" onmouseover="alert(5)',
    "see http://evil.example/a?b=c, HTTPS://evil.example. or www.evil.example, mail me@evil.example",
    "\u202egnp.exe\u202c مرحبا بالعالم 👩‍👩‍👧‍👦 $x^2$ :smile: :red[red] **bold** `code`",
)


def passages(count: int = 60, *, hostile: bool = False, attacks: Sequence[str] = HOSTILE) -> list[Passage]:
    """`count` passages with ids like real ones; some carry hostile text if asked for."""
    made = []
    for n in range(count):
        topic = TOPICS[n % len(TOPICS)]
        document = f"{topic.replace(' ', '-')}/page-{n // len(TOPICS)}.md"
        text = (
            f"This section of the handbook is about {topic}. Rule {n} says that a case is opened within "
            f"{n + 2} hours, that the owner writes down the order number, and tells the carrier on that day. "
            f"Exceptions to rule {n} are listed in the appendix and need the approval of the shift lead."
        )
        title = f"{topic.capitalize()}, part {n // len(TOPICS) + 1}"
        if hostile and n % 3 == 0:
            payload = attacks[n // 3 % len(attacks)]
            title, text = f"{payload} {n}", f"{payload} {text}"
        start = 600 * (n % 5)
        id = f"{document}:{start}-{start + len(text)}"
        made.append(Passage(id, document, title, text, start, start + len(text)))
    return made


def ranking(pool: Sequence[Passage], seed: int, size: int) -> Ranking:
    """A ranking of `size` passages: near the pool's order, shuffled by `seed`."""
    noise = random.Random(seed)
    order = sorted(range(len(pool)), key=lambda n: n + noise.uniform(0, 14))[:size]
    return tuple(Hit(pool[n], round(12.5 / (rank + 1.3), 4)) for rank, n in enumerate(order))


def scored(hits: Ranking) -> Scored:
    """A ranking as a span keeps it."""
    return tuple((hit.passage.id, hit.score) for hit in hits)


class Steps:
    """Writes a route's spans one after another, as its clock would."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.clock = 0.0

    def add(
        self,
        name: str,
        kind: SpanKind,
        ms: float,
        *,
        parent: int | None = None,
        hits: Ranking | None = None,
        links: Sequence[Link] = (),
        shared: str | None = None,
        **fields: Any,
    ) -> int:
        """Append a span with further `fields`; one with a parent begins where the parent began."""
        start = self.clock if parent is None else self.spans[parent - 1].start_ms
        number, calls = len(self.spans) + 1, int(kind == "LLM")
        found = None if hits is None else scored(hits)
        more = {"hits": found, "links": tuple(links), "shared_with": shared, "calls": calls, **fields}
        self.spans.append(Span(number, parent, name, kind, start, ms, **more))
        if parent is None:
            self.clock += ms
        return number

    def bm25(self, text: str, hits: Ranking, *, shared: str | None = None) -> int:
        """A search by words."""
        args, output = {"text": text, "k": 100, "engine": "bm25s"}, outputs.Search((text,))
        return self.add("search BM25", "RETRIEVER", 1.4, args=args, output=output, hits=hits, shared=shared)

    def dense(self, text: str, hits: Ranking, *, shared: tuple[str | None, str | None] = (None, None)) -> int:
        """The embedding of a text, and a search with it."""
        args, output = {"text": text}, outputs.Embedding((text,))
        made = self.add("embed", "EMBEDDING", 3.1, args=args, output=output, shared=shared[0])
        return self.nearest(made, hits, shared=shared[1])

    def nearest(self, vector: int, hits: Ranking, *, shared: str | None = None) -> int:
        """A search with the vector that a step made."""
        more: dict[str, Any] = {"args": {"k": 100}, "output": outputs.Search()}
        links = [Link("vector", vector, 384)]
        return self.add("search vectors", "RETRIEVER", 2.2, hits=hits, shared=shared, links=links, **more)

    def rrf(self, lists: Sequence[int], hits: Ranking, *, k: int = 60) -> int:
        """Reciprocal rank fusion of the lists that steps made."""
        args, output = {"k": k, "weights": [1.0] * len(lists)}, outputs.Fusion("rrf")
        links = [Link(f"lists[{n}]", id, len(self.spans[id - 1].hits or ())) for n, id in enumerate(lists)]
        return self.add(
            "fuse by reciprocal rank", "CHAIN", 0.2, args=args, output=output, hits=hits, links=links
        )

    def hybrid(self, text: str, sparse: Ranking, dense: Ranking, fused: Ranking, *, shared: bool) -> int:
        """BM25, embedding, vectors and their fusion."""
        words = self.bm25(text, sparse, shared="bm25#1" if shared else None)
        near = self.dense(text, dense, shared=("dense#1", "dense#2") if shared else (None, None))
        return self.rrf((words, near), fused)

    def model(
        self,
        name: str,
        ms: float,
        output: Any,
        said: str,
        cached: Reuse | None = None,
        **args: Any,
    ) -> int:
        """A step that asks the model about the question, with the call under it."""
        parent = self.add(name, "LLM", ms, args={"text": QUESTION, **args}, output=output)
        sent = f"system: Do as you are told.\n\nuser: {QUESTION}"
        reply = outputs.Reply(said, made="2026-11-18T09:30:00+00:00" if cached else "")
        asked: dict[str, Any] = {"args": {"text": sent, "max_tokens": 60, "attempt": 1}, "output": reply}
        self.add(f"ask {MODEL}", "LLM", ms, parent=parent, cached=cached, tokens=Tokens(120, 48), **asked)
        return parent


def make_run(
    *,
    mishaps: bool = True,
    hostile: bool = False,
    size: int = 30,
    run_id: str = "0190f3a5b7c81a2b",
    corpus: str = "support",
    attacks: Sequence[str] = HOSTILE,
) -> Run:
    """Eight routes over one corpus. With `mishaps`, one fails, one times out and one is unavailable."""
    pool = passages(hostile=hostile, attacks=attacks)
    sparse, dense, fused, blended, *others = (ranking(pool, seed, size) for seed in range(1, 12))
    results: list[RouteResult] = []

    def done(
        name: str,
        title: str,
        steps: Steps,
        hits: Ranking,
        last: int,
        status: Any = "ok",
        error: str = "",
    ) -> None:
        start = sum(result.wall_ms for result in results)
        wall = sum(s.ms for s in steps.spans if s.parent is None and not s.shared_with and not s.cached)
        made = RouteResult(name, title, status, steps.clock, start, wall, hits, error=error or None)
        origin = Link("hits", last, len(hits)) if hits else None
        results.append(replace(made, spans=tuple(steps.spans), origin=origin))

    steps = Steps()
    done("bm25", "BM25", steps, sparse, steps.bm25(QUESTION, sparse))
    steps = Steps()
    done("dense", "Dense", steps, dense, steps.dense(QUESTION, dense))
    for name, title, found in (("rrf", "RRF", fused), ("linear", "linear", blended)):
        steps = Steps()
        made = steps.hybrid(QUESTION, sparse, dense, found, shared=True)
        done(f"hybrid_{name}", f"Hybrid ({title})", steps, found, made)

    steps = Steps()
    rewritten = outputs.Rewrite(QUESTION, (STANDALONE,), "question")
    steps.model("rewrite as a standalone question", 1430, rewritten, STANDALONE, "recording")
    made = steps.hybrid(STANDALONE, *others[:3], shared=False)
    done("rewrite", "Rewrite + hybrid", steps, others[2], made)

    steps = Steps()
    varied = outputs.Rewrite(QUESTION, tuple(VARIANTS), "variants")
    steps.model("write query variants", 2210, varied, "\n".join(VARIANTS), "cache", n=3)
    made = steps.hybrid(VARIANTS[0], *others[3:6], shared=False)
    if mishaps:
        error = "ModelFailed: " + HOSTILE[0] if hostile else "KeyError: 'weights'"
        done("rag_fusion", "RAG-Fusion", steps, (), made, "failed", error)
    else:
        done("rag_fusion", "RAG-Fusion", steps, others[5], made)

    steps, late = Steps(), "the route's time is up"
    if mishaps:
        args = {"text": QUESTION, "n": 1}
        made = steps.add("write hypothetical passages", "LLM", 60_000, args=args, error=late)
        done("hyde", "HyDE", steps, (), made, "timeout", late)
    else:
        imagined = outputs.Rewrite(QUESTION, (IMAGINED,), "passages")
        wrote = steps.model("write hypothetical passages", 3120, imagined, IMAGINED, n=1)
        mean = steps.add(
            "mean of embeddings",
            "EMBEDDING",
            6.0,
            args={"texts": [IMAGINED], "question": QUESTION},
            output=outputs.Embedding((IMAGINED,), QUESTION),
            links=[Link("texts", wrote, 1)],
        )
        done("hyde", "HyDE", steps, others[6], steps.nearest(mean, others[6]))

    steps = Steps()
    fusion = steps.hybrid(QUESTION, sparse, dense, fused, shared=True)
    grades = tuple(
        outputs.PassageGrade(hit.passage.id, grade, "error" if grade is None else "scored")
        for hit, grade in zip(fused[:5], (0.94, 0.71, None, 0.33, 0.08), strict=True)
    )
    judge = steps.add(
        "grade and decide",
        "EVALUATOR",
        5200,
        args={"text": QUESTION, "low": 0.2, "high": 0.9},
        output=outputs.Grading(grades, 0.2, 0.9, "correct", "", ("correct", "ambiguous", "incorrect")),
        links=[Link("hits", fusion, 5)],
    )
    for grade in grades:
        one = steps.add("grade passage", "EVALUATOR", 1040, parent=judge, output=grade)
        asked: dict[str, Any] = {"output": outputs.Reply("Yes"), "tokens": Tokens(180, 1)}
        steps.add(f"ask {MODEL}", "LLM", 1040, parent=one, **asked)
    graded = sorted(zip(fused[:5], grades, strict=True), key=lambda pair: -(pair[1].grade or 0.0))
    order = tuple(
        outputs.Reranked(hit.passage.id, fused.index(hit) + 1, hit.score, grade.grade, state=grade.state)
        for hit, grade in graded
    )
    by_grade = tuple(hit for hit, _ in graded)
    links = [Link("hits", fusion, 5), Link("verdict", judge, 1)]
    ranked = outputs.Rerank(order=order)
    ordered = steps.add("order by grade", "RERANKER", 0.1, hits=by_grade, output=ranked, links=links)
    found, fuse = by_grade + fused[5:], outputs.Fusion("append")
    links = [Link("first", ordered, 5), Link("rest", fusion, len(fused) - 5, 5)]
    made = steps.add("append the rest", "CHAIN", 0.1, hits=found, output=fuse, links=links)
    done("crag", "CRAG", steps, found, made)
    if mishaps:
        reason = "unavailable: no language model is here; get one with: python -m core models pull " + MODEL
        gone: dict[str, Any] = {"hits": (), "spans": (), "ms": 0.0, "error": reason, "origin": None}
        results[-1] = replace(results[-1], status="unavailable", **gone)

    question = f"{QUESTION} {HOSTILE[0]}" if hostile else QUESTION
    said = (Turn("user", "My box arrived crushed."), Turn("assistant", "Sorry to hear that."))
    return Run(
        run_id,
        "2026-11-20T10:15:30.250+00:00",
        Query(question, said),
        corpus,
        "f1" * 16,
        {"llm": MODEL, "answers": "none", "timing": "shared"},
        tuple(results),
        {passage.id: passage for passage in pool},
        sum(result.wall_ms for result in results),
        "done",
    )
