"""Refusals are told from answers."""

import pytest

from core.backends.llm.text import looks_refused


@pytest.mark.parametrize(
    "text",
    [
        "As an AI language model, I don't have access to real-time order data.",
        "I’m sorry, but I can’t assist with that request.",
        "I apologize, but I am unable to help you with your order.",
        "My apologies, but I am not able to look that up.",
        "I can't help with that.",
        '"I am unable to answer this question."',
        "Unfortunately, I cannot access your order.",
        "I'm an AI assistant and do not place orders.",
        "I am just a large language model.",
        "I don't have access to the shop's database.",
        "I do not have personal experience with carriers.",
        "Well, as a language model I would say no.",
    ],
)
def test_refusals(text: str) -> None:
    assert looks_refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "You cannot return perishable items after 48 hours.",
        "What do I do when I cannot find my order number?",
        "I cannot find my tracking number. What should I do?",
        "We are sorry that your box arrived crushed. Take a photo within 48 hours.",
        "Sorry for the delay: parcels are held at customs until I receive the invoice.",
        "Customers who are unable to provide a receipt get store credit.",
        "The assistant cannot help with legal questions.",
        "I want to return an item that I cannot use.",
        "How can AI models help with peak-season forecasts?",
    ],
)
def test_answers(text: str) -> None:
    assert not looks_refused(text)
