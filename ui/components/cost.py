"""The Cost tab: each route's language model calls, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from core.analysis.token_usage import Prices, Totals, add, price, totals
from core.domain.format import milliseconds
from core.domain.models import PARAMETER
from core.domain.types import RouteResult, Run
from ui.app import state
from ui.app.markup import EMPTY, join, tag

HOW = "set llm_price_prompt and llm_price_completion, the prices per million tokens, to see costs"


def costs(run: Run) -> Markup:
    """Return the finding in words and a row for each route, most tokens first."""
    found = [(result, totals(result)) for result in run.results if result.spans]
    found.sort(key=lambda one: (-one[1].tokens, -one[1].calls, one[0].ms))
    if not found:
        return tag("div", "No route in this run did any work.", css="rs dim")
    prices = {result.route: _prices(run, result) for result, _ in found}
    priced = any(None not in one for one in prices.values())
    heads = ["Calls", "Prompt", "Cached prompt", "Completion", "Reasoning", "Reused calls", "Time alone"]
    if priced:
        heads += ["Price", "Of it reasoning"]
    head = tag("tr", tag("th", "Route"), *(tag("th", text, css="num") for text in heads))
    rows = [_row(result, used, prices[result.route], priced) for result, used in found]
    spent = add(used.spent for _, used in found)
    cost = _sum(price(used.spent, *prices[result.route]) for result, used in found)
    thought = _sum(price(_reasoning(used.spent), *prices[result.route]) for result, used in found)
    total = _cells("Total for this run", spent, "", milliseconds(run.wall_ms))
    foot = tag("tr", *total, _price(cost, priced), _price(thought, priced))
    table = tag("table", tag("thead", head), tag("tbody", *rows), tag("tfoot", foot), css="rs-table rs-costs")
    return tag(
        "div", tag("p", describe_costs(found)), tag("div", table, css="rs-wide"), _notes(not priced), css="rs"
    )


def describe_costs(found: list[tuple[RouteResult, Totals]]) -> str:
    """Name the route that uses most tokens and count those without calls; `found` is sorted by tokens."""
    asking = [(result, used) for result, used in found if used.calls]
    if not asking:
        return "No route in this run called a language model."
    result, used = asking[0]
    calls = "1 call" if used.calls == 1 else f"{used.calls} calls"
    most = f"{result.title} uses the most: {used.tokens:,} tokens in {calls}."
    quiet = len(found) - len(asking)
    return f"{most} {quiet} of {len(found)} routes call no language model." if quiet else most


def _prices(run: Run, result: RouteResult) -> Prices:
    """Return the prices stored with the run for the route's model, or the current ones."""
    stored = run.settings.get("models")
    one = stored.get(str(result.parameters.get(PARAMETER, ""))) if isinstance(stored, dict) else None
    if isinstance(one, dict) and isinstance(given := one.get("prices"), list) and len(given) == 2:
        return given[0], given[1]
    now = state.engine().settings
    return now.llm_price_prompt, now.llm_price_completion


def _sum(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the known costs, or None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _reasoning(used: Totals) -> Totals:
    """Return the reasoning tokens alone, which are priced as completion."""
    return Totals(completion=used.reasoning)


def _row(result: RouteResult, used: Totals, prices: Prices, priced: bool) -> Markup:
    parts = {"shared": used.shared_calls, "stored": used.stored_calls}
    reused = ", ".join(f"{count} {kind}" for kind, count in parts.items() if count)
    paid = [_price(price(one, *prices), priced) for one in (used, _reasoning(used))]
    return tag("tr", *_cells(result.title, used, reused, milliseconds(result.ms)), *paid)


def _cells(name: str, used: Totals, reused: str, took: str) -> list[Markup]:
    numbers = [used.calls, used.prompt, used.cached_prompt, used.completion, used.reasoning]
    shown = [*(f"{number:,}" if number else "–" for number in numbers), reused or "–", took]
    return [tag("td", name), *(tag("td", text, css="num") for text in shown)]


def _price(cost: float | None, priced: bool) -> Markup:
    if not priced:
        return EMPTY
    return tag("td", "–" if cost is None else money(cost), css="num")


def money(cost: float) -> str:
    """Format an amount in the currency of the prices, with enough digits for a fraction of a cent."""
    return f"{cost:.2f}" if cost >= 1 or cost == 0 else f"{cost:.4g}"


def _notes(unpriced: bool) -> Markup:
    notes = [
        "Prompt and completion are in tokens, for each route as if it ran alone. Shared calls were made by"
        " another route of this run. Stored calls came from the cache or a recording. The total leaves out"
        " both and shows the time of the whole run. Reasoning is the part of the completion that a model"
        " spent before its answers; it is paid as completion."
    ]
    if unpriced:
        notes.append(f"Prices are not set: {HOW}.")
    else:
        notes.append("Cached prompt tokens count at the full price.")
    return tag("div", join(notes, " "), css="dim")
