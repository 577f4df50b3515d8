"""What a model thought: folded where its reply is shown, escaped, and counted on the Cost tab."""

from dataclasses import replace

import pytest

from core.domain.background_job import jobs
from core.domain.outputs import Reply
from core.domain.types import Run, Tokens
from tests.pages.reading import html
from tests.runs import HOSTILE, make_run
from ui.components.rewrites import texts


def thinking(run: Run) -> Run:
    """The run as if every reply had come after hostile reasoning."""
    results = []
    for result in run.results:
        spans = [
            replace(
                span, output=replace(span.output, reasoning=HOSTILE[0]), tokens=Tokens(2000, 1500, 0, 1234)
            )
            if isinstance(span.output, Reply)
            else span
            for span in result.spans
        ]
        wrote = next((span.id for span in spans if isinstance(span.output, Reply)), None)
        results.append(
            replace(result, spans=tuple(spans), answer="As said [1]." if wrote else None, answer_span=wrote)
        )
    return replace(run, corpus="tiny", results=tuple(results))


@pytest.fixture
def thought(engine):
    run = thinking(make_run(run_id="thought", mishaps=False))
    engine.store.save(run)
    assert engine.store.flush()
    jobs.clear()
    return run


@pytest.mark.parametrize("tab", ["Trace", "Answers"])
def test_reasoning_is_folded_and_escaped(visit, thought, tab):
    page = html(visit(run=thought.id, tab=tab))
    assert 'class="rs-thought"' in page
    assert "1,234 tokens" in page
    assert "&lt;img src" in page
    assert "<img" not in page
    assert 'class="rs-thought" open' not in page


def test_reasoning_stands_by_the_rewrite_it_led_to(thought):
    page = str(texts(thought, 10))
    assert page.count('class="rs-thought"') >= 1
    assert "<img" not in page


def test_the_cost_tab_tells_reasoning_apart_in_tokens_and_price(visit, thought, engine):
    replies = sum(isinstance(span.output, Reply) for one in thought.results for span in one.spans)
    assert replies > 0
    page = html(visit(run=thought.id, tab="Cost"))
    assert "Reasoning" in page
    assert "1,234" in page
    priced = {"llm_price_prompt": 1.0, "llm_price_completion": 1000.0}
    engine.settings = engine.settings.model_copy(update=priced)
    assert "Of it reasoning" in html(visit(run=thought.id, tab="Cost"))
