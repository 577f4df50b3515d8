"""The Cost tab: each route's language model calls, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from core.analysis.token_usage import Prices, Totals, add, price, totals
from core.domain.format import milliseconds
from core.domain.models import PARAMETER
from core.domain.types import RouteResult, Run
from core.evaluation.finding import count
from ui.app import state
from ui.app.markup import table, tag

HOW = "set llm_price_prompt and llm_price_completion, the prices per million tokens, to see costs"


def costs(run: Run) -> Markup:
    """Return the finding in words and a row for each route, most tokens first."""
    found = [(result, totals(result)) for result in run.results if result.spans]
    found.sort(key=lambda one: (-one[1].tokens, -one[1].calls, one[0].ms))
    if not found:
        return tag("div", "No route in this run did any work.", css="rs dim")
    if not found[0][1].calls:
        return tag("div", tag("p", describe_costs(found)), css="rs")
    prices = [_prices(run, result) for result, _ in found]
    priced = any(None not in one for one in prices)
    heads = ["Route", "Calls", "Prompt", "Cached prompt", "Completion", "Reasoning", "Reused calls"]
    heads += ["Time alone", *(["Price", "Of it reasoning"] if priced else [])]
    rows, paid = [], []
    for (result, used), one in zip(found, prices, strict=True):
        parts = {"shared": used.shared_calls, "stored": used.stored_calls}
        reused = ", ".join(f"{calls} {kind}" for kind, calls in parts.items() if calls)
        paid.append(_costs(used.spent, one))
        rows.append(_cells(result.title, used, reused, result.ms, _costs(used, one) if priced else ()))
    known = [[one for one in column if one is not None] for column in zip(*paid, strict=True)]
    total = [sum(column) if column else None for column in known] if priced else ()
    foot = _cells("Total for this run", add(used.spent for _, used in found), "", run.wall_ms, total)
    made = table(heads, rows, numbers=range(1, len(heads)), css="rs-costs", foot=foot)
    notes = (
        "Tokens of each route as if it ran alone. Shared calls were made by another route, stored ones came"
        " from the cache or a recording; the total leaves out both. Reasoning is paid as completion. "
    ) + ("Cached prompt tokens count at the full price." if priced else f"Prices are not set: {HOW}.")
    lead, body = tag("p", describe_costs(found)), tag("div", made, css="rs-wide")
    return tag("div", lead, body, tag("div", notes, css="dim"), css="rs")


def describe_costs(found: list[tuple[RouteResult, Totals]]) -> str:
    """Name the route that uses most tokens and count those without calls; `found` is sorted by tokens."""
    asking = [(result, used) for result, used in found if used.calls]
    if not asking:
        return "No route in this run called a language model."
    result, used = asking[0]
    most = f"{result.title} uses the most: {used.tokens:,} tokens in {count(used.calls, 'calls')}."
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


def _costs(used: Totals, prices: Prices) -> tuple[float | None, float | None]:
    """Return the price of all tokens, and of the reasoning tokens alone, which are priced as completion."""
    return price(used, *prices), price(Totals(completion=used.reasoning), *prices)


def _cells(name: str, used: Totals, reused: str, ms: float, paid: Iterable[float | None]) -> list[str]:
    numbers = [used.calls, used.prompt, used.cached_prompt, used.completion, used.reasoning]
    shown = [f"{number:,}" if number else "–" for number in numbers]
    return [name, *shown, reused or "–", milliseconds(ms), *("–" if c is None else money(c) for c in paid)]


def money(cost: float) -> str:
    """Format an amount in the currency of the prices, with enough digits for a fraction of a cent."""
    return f"{cost:.2f}" if cost >= 1 or cost == 0 else f"{cost:.4g}"
