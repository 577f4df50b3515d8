"""`hubs`: which passages are returned for many questions, and which for none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.cli.asked_corpus import with_questions
from core.cli.commands import COLUMNS, command
from core.cli.common import emit, table, working
from core.domain.text import one_line
from core.engine import engine as engines
from core.evaluation import hubs
from core.evaluation.spec import option
from core.evaluation.templating import say


@command("hubs")
def hubs_(
    corpus: str,
    questions: tuple[Path, ...] = option((), "As of `eval`, labelled; repeatable.", "FILE"),
    columns: Mapping[str, str] = COLUMNS,
) -> None:
    """List hubs, the passages returned for many questions, and those never returned.

    A sentence of each passage is asked, up to 2,000, by words and by vectors. With labelled questions, those
    of `--questions` or of the corpus, it also names the relevant passages that hubs keep out of the first 10,
    and measures what taking the hubs out of the rankings changes.
    """
    _, opened, labelled = with_questions(corpus, questions, columns)
    with working() as (bar, stop):
        document = hubs.find(engines.shared_engine(), opened, labelled, progress=bar, cancel=stop)
    emit(document, _text(document))


def _text(document: Mapping[str, Any]) -> str:
    """Format the hubs of each search for people."""
    heads = ("returned for", "displaces", "passage", "title")
    grids = {
        name: table(
            heads,
            [
                (one["returned"], one["displaces"], one["passage"], one_line(one["title"]))
                for one in search["hubs"]
            ],
        )
        for name, search in document["searches"].items()
    }
    return say("commands.hubs", document, grids)
