"""The page Glossary."""

from markupsafe import escape

from tests.pages.reading import html, shown
from ui.app.glossary import TERMS


def test_it_lists_every_term_once_with_its_sentence_and_source(visit):
    page = html(visit("help.py", tab="Glossary"))
    for term in TERMS.values():
        assert page.count(f"<dd>{escape(term.sentence)}") == 1
        assert f'href="{escape(term.url)}" target="_blank">{escape(term.source)}</a>' in page


def test_an_address_puts_its_term_first(visit):
    app = visit("help.py", tab="Glossary", term="hyde")
    first, rest = (element.proto.body for element in app.main.get("html"))
    assert 'id="term-hyde"' in first
    assert first.count("<dt>") == 1
    assert 'id="term-hyde"' not in rest
    assert rest.count("<dt>") == len(TERMS) - 1


def test_an_unknown_term_is_said_as_text(visit):
    app = visit("help.py", tab="Glossary", term="<img src=x>")
    assert "The Glossary has no term “<img src=x>”" in shown(app)
    assert html(app).count("<dt>") == len(TERMS)
