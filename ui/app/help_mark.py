"""The "?" next to a term: its sentence from the Glossary, and a link there."""

from __future__ import annotations

from urllib.parse import urlencode

from markupsafe import Markup

from ui.app.glossary import TERMS, of_metric
from ui.app.markup import fragment, md, tag

# Relative, so that it holds below any base path; pages are one level deep. It opens in a new tab, because
# leaving a page loses what was chosen on it.
PAGE = "help"


def address(key: str) -> str:
    """Return the Glossary's address for a term. Raises KeyError for an unknown key."""
    return f"{PAGE}?{urlencode({'tab': 'Glossary', 'term': TERMS[key].key})}"


def term(key: str, more: str = "") -> str:
    """Return Markdown for a widget's or column's `help`: `more`, the term's sentence and a link."""
    help_text = " ".join(part for part in (md(more), md(TERMS[key].sentence)) if part)
    return f"{help_text} [Glossary]({address(key)})"


def mark(key: str) -> Markup:
    """Return the "?" as HTML."""
    return fragment("app.mark", TERMS[key], address(key))


def marked(text: object, key: str | None) -> Markup:
    """Return `text` followed by its "?", or only `text` if `key` is None."""
    return tag("span", text, " ", mark(key), css="nowrap") if key else tag("span", text)


def metric(name: str) -> str | None:
    """Return help for a metric by its name ("ndcg@10"), or None if the Glossary has no term for it."""
    key = of_metric(name)
    return term(key) if key else None
