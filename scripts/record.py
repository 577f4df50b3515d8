"""Record the default model's answers to the sample questions: `python -m scripts.record`.

Every route runs on every sample question of `support` in record mode, without answers. What the model says
goes to data/recordings/, where the first demo takes it from. Run it again after a prompt changed: only what
is not recorded yet asks the model.
"""

from __future__ import annotations

import logging

from core import settings
from core.corpus.samples import samples
from core.engine import Engine, Request

log = logging.getLogger("record")


def main() -> None:
    """Run every sample question with every route and answers for all."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    engine = Engine(settings.load(llm_mode="record", route_timeout_s=600, llm_timeout_s=300))
    found = samples("support")
    for number, sample in enumerate(found, 1):
        run = engine.ask(Request(sample.query, "support"))
        told = ", ".join(f"{r.route} {r.status} {r.ms / 1000:.1f} s" for r in run.results)
        log.info("%d/%d %r: %s", number, len(found), sample.query.text, told)


if __name__ == "__main__":
    main()
