"""Record the default model on sample questions: `python -m scripts.record [ROUTE,... [SAMPLE,...]]`.

Every route, or those named, runs on every sample question of `support`, or those named by id, in record
mode, without answers but for the routes whose answers a sample speaks of. What the model says goes to
data/recordings/, where the first demo takes it from. Run it again after a prompt changed: only what is not
recorded yet asks the model.
"""

from __future__ import annotations

import logging
import sys

from core.corpus.samples import samples
from core.domain import settings
from core.engine.engine import Engine
from core.engine.request import Request
from core.routes.registry import pick

log = logging.getLogger("record")


def main() -> None:
    """Run every sample question with every route, or those named."""
    routes = tuple(route.name for route in pick(sys.argv[1] if len(sys.argv) > 1 else "all"))
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    engine = Engine(settings.load(llm_mode="record", route_timeout_s=600, llm_timeout_s=300))
    wanted = set(sys.argv[2].split(",")) if len(sys.argv) > 2 else None
    found = [sample for sample in samples("support") if wanted is None or sample.id in wanted]
    for number, sample in enumerate(found, 1):
        answered = tuple(name for name in sample.answered if name in routes)
        run = engine.ask(Request(sample.query, "support", routes, answers="selected", answered=answered))
        told = ", ".join(f"{r.route} {r.status} {r.ms / 1000:.1f} s" for r in run.results)
        log.info("%d/%d %r: %s", number, len(found), sample.query.text, told)


if __name__ == "__main__":
    main()
