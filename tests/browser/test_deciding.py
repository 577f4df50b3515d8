"""From labels to a decision in a real browser: an evaluation begun and left alone, its pages, and Why."""

import time

import pytest
from bs4 import BeautifulSoup

from core.domain import settings
from core.evaluation import experiment_store
from tests.browser.acting import MAIN, eventually, failures, reopened_alike, settle, text, views
from tests.browser.conftest import ASKED

pytestmark = [pytest.mark.browser, pytest.mark.enable_socket]


@pytest.mark.parametrize("path", ["/label?set=decide", "/evaluate", "/tune", "/release"])
def test_every_view_of_every_page_is_there_and_fits(tab, kept, path):
    page = tab(f"{path}{'&' if '?' in path else '?'}evaluation={kept}", width=900, scheme="dark")
    settle(page)
    for _ in views(page):
        assert failures(page) == []
        assert len(text(page)) > 80
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.locator(".rs :is(img, script, iframe, object, embed, form)").count() == 0
    assert page.locator(f"{MAIN} [data-testid=stTab]").count() >= 3


@pytest.mark.parametrize("path", ["/evaluate", "/release"])
def test_a_figure_is_above_the_fold(tab, kept, path):
    page = tab(f"{path}?evaluation={kept}")
    settle(page)
    assert page.locator(f"{MAIN} .js-plotly-plot").first.bounding_box()["y"] < 700


def test_a_click_on_a_route_opens_its_questions(tab, kept):
    page = tab(f"/evaluate?evaluation={kept}")
    settle(page)
    point = page.locator(".js-plotly-plot .points path").first.bounding_box()
    at = point["x"] + point["width"] / 2, point["y"] + point["height"] / 2
    page.mouse.move(*at)
    page.locator(".js-plotly-plot .hoverlayer .hovertext").wait_for()
    page.mouse.click(*at)
    eventually(page, lambda: "tab=Questions" in page.url)
    settle(page)
    assert failures(page) == []
    assert page.locator(f"{MAIN} [data-testid=stTabPanel] details").count() >= len(ASKED)


@pytest.mark.trust
@pytest.mark.parametrize("path", ["/evaluate", "/tune", "/release"])
def test_the_link_to_a_view_reopens_it(tab, kept, path):
    page = tab(f"{path}?evaluation={kept}")
    settle(page)
    reopened_alike(page, tab)


@pytest.mark.trust
def test_an_evaluation_goes_on_without_its_tab(tab, labels, home):
    page = tab(f"/evaluate?labels={labels}")
    settle(page)
    name = page.get_by_label("Name", exact=True)
    name.fill("left-alone")
    name.press("Tab")
    settle(page)
    page.locator(".st-key-ev_begin button").click()
    folder = experiment_store.place(settings.load(home=home), "left-alone")
    eventually(page, (folder / experiment_store.LABELLED).is_file, 60)
    page.context.close()  # the tab is closed as soon as it has begun
    for _ in range(1200):
        if (folder / experiment_store.FIGURES).is_file():
            break
        time.sleep(0.1)
    evaluation = experiment_store.opened(folder)
    assert len(evaluation.outcomes) == len(ASKED)
    again = tab("/evaluate?evaluation=left-alone")
    settle(again)
    eventually(again, lambda: "leads with" in text(again))
    assert failures(again) == []


def test_a_question_of_an_evaluation_opens_in_why(tab, kept):
    page = tab(f"/evaluate?evaluation={kept}&tab=Questions&question=crushed")
    settle(page)
    page.locator(f"{MAIN} button", has_text="Why").first.click()
    page.wait_for_url("**/why?*run=*")
    settle(page)
    eventually(page, lambda: "What do I do with a crushed box?" in text(page))
    assert failures(page) == []
    assert "◆ 3" in text(page), "the grade that a person gave"


def test_the_decision_is_told_and_its_report_runs_nothing(tab, kept, tmp_path):
    page = tab(f"/release?evaluation={kept}&minimum=0.1")
    settle(page)
    eventually(page, lambda: "Not enough evidence" in text(page) or "Ship " in text(page))
    tabs = page.locator(f"{MAIN} [data-testid=stTab]")
    tabs.filter(has_text="Report").click()
    settle(page)
    with page.expect_download() as given:
        page.locator(f"{MAIN} [data-testid=stDownloadButton] button").first.click()
    report = tmp_path / "report.html"
    given.value.save_as(report)
    elements = BeautifulSoup(report.read_text(encoding="utf-8"), "html.parser").find_all()
    assert not {one.name for one in elements} & {"script", "img", "iframe", "link", "object", "embed"}
    assert not [name for one in elements for name in one.attrs if name.startswith("on")]
    tabs.filter(has_text="Python module").click()
    eventually(page, lambda: "def ask(question" in text(page))
