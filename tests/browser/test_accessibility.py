"""Every page by axe-core in both themes, and the main work of Compare, Why and Label by keyboard alone."""

from importlib.resources import files

import pytest

from tests.browser.acting import MAIN, eventually, settle, text

pytestmark = [pytest.mark.browser, pytest.mark.enable_socket]
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Faults in markup that Streamlit writes and we cannot change: rule, selector of what holds the fault, why.
STREAMLIT = (
    ("list", "[data-testid=stSidebarNavItems]", "the groups of the navigation are divs inside its list"),
    ("listitem", "[data-testid=stSidebarNavItems]", "so its items do not stand in the list themselves"),
    ("color-contrast", "[data-testid=stWidgetLabel][disabled]", "the label of a disabled field is exempt"),
    ("color-contrast", "[data-testid=stCode] .token", "the colours are those of its syntax highlighter"),
)
PAGES = (
    "/",
    "/?run=good",
    "/why?run=good",
    "/steps?view=Transform&run=good",
    "/steps?view=Fusion&run=good",
    "/steps?view=Graph&run=good",
    "/steps?view=Evaluators&run=good",
    "/latency?run=good",
    "/label?set=decide",
    "/evaluate?evaluation=decided",
    "/tune?evaluation=decided",
    "/release?evaluation=decided",
    "/sessions",
    "/present",
    "/corpus",
    "/settings",
    "/help",
)
# What axe finds to be serious or critical and is not excluded, one line an element.
FINDINGS = """async ([rules, excluded]) => {
  const found = await axe.run(document, {runOnly: rules, resultTypes: ['violations'], elementRef: true})
  const ours = (id, node) =>
    !excluded.some(([rule, css]) => rule === id && (node.element.closest(css) || node.element.matches(css)))
  return found.violations.flatMap(({id, nodes}) => nodes
    .filter(node => ['serious', 'critical'].includes(node.impact) && ours(id, node))
    .map(node => `${id}: ${node.html.slice(0, 200)} ${node.failureSummary.split('\\n').slice(1).join(' ')}`))
}"""


def faults(page, *, rule=None):
    """What axe finds on the page as it is; of one rule, or of all."""
    rules = {"type": "rule", "values": [rule]} if rule else {"type": "tag", "values": WCAG}
    return page.evaluate(FINDINGS, [rules, [[rule, css] for rule, css, _ in STREAMLIT]])


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_in_any_view_of_a_page(tab, kept, path):
    page = tab(path)
    settle(page)
    page.evaluate(AXE)
    tabs = page.locator(f"{MAIN} [data-testid=stTab]")
    found = []
    for number in range(max(1, tabs.count())):
        page.emulate_media(color_scheme="light")
        if number:
            tabs.nth(number).click()
        settle(page)
        found += [f"tab {number}, light, {fault}" for fault in faults(page)]
        page.emulate_media(color_scheme="dark")
        settle(page)
        found += [f"tab {number}, dark, {fault}" for fault in faults(page, rule="color-contrast")]
    assert found == []


def reach(page, css, presses=150):
    """Press Tab until an element is focused that the selector matches; one of ours shows that it is."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.evaluate("css => document.activeElement.matches(css)", css):
            break
    focused = page.locator(":focus")
    assert focused.evaluate("(e, css) => e.matches(css)", css), f"Tab does not reach {css}"
    shows = focused.evaluate("e => !e.closest('.rs') || getComputedStyle(e).outlineStyle !== 'none'")
    assert shows, f"the focus on {css} does not show"
    return focused


def test_a_passage_is_opened_in_compare_by_keyboard(tab):
    page = tab("/?run=good&tab=Columns")
    settle(page)
    reach(page, ".rs-grid")
    summary = reach(page, ".rs-hit > summary")
    page.keyboard.press("Enter")
    assert summary.evaluate("e => e.parentElement.open")
    assert page.locator(".rs-hit[open] .full").first.is_visible()


def test_the_passage_and_the_depth_are_changed_in_why_by_keyboard(tab):
    page = tab("/why?run=good")
    settle(page)
    assert page.locator("h3.rs-part").count() == 0, "no passage is followed before one is chosen"
    reach(page, "input[aria-label*='Passage']")
    page.keyboard.press("ArrowDown")
    page.locator("[role=option]").first.wait_for()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("h3.rs-part").first.wait_for()
    settle(page)
    reach(page, "[data-testid=stButtonGroup] :is(button, input)")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    eventually(page, lambda: "in their top 5" in text(page))
    reach(page, "details.rs-why-none > summary")


def test_a_passage_is_read_and_graded_in_label_by_keyboard(tab, labels):
    page = tab(f"/label?set={labels}&annotator=tabber")
    settle(page)
    passage = reach(page, ".rs-label-passage")
    assert passage.get_attribute("role") == "region"
    before = passage.inner_text()
    reach(page, ".rs-label-passage .stored > summary")
    page.keyboard.press("Enter")
    assert page.locator(".rs-label-passage .stored .raw").is_visible()
    reach(page, f"{MAIN} [class*=st-key-label_grade_2] button")
    page.keyboard.press("Enter")
    eventually(page, lambda: "Saved" in page.locator(".rs-label-saved").inner_text())
    eventually(page, lambda: page.locator(".rs-label-passage").inner_text() != before)
