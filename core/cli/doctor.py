"""`doctor`: checks of what works on this machine, with fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from core.cli.commands import command
from core.cli.common import emit, note
from core.domain.text import one_line
from core.evaluation.spec import option

if TYPE_CHECKING:
    from core.engine.endpoints import ChatEndpoint, EndpointReport


@command("doctor")
def doctor_(quick: bool = option(False, "Load no model.")) -> int:
    """Check this installation and show a fix for each problem."""
    from core.domain import settings
    from core.engine.doctor import examine
    from core.engine.endpoints import chat_endpoints, service_reports
    from core.routes import registry

    now = settings.current()
    registry.use(now)
    found = list(examine(now, quick=quick, note=lambda what: note(f"checking {what}")))
    chat = chat_endpoints(now, quick=quick, note=lambda what: note(f"checking {what}"))
    answers = {check.name: check.state for check in found}.get("model answers")
    chat = [
        replace(
            one, state="ok" if answers == "ok" else "failed", tested={**one.tested, "chat": answers == "ok"}
        )
        if one.address == "embedded" and one.name == "llm" and answers is not None
        else one
        for one in chat
    ]
    healthy = all(check.state != "failed" for check in found)
    tested = service_reports(now, quick=quick)
    document = {
        "ok": healthy,
        "checks": [asdict(check) for check in found],
        "endpoints": [*map(asdict, chat), *map(asdict, tested)],
    }
    marks = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED "}
    lines = []
    for check in found:
        lines.append(f"{marks[check.state]}  {one_line(check.name)}: {one_line(check.detail)}")
        lines += [f"         -> {one_line(check.fix)}"] if check.fix else []
    lines += [_endpoints(chat), "", *map(_endpoint, tested)]
    emit(document, lambda: "\n".join(lines))
    return 0 if healthy else 1


def _endpoints(found: Sequence[ChatEndpoint]) -> str:
    """Each chat model with what was tested, what it rejects and the routes that feel it."""
    from core.engine.endpoints import line

    lines = ["", "Chat models:"]
    for one in found:
        lines.append(line(one))
        told = {True: "yes", False: "no", None: "not known"}
        facts = [
            f"{name} {told[value] if value is None or value is True or value is False else value}"
            for name, value in one.tested.items()
        ]
        lines += [f"  tested: {', '.join(facts)}"] if facts else []
        lines += [f"  it rejects {name}: {why}" for name, why in one.rejected.items()]
        lines += [
            f"  {what}: {len(names)} routes ({', '.join(names)})" for what, names in one.affected.items()
        ]
    return "\n".join(one_line(line) if line else line for line in lines)


def _endpoint(tested: EndpointReport) -> str:
    """Format a line for an embedder or reranker, and the routes affected if it fails."""
    words = {True: "works", False: "does not work", None: "not tested"}
    told = ", ".join(
        f"{name} {words[value]}" if value is None or isinstance(value, bool) else f"{name} {value}"
        for name, value in tested.tested.items()
        if not (name == "dimension" and value is None)
    )
    mark = "WARNING" if tested.error else "ok     "
    what = one_line(f"{tested.kind} {tested.name} ({tested.model}, {tested.address}): {told}")
    if not tested.error:
        return f"{mark}  {what}"
    affected = f"{len(tested.routes)} routes use it, such as {', '.join(tested.routes[:3])}"
    return f"{mark}  {what}\n         -> {one_line(tested.error)}; {affected}"
