"""The part of `index` and `corpora` that is about enrichments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from core.cli.common import ProgressBar, note, stoppable
from core.domain.format import size

if TYPE_CHECKING:
    from core.corpus.catalogue import Known
    from core.corpus.corpus import Corpus
    from core.corpus.embedding_cost import Begin
    from core.corpus.enrichments.store import Made
    from core.corpus.helpers import Helpers
    from core.domain.settings import Settings


def names(given: str, settings: Settings) -> list[str]:
    """Return the enrichments of "a,b"; for "all" those that ask no language model and whose own model is set.

    Raises BadInput for others.
    """
    from core.corpus.enrichments import store

    wanted = [name.strip() for name in given.split(",") if name.strip()]
    if wanted == ["all"]:
        return [
            name
            for name, recipe in store.RECIPES.items()
            if not recipe.uses_llm and store.no_model(name, settings) is None
        ]
    return [store.recipe(name).name for name in dict.fromkeys(wanted)]


def make(
    corpus: Corpus,
    wanted: Sequence[str],
    settings: Settings,
    helping: Helpers | None = None,
    begin: Begin | None = None,
) -> list[Made]:
    """Make them, with progress on stderr; Ctrl-C stops at a safe point."""
    from core.corpus.enrichments import store

    made = []
    for name in wanted:
        bar = ProgressBar("")
        label = f"{corpus.name}, {name}"
        progress = partial(_show, bar, label)
        note(f"{label}: takes about {size(store.about_bytes(name, corpus, settings))} on disk")
        with stoppable() as cancel:
            found = store.build(
                name,
                corpus,
                settings=settings,
                cancel=cancel,
                progress=progress,
                helpers=helping,
                begin=begin,
            )
        bar.close()
        for remark in found.notes:
            note(f"{label}: {remark}")
        made.append(found)
    return made


def _show(bar: ProgressBar, label: str, stage: str, done: int, total: int) -> None:
    bar(f"{label}: {stage}", done, total)


def in_words(made: Made) -> str:
    """Summarise an enrichment and its cost in one line."""
    took = sum(made.build_ms.values()) / 1000
    spent = made.spent
    model = (
        f"; {made.llm}: {spent.calls:,} calls ({spent.recalled:,} recalled, {spent.failed:,} failed),"
        f" {spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens, {spent.ms / 1000:,.0f} s of its time"
        if made.llm
        else ""
    )
    by = f" by {made.model}" if made.model else ""
    return (
        f"{made.corpus}, {made.name}: {made.entries:,} entries{by}, {size(made.bytes)}, {took:.1f} s{model}"
    )


def states(known: Known, settings: Settings) -> dict[str, str]:
    """For each enrichment that was made: "ready", or why it cannot be used."""
    from core.corpus.enrichments import store

    return {
        name: store.missing(name, known.name, known.fingerprint, settings) or "ready"
        for name in store.RECIPES
        if store.describe(name, known.name, settings) is not None
    }
