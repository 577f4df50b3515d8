"""Measure speed: `python -m bench.run [PART ...]` writes bench/results.json, `--check` compares with it.

A part that was not asked for keeps its last figures. Each part gives its figures with `ratios`: a time over
another taken beside it in the same run, lower is better. They are what is compared, because absolute times
drift with the machine and the hour.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from bench.results import OUT, keep, kept, machine
from core.domain.settings import PROJECT

log = logging.getLogger("bench")
WORSE = 4 / 3  # a ratio this many times the one kept fails the check
PARTS: Mapping[str, str] = {  # where each part is measured
    "cold": "bench.engine:cold",
    "sharing": "bench.engine:share",
    "search": "bench.engine:search",
    "evaluation": "bench.engine:evaluation",
    "bare": "bench.bare:measure",
    "scale": "bench.scale:measure",
    "indexing": "bench.indexing:measure",
    "pages": "bench.pages:measure",
    "visits": "bench.visits:measure",
    "workers": "bench.workers:measure",
    "team": "bench.team:measure",
    "postgres": "bench.postgres:measure",
    "model": "bench.engine:model",
}
# Left out where no part is named: minutes of the model, an hour of graphs, or not installed.
LONG = ("model", "indexing", "visits", "workers", "team", "postgres")


def figures(part: str) -> dict[str, Any]:
    """Measure one part."""
    module, name = PARTS[part].split(":")
    measure: Callable[[], dict[str, Any]] = getattr(importlib.import_module(module), name)
    return {"machine": machine(), **measure()}


def worse(part: str, now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The ratios of a part that are more than a third above those kept, or that are no longer there."""
    found = []
    for name, was in before.get("ratios", {}).items():
        ratio = now.get("ratios", {}).get(name)
        if ratio is None:
            found.append(f"{part}: {name} is no longer measured")
        elif ratio > was * WORSE:
            found.append(f"{part}: {name} is {ratio:.2f}, kept is {was:.2f}")
    return found


def main() -> int:
    """Measure, then keep or compare; 1 where the check failed."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--check", action="store_true", help="keep nothing; fail where a ratio got worse")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]}; known: {', '.join(PARTS)}")
    before, failed = kept(), []
    for part in options.parts or [part for part in PARTS if part not in LONG]:
        log.info("%s ...", part)
        now = figures(part)
        for name, ratio in now.get("ratios", {}).items():
            was = before.get(part, {}).get("ratios", {}).get(name)
            log.info("  %s: %.2f%s", name, ratio, "" if was is None else f" (kept: {was:.2f})")
        if options.check:
            failed += worse(part, now, before.get(part, {}))
        else:
            keep(part, now)
    for line in failed:
        log.error("WORSE %s", line)
    if not options.check:
        log.info("%s", OUT.relative_to(PROJECT))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
