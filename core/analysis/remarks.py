"""Remarks on a ranking: why BM25 found nothing, why the list ends, which passages were inserted, and what was
embedded while a question waited.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.analysis.run_view import recorded
from core.domain.needs import Need
from core.domain.outputs import FiltersRead, Inserted, Merging, Rerank, ScoreCut, Search
from core.domain.program import COMMAND
from core.domain.types import RouteResult, Span
from core.steps.rerank import READ_THEN
from core.steps.retrieve import EMBEDDED_NOW


def remarks(result: RouteResult, corpus: str) -> list[str]:
    """Return remarks in the order of the steps, each once."""
    searches = [one.output for one in recorded(result.spans, Search)]
    empty = [
        f"{'Grep' if search.model == 'grep' else 'BM25'} found nothing: {search.unfound}"
        for search in searches
        if search.unfound
    ]
    return list(dict.fromkeys([*empty, *_changed(result), *_made_now(result.spans, corpus)]))


def prepared_by(spans: Iterable[Span]) -> tuple[Need, ...]:
    """Return the enrichments that would have held ready what the steps embedded at the question."""
    found: dict[Need, None] = {}
    for span in spans:
        if span.attributes.get(READ_THEN):
            found[Need.TOKENS] = None
        elif made := span.attributes.get(EMBEDDED_NOW):
            found[Need[made["ready"].upper()]] = None
    return tuple(found)


def command(needs: Iterable[Need], corpus: str) -> str:
    """Return the command that makes them."""
    return f"{COMMAND} index {corpus} --with {','.join(need.name.lower() for need in needs)}"


def _changed(result: RouteResult) -> list[str]:
    """Return remarks on the steps that truncated the list, and on the ranks of inserted passages."""
    said = []
    for span in result.spans:
        output = span.output
        if isinstance(output, ScoreCut) and output.drop:
            least = ", the least that is kept" if output.guarded else ""
            drop = f"the largest drop of scores, {output.size:.3g}, comes after rank {output.drop}"
            said.append(f"The list ends after {output.kept} passages{least}: {drop}")
        elif isinstance(output, Inserted) and output.ids:
            ranks = [at for at, hit in enumerate(result.hits, 1) if hit.passage.id in output.ids]
            said.append(f"Unrelated passages, drawn at random: ranks {', '.join(map(str, ranks))}")
        elif isinstance(output, FiltersRead):
            said += _filters(output)
        elif isinstance(output, Rerank) and output.unmoved:
            said.append(f"Not reordered: {output.unmoved}")
        elif isinstance(output, Merging):
            whole = [str(at) for at, one in enumerate(output.passages, 1) if not one.text]
            said.append(
                f"Read whole, as more than {output.share:.0%} of their pieces were found: "
                f"{'ranks ' + ', '.join(whole) if whole else 'no passage'}; of others the pieces found"
            )
    return said


def _filters(read: FiltersRead) -> list[str]:
    """Return the conditions that a question named, and those that are not used."""
    used = [
        f"{one.filter} ({one.passages:,} of {read.of:,} passages)" for one in read.found if not one.dropped
    ]
    dropped = [f"Filter {one.filter} is dropped: {one.dropped}" for one in read.found if one.dropped]
    if not used:
        return [*dropped, "Searched without a filter" + (": the question names none" if not dropped else "")]
    left = f", together {read.left:,}" if len(used) > 1 else ""
    return [f"Filters read from the question: {', '.join(used)}{left}", *dropped]


def _made_now(spans: tuple[Span, ...], corpus: str) -> list[str]:
    needs = prepared_by(spans)
    if not needs:
        return []
    tokens = sum(span.attributes.get(READ_THEN, 0) for span in spans)
    texts = sum(one["texts"] for span in spans if (one := span.attributes.get(EMBEDDED_NOW)))
    made = [f"token vectors of {tokens} passages"] if tokens else []
    made += [f"{texts} pieces of passages"] if texts else []
    return [f"Embedded while the question waited: {', '.join(made)}. To prepare: {command(needs, corpus)}"]
