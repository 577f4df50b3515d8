"""One question under each chunking: what is read with the budget, with the labelled text marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.corpus.source import key_of
from core.domain.errors import BadInput
from core.domain.types import Hit, Passage
from core.evaluation.chunkings.coverage import COVERAGE, Area, Tokens, passage_by_passage, ranges
from core.evaluation.chunkings.measuring import FOLDER
from core.evaluation.chunkings.report import Values
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import count
from ui.app import opening, say, state
from ui.app.choice import choice
from ui.app.evaluated import opened
from ui.app.markup import cut, fragment, join, show, tag
from ui.app.names import named
from ui.app.routes import title
from ui.components import tables

ROUTE, QUESTION = "evaluate_chunkings_route", "evaluate_chunkings_question"
Places = Sequence[Area]


def draw(
    evaluation: Evaluation,
    figures: Mapping[str, Any],
    values: Mapping[str, Values],
    places: Mapping[str, Mapping[str, Places]],
) -> None:
    """Draw the questions, those on which chunkings differ most first, and the chosen one."""
    st.subheader("One question", anchor=False)
    route = choice("route", ROUTE, "Route", list(figures["routes"]), format_func=title, width=280)
    names = [name for name in figures["chunkings"] if route in values.get(name, {})]
    by = {
        id: {name: values[name][route].get(id, {}).get(COVERAGE) for name in names}
        for id in places[figures["base"]]
        if id in evaluation.questions and any(id in values[name][route] for name in names)
    }
    if not by:
        st.info("No question was measured with this route.")
        return
    known = {id: [value for value in row.values() if value is not None] for id, row in by.items()}
    spread = {id: max(row, default=0.0) - min(row, default=0.0) for id, row in known.items()}
    ids = sorted(by, key=lambda id: -spread[id])
    picked = tables.pick(
        [
            {
                "Question": cut(evaluation.questions[id].query.text, 240),
                "Best to worst": spread[id],
                **{figures["chunkings"][name]["chunking"]: value for name, value in by[id].items()},
            }
            for id in ids
        ],
        ids,
        f"evaluate_chunkings_questions:{evaluation.name}:{route}",
        "Questions by how much their coverage differs between chunkings",
    )
    st.caption(f"Coverage by {figures['budget']:,} tokens. Select a row to see its question.")
    chosen = tables.keep_pick(picked, "question", QUESTION, ids, ids[0]) or ids[0]
    own = {name: (name if name in places else figures["base"]) for name in names}
    placed = {name: places[corpus][chosen] for name, corpus in own.items()}
    _side_by_side(evaluation, figures, own, route, chosen, placed)


def _side_by_side(
    evaluation: Evaluation,
    figures: Mapping[str, Any],
    own: Mapping[str, str],
    route: str,
    question: str,
    placed: Mapping[str, Places],
) -> None:
    """Draw each chunking; `own` names the corpus by whose text its places are given."""
    show(fragment("evaluate.question", evaluation.questions[question], [], "", [], []))
    columns = []
    for name, corpus in own.items():
        opening.wait_for(corpus)
        texts, hits = Tokens(state.engine().corpus(corpus)), _hits(evaluation, name, question, route)
        why, drawn, before = (hits, [], 0.0) if isinstance(hits, str) else ("", [], 0.0)
        if not isinstance(hits, str):
            read = passage_by_passage(ranges(placed[name], texts), [texts.of(hit.passage) for hit in hits])
            for hit, (tokens, upto) in zip(hits, read, strict=False):
                text = marked(hit.passage, placed[name])
                drawn.append((named(name, hit.passage), hit.passage, tokens, upto - before, text))
                before = upto
        columns.append((figures["chunkings"][name]["chunking"], why, drawn))
    show(fragment("evaluate.chunked", columns))
    places = placed[next(iter(own))]
    documents = sorted({place.doc for place in places if not place.lost})
    more = " and more" if len(documents) > 5 else ""
    say.caption(f"Marked: labelled text, {count(len(places), 'places')} in {', '.join(documents[:5])}{more}.")


def _hits(evaluation: Evaluation, name: str, question: str, route: str) -> Sequence[Hit] | str:
    """Return the route's hits over a chunking, or why they are not known."""
    key = key_of(name)
    folder = evaluation.folder / FOLDER / key if key else evaluation.folder
    try:
        run = opened(folder).run(question)
    except BadInput as error:
        return str(error)
    found = next((result for result in run.results if result.route == route), None)
    return found.hits if found is not None else f"{title(route)} was not asked"


def marked(passage: Passage, places: Places) -> Markup | None:
    """Return the text with its labelled parts marked, or None if it has none."""
    spans = sorted(
        (max(place.start, passage.start) - passage.start, min(place.end, passage.end) - passage.start)
        for place in places
        if place.doc == passage.doc_id and place.start < passage.end and place.end > passage.start
    )
    if not spans:
        return None
    parts: list[object] = []
    at = 0
    for start, end in spans:
        if end > at:
            parts += [passage.text[at : max(at, start)], tag("mark", passage.text[max(at, start) : end])]
            at = end
    return join([*parts, passage.text[at:]])
