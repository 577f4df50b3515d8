"""The annotator's view of a passage: readable type, with the question's words lightly marked."""

from __future__ import annotations

from markupsafe import Markup

from core.analysis.term_contributions import Marker
from core.domain.relevance import is_unmatched
from core.evaluation.dataset import Question
from core.store.labels import Pooled
from ui.app.markup import fragment
from ui.app.names import named
from ui.app.routes import title
from ui.components.hits import marked
from ui.components.markdown import is_markdown, rendered
from ui.components.passage import analyzer_of


def passage(corpus: str, question: Question, one: Pooled, *, routes: bool) -> Markup:
    """Return the passage; the text of a Markdown file is rendered, with its source on demand.

    Without `routes`, it does not show which or how many routes found it, as that would bias the annotator.
    """
    read, markdown = one.passage, is_markdown(one.passage.doc_id)
    words = Marker(question.query.text, (), analyzer_of(corpus))
    body = rendered(read.text, words) if markdown else marked(read.text, words)
    ranks = sorted((rank, title(route)) for route, rank in one.found) if routes else None
    outside = is_unmatched(read.id)
    return fragment("label.passage", named(corpus, read), read, outside, body, markdown, ranks)
