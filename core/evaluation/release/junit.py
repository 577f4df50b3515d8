"""A decision as JUnit XML, which every build system reads: a test for each criterion and each question."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

from core.evaluation.diff.evaluations import passage_change
from core.evaluation.release.gate import SHOWN, Decision
from core.evaluation.release.snapshot import Against
from core.evaluation.templating import say

State = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Case:
    """A test case; `told` is shown if it did not pass, its first line also as the message."""

    name: str
    state: State
    told: str = ""


def junit(decision: Decision, against: Against | None = None) -> str:
    """Return the XML file: the decision and the criteria of the route to ship (the nearest if none passes),
    the complaints, and every question compared with the earlier release; a broken one fails.
    """
    suites = {f"gate {decision.name}": list(_decision(decision))}
    if decision.regressions is not None:
        states: dict[str, State] = {"passed": "passed", "broken": "failed"}
        suites[f"regressions {decision.regressions.name}"] = [
            Case(f"{one.question}: {one.text}", states.get(one.state, "skipped"), one.in_words())
            for one in decision.regressions.results
        ]
    if against is not None:
        suites[f"against {against.name}"] = list(_against(against))
    root = ET.Element("testsuites", _counts([one for cases in suites.values() for one in cases]))
    for name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": _clean(name), **_counts(cases)})
        for one in cases:
            case = ET.SubElement(
                suite, "testcase", {"classname": _clean(name), "name": _clean(one.name), "time": "0"}
            )
            if one.state != "passed":
                kind = "failure" if one.state == "failed" else "skipped"
                message = _clean(one.told.partition("\n")[0])
                ET.SubElement(case, kind, {"message": message}).text = _clean(one.told)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _decision(decision: Decision) -> Iterator[Case]:
    yield Case("a route passes", _passed(decision.chosen is not None), "\n".join(decision.sentences))
    route = decision.of(decision.shown)
    for check in route.checks:
        limit, missing = (say(f"decision.{name}", check) for name in ("limit", "missing"))
        why = f"{route.title} ({route.route}): {SHOWN.get(check.state, check.state)}. {missing}"
        name = f"{route.route}: {check.name}{f', {limit}' if limit else ''}"
        yield Case(name, _passed(check.state == "passed"), why)


def _against(against: Against) -> Iterator[Case]:
    states: dict[str, State] = {"excluded": "passed", "shown": "failed"}
    told = "\n".join([against.summary, *against.notes])
    yield Case("no regression", states.get(against.regression, "skipped"), told)
    if against.max_broken is not None:
        name = f"at most {against.max_broken} questions broke"
        yield Case(name, _passed(not against.too_many_broken), "\n".join(against.notes))
    for one in against.questions.questions if against.questions is not None else ():
        lost = "\n".join(passage_change(passage) for passage in one.lost)
        yield Case(f"{one.id}: {one.text}", _passed(one.change != "broken"), lost)


def _passed(passed: bool) -> State:
    return "passed" if passed else "failed"


def _counts(cases: list[Case]) -> dict[str, str]:
    def of(state: str) -> str:
        return str(sum(one.state == state for one in cases))

    return {"tests": str(len(cases)), "failures": of("failed"), "errors": "0", "skipped": of("skipped")}


def _clean(text: str) -> str:
    """Without control, format and unassigned characters: XML 1.0 (section 2.2) forbids many of them."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
