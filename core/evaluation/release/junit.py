"""A decision as JUnit XML, which every build system reads: a test for each criterion and each question."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

from core.evaluation.diff.evaluations import passage_change
from core.evaluation.diff.questions import QuestionDiff
from core.evaluation.release import text as words
from core.evaluation.release.against import Against, Regression
from core.evaluation.release.gate import Decision
from core.evaluation.release.regressions import Regressions
from core.evaluation.release.rule import SHOWN


@dataclass(frozen=True, slots=True)
class Case:
    """A test case; `told` is shown if it did not pass, its first line also as the message."""

    name: str
    state: Literal["passed", "failed", "skipped"]
    told: str = ""


def junit(decision: Decision, against: Against | None = None) -> str:
    """Return the XML file: the decision and the criteria of the route to ship (the nearest if none passes),
    the complaints, and every question compared with the earlier release; a broken one fails.
    """
    suites = {f"gate {decision.name}": list(_decision(decision))}
    if decision.regressions is not None:
        suites[f"regressions {decision.regressions.name}"] = list(_regressions(decision.regressions))
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
    told = "\n".join(words.every(decision))
    yield Case("a route passes", "passed" if decision.chosen is not None else "failed", told)
    route = decision.of(decision.shown)
    for check in route.checks:
        why = f"{route.title} ({route.route}): {SHOWN.get(check.state, check.state)}. {words.missing(check)}"
        limit = words.limit(check)
        name = f"{route.route}: {check.name}{f', {limit}' if limit else ''}"
        yield Case(name, "passed" if check.state == "passed" else "failed", why)


def _regressions(found: Regressions) -> Iterator[Case]:
    states: dict[str, Literal["passed", "failed", "skipped"]] = {"passed": "passed", "broken": "failed"}
    for one in found.results:
        yield Case(f"{one.question}: {one.text}", states.get(one.state, "skipped"), one.in_words())


def _against(against: Against) -> Iterator[Case]:
    states: dict[Regression, Literal["passed", "failed", "skipped"]] = {
        "excluded": "passed",
        "shown": "failed",
        "undecided": "skipped",
    }
    yield Case("no regression", states[against.regression], "\n".join([against.summary, *against.notes]))
    if against.max_broken is not None:
        state: Literal["passed", "failed"] = "failed" if against.too_many_broken else "passed"
        yield Case(f"at most {against.max_broken} questions broke", state, "\n".join(against.notes))
    for one in against.questions.questions if against.questions is not None else ():
        yield Case(f"{one.id}: {one.text}", "failed" if one.change == "broken" else "passed", _broken(one))


def _broken(one: QuestionDiff) -> str:
    return "\n".join(passage_change(passage) for passage in one.lost)


def _counts(cases: list[Case]) -> dict[str, str]:
    def of(state: str) -> str:
        return str(sum(one.state == state for one in cases))

    return {"tests": str(len(cases)), "failures": of("failed"), "errors": "0", "skipped": of("skipped")}


def _clean(text: str) -> str:
    """Without control, format and unassigned characters: XML 1.0 (section 2.2) forbids many of them."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
