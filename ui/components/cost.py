"""The Cost tab: what each route asked of language models, and what that costs."""

from __future__ import annotations

from markupsafe import Markup

from core.analysis.token_usage import Totals, add, price, totals
from core.domain.format import milliseconds
from core.domain.types import RouteResult, Run
from ui.app import state
from ui.app.markup import EMPTY, join, tag

HOW = "set llm_price_prompt and llm_price_completion, the prices of a million tokens, to see money"


def costs(run: Run) -> Markup:
    """The finding in words, then a row a route, the most tokens first."""
    found = [(result, totals(result)) for result in run.results if result.spans]
    found.sort(key=lambda one: (-one[1].tokens, -one[1].calls, one[0].ms))
    if not found:
        return tag("div", "No route of this run did any work.", css="rs dim")
    prices = state.engine().settings.llm_price_prompt, state.engine().settings.llm_price_completion
    heads = ["Calls", "Prompt", "of it cached", "Completion", "Reused calls", "Alone"]
    if None not in prices:
        heads.append("Price")
    head = tag("tr", tag("th", "Route"), *(tag("th", text, css="num") for text in heads))
    rows = [_row(result, used, price(used, *prices)) for result, used in found]
    spent = add(used.spent for _, used in found)
    foot = tag("tr", *_cells("Asked of a model in this run", spent, "", milliseconds(run.wall_ms)),
               _price(price(spent, *prices)))  # fmt: skip
    table = tag("table", tag("thead", head), tag("tbody", *rows), tag("tfoot", foot), css="rs-table rs-costs")
    return tag(
        "div", tag("p", in_words(found)), tag("div", table, css="rs-wide"), _notes(None in prices), css="rs"
    )


def in_words(found: list[tuple[RouteResult, Totals]]) -> str:
    """Which route asks most of a model, and how many ask nothing; `found` has the most tokens first."""
    asking = [(result, used) for result, used in found if used.calls]
    if not asking:
        return "No route of this run asked a language model."
    result, used = asking[0]
    calls = "1 call" if used.calls == 1 else f"{used.calls} calls"
    said = f"{result.title} takes the most: {used.tokens:,} tokens in {calls}."
    quiet = len(found) - len(asking)
    return f"{said} {quiet} of {len(found)} routes ask no language model." if quiet else said


def _row(result: RouteResult, used: Totals, cost: float | None) -> Markup:
    parts = {"shared": used.shared_calls, "stored": used.stored_calls}
    reused = ", ".join(f"{count} {kind}" for kind, count in parts.items() if count)
    return tag("tr", *_cells(result.title, used, reused, milliseconds(result.ms)), _price(cost))


def _cells(name: str, used: Totals, reused: str, took: str) -> list[Markup]:
    numbers = [used.calls, used.prompt, used.cached_prompt, used.completion]
    shown = [*(f"{number:,}" if number else "–" for number in numbers), reused or "–", took]
    return [tag("td", name), *(tag("td", text, css="num") for text in shown)]


def _price(cost: float | None) -> Markup:
    return EMPTY if cost is None else tag("td", money(cost), css="num")


def money(cost: float) -> str:
    """An amount in the currency of the prices, with digits enough for a fraction of a cent."""
    return f"{cost:.2f}" if cost >= 1 or cost == 0 else f"{cost:.4g}"


def _notes(unpriced: bool) -> Markup:
    said = [
        "Prompt and completion are tokens; each route as if it ran alone. Reused calls: shared, another route"
        " of the run made them; stored, the answer came from the cache or a recording. The last line leaves"
        " them out; its time is the run's."
    ]
    if unpriced:
        said.append(f"Prices are not told: {HOW}.")
    else:
        said.append("Cached prompt tokens are priced in full.")
    return tag("div", join(said, " "), css="dim")
