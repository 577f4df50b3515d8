"""A large Run for what must stay fast: many routes, long rankings, passages of a thousand characters."""

from __future__ import annotations

import random
from dataclasses import replace

from core.domain.fusion import rrf
from core.domain.outputs import Rewrite
from core.domain.types import Hit, Link, Passage, Query, Ranking, RouteResult, Run
from core.routes.registry import routes as known_routes
from tests.runs import TOPICS, Steps

LARGE_QUESTION = (
    "Which deadline holds for a damage claim when the carrier delivered a perishable parcel late?"
)
SUBJECTS = (
    "The customer",
    "The carrier",
    "The warehouse in Rotterdam",
    "A shift lead",
    "Customer care",
    "The claims desk",
    "An approved reseller",
    "The depot",
    "The finance team",
    "Whoever opened the case",
)
ACTS = (
    "reports the damage with photographs of all six sides of the box",
    "keeps the packaging until the claim has ended",
    "writes down the order number and the name of the driver",
    "refunds the postage once the parcel was scanned at the depot",
    "decides within two working days whether the parcel is returned or destroyed",
    "pays the import duty where the shipment was sent DDP",
    "asks for a proof of purchase that is not older than ninety days",
    "moves the perishable goods into cold storage before noon",
    "closes the case when nobody answered for two weeks",
    "prints a new label, because the first one cannot be read",
)
CLAUSES = (
    "unless the deadline of {n} hours has passed",
    "even if the delivery was {n} days late",
    "which holds for parcels above {n} kilograms only",
    "as section {n} of the handbook explains",
    "and notes it in form {n}",
    "before the {n}th of the following month",
)


def large_run(
    routes: int = 25,
    hits: int = 50,
    *,
    characters: int = 1000,
    run_id: str = "large",
    corpus: str = "support",
    seed: int = 7,
) -> Run:
    """`routes` routes (at most as many as there are) with `hits` hits each, of passages that are about
    `characters` long; rankings agree in part, as those of real routes do. The same every time.
    """
    names = sorted(known_routes())[:routes]
    if len(names) < routes:
        raise ValueError(f"{routes} routes asked for; there are {len(names)}")
    draw = random.Random(seed)
    pool = [_passage(n, characters, draw) for n in range(hits * 4)]
    results: list[RouteResult] = []
    for number, name in enumerate(names):
        found, others = (_ranking(pool, draw, hits, 6 + number) for _ in range(2))
        fused = rrf((found, others), k=60, weights=(1.0, 1.0))
        steps = Steps()
        if number % 3 == 2:
            text = f"{LARGE_QUESTION} {name}"
            wrote = Rewrite(LARGE_QUESTION, (text,), "question")
            steps.model("rewrite as a standalone question", 900.0 + number, wrote, text)
        last = steps.hybrid(LARGE_QUESTION, found, others, fused, shared=number > 0)
        start = sum(result.wall_ms for result in results)
        results.append(
            RouteResult(
                name,
                known_routes()[name].title,
                "ok",
                steps.clock,
                start,
                steps.clock,
                fused[:hits],
                spans=tuple(steps.spans),
                origin=Link("hits", last, len(fused[:hits])),
            )
        )
    results[0] = replace(
        results[0],
        answer="Damage is reported within 48 hours [1]. Cold goods go first [2].",
        citations=tuple(hit.passage.id for hit in results[0].hits[:2]),
    )
    return Run(
        run_id,
        "2026-11-20T10:15:30.250+00:00",
        Query(LARGE_QUESTION),
        corpus,
        "f1" * 16,
        {"llm": "test", "answers": "none", "timing": "shared", "routes": names},
        tuple(results),
        {passage.id: passage for passage in pool},
        sum(result.wall_ms for result in results),
    )


def _passage(n: int, characters: int, draw: random.Random) -> Passage:
    topic = TOPICS[n % len(TOPICS)]
    said = f"## {topic.capitalize()}, rule {n}\n\n"
    while len(said) < characters:
        clause = draw.choice(CLAUSES).format(n=draw.randint(2, 96))
        said += f"{draw.choice(SUBJECTS)} {draw.choice(ACTS)}, {clause}. "
    said, document = said.strip(), f"{topic.replace(' ', '-')}/page-{n // len(TOPICS)}.md"
    start = 800 * (n % 7)
    title = f"{topic.capitalize()}: what the handbook says, part {n // len(TOPICS) + 1}"
    return Passage(f"{document}:{start}-{start + len(said)}", document, title, said, start, start + len(said))


def _ranking(pool: list[Passage], draw: random.Random, size: int, noise: float) -> Ranking:
    order = sorted(range(len(pool)), key=lambda n: n + draw.uniform(0, noise))[:size]
    return tuple(Hit(pool[n], round(31.7 / (rank + 2.3), 4)) for rank, n in enumerate(order))
