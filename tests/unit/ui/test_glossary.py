"""The Glossary, and the "?" marks that lead to it."""

import ast
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from core.analysis.metrics import METRICS
from core.routes.registry import routes
from ui.app import glossary, help_mark
from ui.app.glossary import TERMS, of_metric, of_source

ROOT = Path(__file__).resolve().parents[3]
MARKS = {"term": 0, "mark": 0, "marked": 1}  # the argument that is the key


def used():
    """(file, key) of every mark whose key is written out."""
    for path in sorted([*(ROOT / "ui").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            at = MARKS.get(name)
            if at is not None and len(node.args) > at and isinstance(node.args[at], ast.Constant):
                yield path.name, node.args[at].value


def test_every_mark_has_a_term():
    found = list(used())
    assert len({path for path, _ in found}) > 12
    assert [one for one in found if one[1] not in TERMS] == []
    assert set(glossary.METRICS.values()) <= set(TERMS)


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_a_term_is_one_sentence_with_its_source(term):
    assert re.fullmatch(r"[A-Z].+\.", term.sentence)
    assert not re.search(r"[.!?] [A-Z]", term.sentence), "one sentence"
    assert re.search(r"\b(19|20)\d\d\b", term.source), "a source has its year"
    assert term.source.count(",") >= 1
    to = urlsplit(term.url)
    assert (to.scheme, bool(to.netloc)) == ("https", True)


def test_no_two_terms_share_a_name():
    for text in (lambda one: one.key.lower(), lambda one: one.name.lower(), lambda one: one.sentence):
        assert len({text(one) for one in TERMS.values()}) == len(TERMS)


def test_marks_lead_to_their_term_and_say_it_at_once():
    to = urlsplit(help_mark.address("Cohen's kappa"))
    assert (to.path, parse_qs(to.query)) == ("help", {"tab": ["Glossary"], "term": ["Cohen's kappa"]})
    html = help_mark.mark("nDCG")
    assert 'href="help?tab=Glossary&amp;term=nDCG"' in html
    assert "Adds up the relevance grades" in html
    assert help_mark.term("nDCG", "Of <b>all</b> questions.").startswith("Of \\<b\\>all")
    assert help_mark.term("nDCG").endswith("[Glossary](help?tab=Glossary&term=nDCG)")
    assert "&lt;img&gt;" in help_mark.marked("<img>", None)
    with pytest.raises(KeyError):
        help_mark.mark("nothing like this")


def test_every_metric_of_rankings_and_the_method_of_a_route_are_explained():
    assert {metric: of_metric(metric) for metric in METRICS if of_metric(metric) is None} == {}
    assert of_metric("d_z") is None
    assert of_source("Gao et al. 2022, arXiv:2212.10496, section 3") == "HyDE"
    assert of_source("Nobody 2022, arXiv:2212.1049") is None
    assert of_source(None) is None
    explained = [route for route in routes().values() if of_source(route.paper)]
    assert len(explained) > len(routes()) // 2
