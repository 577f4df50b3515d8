"""The "?" beside a term: its sentence from the Glossary, and the way there."""

from __future__ import annotations

from urllib.parse import urlencode

from markupsafe import Markup

from ui.app.glossary import TERMS, of_metric
from ui.app.markup import md, tag

# Relative, so that it holds below any base path; pages are one level deep. It opens in a new tab, because
# leaving a page loses what was chosen on it.
PAGE = "glossary"


def address(key: str) -> str:
    """Where the Glossary explains a term; KeyError for a key that it does not have."""
    return f"{PAGE}?{urlencode({'term': TERMS[key].key})}"


def term(key: str, more: str = "") -> str:
    """Markdown for the `help` of a widget, metric or column: `more`, the term's sentence, and the link."""
    help_text = " ".join(part for part in (md(more), md(TERMS[key].sentence)) if part)
    return f"{help_text} [Glossary]({address(key)})"


def mark(key: str) -> Markup:
    """The "?" for our own HTML."""
    one = TERMS[key]
    return tag(
        "a",
        "?",
        css="rs-term",
        href=address(key),
        target="_blank",
        title=one.sentence,
        aria_label=f"{one.name}, in the Glossary",
    )


def marked(text: object, key: str | None) -> Markup:
    """`text` with its "?" behind it, or alone where there is no term."""
    return tag("span", text, " ", mark(key), css="nowrap") if key else tag("span", text)


def metric(name: str) -> str | None:
    """Help for a metric by its name ("ndcg@10"); None where the Glossary has none."""
    key = of_metric(name)
    return term(key) if key else None
