"""Whatever documents, questions, people, models and errors say: on every page it is text and nothing else."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from core.domain.types import Query, Turn
from core.evaluation.dataset import Question
from core.evaluation.labels import desk
from core.store import PlaylistEntry, presets
from core.store.labels import Judgement, Pooled
from tests.pages.reading import html, shown
from tests.runs import HOSTILE
from ui.app.glossary import TERMS
from ui.app.help_mark import address

pytestmark = pytest.mark.trust

RUNS = "script iframe object embed form img svg link meta base video audio"
NEVER = set(RUNS.split())
ABOUT_A_RUN = (
    "compare.py",
    "why.py",
    "steps.py?view=Transform",
    "steps.py?view=Fusion",
    "steps.py?view=Evaluators",
    "latency.py",
)
NAME = f"{HOSTILE[1][:30]}<img src=x>"  # where a name may have 64 characters

# The "?" that lead to the Glossary, and the sources it names.
MARKS = {address(key) for key in TERMS} | {term.url for term in TERMS.values()}


class Faults(HTMLParser):
    """What of a page's HTML could run, load or lead elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.found, self.inside = [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        if tag in NEVER:
            self.found.append(tag)
        for name, value in attributes:
            if name.startswith("on") or (
                name == "style" and re.search(r"url\(|expression|@import", value or "")
            ):
                self.found.append((tag, name, value))
            leads = name in ("href", "src", "action", "srcset", "formaction")
            if leads and not (value or "").startswith("#") and value not in MARKS:
                self.found.append((tag, name, value))

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "style" and re.search(r"url\(|@import|</", data):
            self.found.append(data)


def faults(app):
    """What is wrong with a page: in its HTML, and in what is read as markdown."""
    found = Faults(html(app)).found
    specs = "".join(one.proto.spec for one in app.main.get("plotly_chart"))
    found += [f"{mark} in a chart" for mark in ("<img", "<script", "<svg") if mark in specs]
    kinds = ("markdown", "caption", "info", "success", "warning", "error", "subheader", "title", "header")
    for kind in kinds:
        for element in getattr(app, kind):
            live = re.sub(r"\\.", "", element.value)  # what is left without escapes is markup
            found += [live for mark in ("![", "](", "<img", "<script", "<svg", ":red[") if mark in live]
            if getattr(element.proto, "allow_html", False):
                found.append(f"{kind} reads HTML")
    return found


@pytest.fixture
def hostile(engine, stored):
    """Hostile text wherever somebody can write some; the run of it is "evil"."""
    store, evil = engine.store, stored["evil"]
    answered = tuple(
        replace(one, answer=f"{HOSTILE[n % 4]} [1] {HOSTILE[2]}", title=f"{one.title} {HOSTILE[n % 4]}")
        if one.status == "ok"
        else replace(one, error=HOSTILE[n % 4])
        for n, one in enumerate(evil.results)
    )
    query = Query(f"{HOSTILE[0]} {HOSTILE[1]}", (Turn("user", HOSTILE[2]), Turn("assistant", HOSTILE[3])))
    worst = replace(
        evil, id="worst", query=query, results=answered, settings={**evil.settings, "llm": HOSTILE[1]}
    )
    store.save(worst)
    store.flush()
    store.tag("worst", [NAME, "<svg onload=alert(1)>"])
    store.note("worst", "\n".join(HOSTILE))
    store.save_playlist(
        NAME,
        [PlaylistEntry(HOSTILE[0], "tiny", "worst", note=HOSTILE[1]), PlaylistEntry(HOSTILE[1], HOSTILE[2])],
    )
    desk.create(
        store, NAME, "tiny", [Question("q <b>", query, "plain", "dev", HOSTILE[1])], guidelines=HOSTILE[2]
    )
    pool = [Pooled(passage, (("bm25", 1),)) for passage in list(evil.passages.values())[:6]]
    desk.add_to_pool(store, NAME, {"q <b>": pool})
    for who in ("<img src=a>", NAME):
        given = [
            Judgement("q <b>", one.passage.id, who, "person", "grade", len(who) % 4, HOSTILE[1])
            for one in pool
        ]
        desk.judge_all(store, NAME, given)
    presets.save(store, presets.Preset(NAME, "tiny", {"hybrid_rrf": {"k": 10}}, 0.7, HOSTILE[0]))
    store.remember("demo", [Turn("user", HOSTILE[0]), Turn("assistant", HOSTILE[1])])
    return "worst"


def tabs(app):
    """The labels of a page's tabs; one without tabs is one view."""
    return [None, *(tab.label for tab in app.tabs[1:])]


def look(visit, page, **view):
    """Every tab of a page: nothing breaks, nothing runs."""
    first = visit(page, **view)
    for label in tabs(first):
        app = first if label is None else visit(page, **view, tab=label)
        assert not app.exception, (page, label)
        assert faults(app) == [], (page, label)
    return first


@pytest.mark.parametrize("page", ABOUT_A_RUN)
@pytest.mark.parametrize("density", ["M", "L"])
def test_a_run_of_hostile_text_is_text_on_every_page_about_it(visit, hostile, page, density):
    app = look(visit, page, run=hostile, density=density, depth="50")
    assert "alert(1)" in html(app) + shown(app)


def test_hostile_sessions_are_listed_and_compared(visit, hostile):
    app = look(visit, "sessions.py")
    assert HOSTILE[0] in "".join(app.dataframe[0].value["Question"])
    look(visit, "sessions.py", search=HOSTILE[0])
    look(visit, "sessions.py", a=hostile, b="good")


def test_hostile_names_and_notes_of_people_are_text(visit, hostile):
    for at in ("1", "2"):
        look(visit, "present.py", playlist=NAME, play="1", at=at)
    look(visit, "present.py", playlist=NAME)
    look(visit, "label.py", set=NAME, annotator=NAME)
    look(visit, "compare.py", corpus="tiny", q=HOSTILE[0])


@pytest.mark.parametrize("page", ["settings.py", "help.py", "evaluate.py", "tune.py", "release.py"])
def test_other_pages_beside_hostile_sessions_are_as_ever(visit, hostile, page):
    look(visit, page, run=hostile)


@pytest.mark.parametrize("page", [*ABOUT_A_RUN, "sessions.py", "present.py", "label.py", "evaluate.py"])
def test_a_hostile_address_is_told_as_text(visit, stored, page):
    names = ("run", "passage", "route", "tab", "baseline", "playlist", "set", "evaluation", "again", "corpus")
    for n, name in enumerate(names):
        app = visit(page, **{name: HOSTILE[n % len(HOSTILE)]})
        assert not app.exception
        assert faults(app) == [], (page, name)
