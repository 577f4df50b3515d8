"""Train the router and tell what it is worth on sets held out: `python -m scripts.routing EVALUATION...`.

An EVALUATION is a folder that `python -m core eval SET --routes rerank,... --out DIR` wrote; its name is the
set's. What routes scored there is what they are chosen by: to try another candidate, evaluate it on the same
questions beside `rerank` and give that folder too. Questions have their kind by their mode; those of a set
without modes are all of one (`--kind CORPUS=KIND`). Writes data/routers/adaptive.json, with `--own`
HOME/routers/adaptive.json, which goes first; with `--dry` nothing. Questions of split test are left alone
unless `--test` is given.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from core.backends.question_classifier import CLASSES, SHIPPED, QuestionClass, trained
from core.backends.trained_files import write_trained
from core.domain import settings
from core.domain.errors import BadInput, RouteScopeError
from core.domain.format import ProgressBar
from core.engine.engine import Engine
from core.evaluation import experiment_store
from scripts.router_cases import cases, check
from scripts.router_training import Against, Judged, document, held_out_table, report, train


def kinds_of(given: list[str]) -> Mapping[str, QuestionClass]:
    """CORPUS=KIND as a mapping; BadInput for what is none."""
    found: dict[str, QuestionClass] = {}
    for one in given:
        name, _, kind = one.partition("=")
        if not name or kind not in CLASSES:
            raise BadInput(f"--kind {one!r}: expected CORPUS=KIND with a kind of {', '.join(CLASSES)}")
        found[name] = cast("QuestionClass", kind)
    return found


def lines_of(judged: list[Judged], rows: list[Against], routes: Mapping[str, list[str]]) -> list[str]:
    """The tables of a report, for people."""
    lines = ["What the questions of each set were taken for while it was held out:"]
    for row in held_out_table(judged):
        taken = ", ".join(f"{name} {count}" for name, count in row.taken.items())
        ends = f" [{row.right.ci95[0]:.2f}, {row.right.ci95[1]:.2f}]" if row.right.ci95 else ""
        lines.append(f"  {row.set}, {row.kind}: {row.right.mean:.2f}{ends} of {row.right.n} right ({taken})")
    lines += ["", "What the router was worth there, routes chosen on the other sets:"]
    for one in rows:
        at = one.standing
        told = [
            f"{name} {shown.mean:+.3f} {_ends(shown.ci95)}"
            for name, shown in (
                ("against rerank", at.gain),
                ("regret, best single route", at.regret),
                ("regret, oracle", at.oracle_regret),
            )
        ]
        given = ", ".join(f"{name} {count}" for name, count in one.given.items())
        lines.append(
            f"  {one.set} ({at.n}): router {at.router:.3f}, rerank {at.default:.3f}, {at.best} "
            f"{at.single:.3f}, oracle {at.oracle:.3f}; {'; '.join(told)}; given to {given}"
        )
    lines += ["", "Routes that the other sets had chosen:"]
    lines += [f"  {name}: {', '.join(some) or 'rerank for all'}" for name, some in routes.items()]
    return lines


def _ends(ci95: tuple[float, float] | None) -> str:
    return f"[{ci95[0]:+.3f}, {ci95[1]:+.3f}]" if ci95 else ""


def main() -> None:
    """Print the tables of the sets held out, and write the classifier trained on all of them."""
    parser = argparse.ArgumentParser(description="Train the router.")
    parser.add_argument("evaluations", nargs="+", type=Path, help="folders of evaluations")
    parser.add_argument(
        "--kind", action="append", default=[], metavar="CORPUS=KIND", help="kind of questions"
    )
    parser.add_argument("--own", action="store_true", help="for this home alone")
    parser.add_argument("--test", action="store_true", help="train on questions of split test, too")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    given = parser.parse_args()
    engine = Engine(settings.load(route_timeout_s=3600))
    bar = ProgressBar("q")
    found = cases(
        engine,
        [experiment_store.opened(folder) for folder in given.evaluations],
        kinds_of(given.kind),
        bar,
        test=given.test,
    )
    check(found)
    judged, rows, routes = report(found)
    classifier = train(found)
    held = [
        {"set": row.set, "kind": row.kind, "right": row.right.mean, "ci95": row.right.ci95, "n": row.right.n}
        for row in held_out_table(judged)
    ]
    made = {**classifier.made, "held out": held, "regret held out": document(rows)}
    classifier = replace(classifier, made=made)
    if given.json:
        sys.stdout.write(json.dumps({"made": made, "routes": routes}, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(lines_of(judged, rows, routes)) + "\n")
        sys.stdout.write(f"\nAUC held out: {classifier.made['AUC held out']}\nnot told: {made['not told']}\n")
        for kind, some in classifier.routes.items():
            sys.stdout.write(f"{kind}: {', '.join(f'{one.route} {one.gain:+.3f}' for one in some)}\n")
    if not given.dry:
        path = trained(engine.settings.home) if given.own else SHIPPED
        write_trained(classifier, path)
        sys.stderr.write(f"written: {path}\n")


if __name__ == "__main__":
    try:
        main()
    except RouteScopeError as error:
        raise SystemExit(str(error)) from None
