"""`doctor`: checks of what works on this machine, with fixes."""

from __future__ import annotations

import threading
from dataclasses import asdict

from core.cli.commands import command
from core.cli.common import emit, note
from core.domain import settings
from core.engine.doctor import examine, of_endpoint
from core.engine.endpoints import endpoints, try_endpoint
from core.engine.engine import Engine
from core.evaluation.spec import option
from core.evaluation.templating import say


@command("doctor")
def doctor_(quick: bool = option(False, "Load no model.")) -> int:
    """Check this installation and show a fix for each problem."""
    now = settings.current()
    engine, stop = Engine(now), threading.Event()
    found = examine(now, quick=quick, note=lambda what: note(f"checking {what}"))
    checks, reports = list(found), []
    for one in endpoints(now):
        note(f"checking {one.title}")
        brief = one.address == "embedded"  # what it can do is known
        reports.append(one if quick else try_endpoint(engine, one, lambda *_: None, stop, brief=brief))
    checks += [of_endpoint(one, now) for one in reports if one.known]
    healthy = all(check.state != "failed" for check in checks)
    document = {
        "ok": healthy,
        "checks": [asdict(check) for check in checks],
        "endpoints": [asdict(one) for one in reports if one.known],
    }
    marks = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED "}
    emit(document, say("commands.doctor", document, marks))
    return 0 if healthy else 1
