"""Screenshots of each page into var/screenshots: `python -m scripts.screenshots`.

Serves the app on a free port, asks a sample question, and takes each page at 1440 and 900 px, light and dark.
The pictures that docs/ has are replaced by the new ones of the same name.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from core.domain.settings import PROJECT
from scripts.serving import served

DOCS, FOLDER = PROJECT / "docs", PROJECT / "var" / "screenshots"
ALL_FOUR = 3  # views that are taken at both widths in both themes
BY_HAND = "pipelines-beside-ours-1440-light.png"  # which needs three more packages
KEPT = "support"  # the evaluation and the label set that are shown
QUESTION = "Can I get a refund if my perishable item spoils after 48 hours?"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


def measure() -> None:
    """An evaluation and a label set of support to show; those that are there already stay."""
    from core.domain import settings
    from core.evaluation import experiment_store
    from core.evaluation.labels import desk
    from core.store import Store

    now = settings.current()
    core = [sys.executable, "-m", "core"]
    if KEPT not in experiment_store.names(now):
        subprocess.run([*core, "eval", "support", "--split", "all", "--keep", KEPT], cwd=PROJECT, check=True)
    with closing(Store(now.home / "routescope.sqlite")) as store:
        known = {one.name for one in desk.sets(store)}
    if KEPT not in known:
        subprocess.run([*core, "labels", "create", KEPT, "--corpus", "support"], cwd=PROJECT, check=True)
        subprocess.run([*core, "labels", "pool", KEPT, "--evaluation", KEPT], cwd=PROJECT, check=True)


def settle(page: Page) -> None:
    """Wait until the page has nothing to do, and what it follows in the background has ended."""
    page.wait_for_timeout(600)
    page.wait_for_selector("[data-testid=stMain] [data-testid=stProgress]", state="detached", timeout=120_000)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_selector("[data-testid=stSkeleton]", state="detached")  # a first figure loads its library
    page.wait_for_timeout(400)


def ask(browser: Browser, address: str) -> str:
    """Run the question with every route; the path of its link."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.goto(f"{address}/?corpus=support&q={quote(QUESTION)}")
    page.wait_for_selector("textarea")
    settle(page)
    page.click("textarea")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[data-testid=stTabs]", timeout=600_000)
    settle(page)
    path = page.url.removeprefix(address)
    page.close()
    return path


def shoot(browser: Browser, address: str, views: dict[str, str], folder: Path) -> None:
    """Each view at 1440 px light and 900 px dark, the first three also the other way; tabs once."""
    for width, scheme in ((1440, "light"), (1440, "dark"), (900, "light"), (900, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
        mixed = (width, scheme) in ((1440, "dark"), (900, "light"))
        for name, path in list(views.items())[: ALL_FOUR if mixed else None]:
            page = context.new_page()
            page.goto(address + path)
            page.wait_for_selector("[data-testid=stSidebarNav]", state="attached")
            settle(page)
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
            tabs = page.locator("[data-testid=stMain] [data-testid=stTab]")
            for number in range(1, tabs.count() if (width, scheme) == (1440, "light") else 0):
                tabs.nth(number).click()
                settle(page)
                label = "-".join(tabs.nth(number).inner_text().lower().split())
                page.screenshot(path=folder / f"{name}-{label}-{width}-{scheme}.png", full_page=True)
            page.close()
        context.close()


def smaller(file: Path) -> None:
    """The picture in 256 colours: a third of the bytes, and no difference to be seen on flat pages."""
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


def main() -> None:
    """Take all screenshots."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    measure()
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        with served() as (address, _):
            asked = ask(browser, address)
            run = asked.partition("?")[2]
            views = {"start": "/", "compare": asked, "why": f"/why?{run}"}
            about = ("Transform", "Fusion", "Evaluators")
            views |= {name.lower(): f"/steps?{run}&view={name}" for name in about}
            views["latency"] = f"/latency?{run}"
            kept = urlencode({"evaluation": KEPT, "baseline": "hybrid_rrf"})
            views |= {name: f"/{name}?{kept}" for name in ("evaluate", "tune", "release")}
            sweep = urlencode({"evaluation": KEPT, "tab": "Sweeps", "route": "hybrid_rrf"})
            views |= {"sweep": f"/tune?{sweep}"}
            views |= {"label": f"/label?{urlencode({'set': KEPT})}"}
            views |= {name: f"/{name}" for name in ("sessions", "corpus", "settings", "help")}
            samples = urlencode({"playlist": "Sample questions of support", "play": 1, "at": 2})
            views |= {"playlists": "/present", "present": f"/present?{samples}"}
            shoot(browser, address, views, FOLDER)
        browser.close()
    for file in DOCS.glob("*.png"):
        if file.name != BY_HAND:
            shutil.copy(FOLDER / file.name, file)
            smaller(file)


if __name__ == "__main__":
    main()
