"""`doctor`: checks of what works on this machine, with fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from core.cli.commands import command
from core.cli.common import emit, note
from core.domain import settings
from core.engine.doctor import examine
from core.engine.endpoints import chat_endpoints, line, service_reports
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.routes import registry


@command("doctor")
def doctor_(quick: bool = option(False, "Load no model.")) -> int:
    """Check this installation and show a fix for each problem."""
    now = settings.current()
    registry.use(now)
    found = list(examine(now, quick=quick, note=lambda what: note(f"checking {what}")))
    chat = chat_endpoints(now, quick=quick, note=lambda what: note(f"checking {what}"))
    answers = {check.name: check.state for check in found}.get("model answers")
    for at, one in enumerate(chat):
        if one.address == "embedded" and one.name == "llm" and answers is not None:
            works = answers == "ok"
            chat[at] = replace(one, state="ok" if works else "failed", tested={**one.tested, "chat": works})
    healthy = all(check.state != "failed" for check in found)
    tested = service_reports(now, quick=quick)
    document = {
        "ok": healthy,
        "checks": [asdict(check) for check in found],
        "endpoints": [*map(asdict, chat), *map(asdict, tested)],
    }
    marks = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED "}
    emit(document, say("commands.doctor", document, [(one, line(one)) for one in chat], marks, _facts))
    return 0 if healthy else 1


def _facts(tested: Mapping[str, Any]) -> str:
    words = {"True": "yes", "False": "no", "None": "not known"}
    return ", ".join(f"{name} {words.get(str(value), value)}" for name, value in tested.items()) or "nothing"
