"""Exact terms in real-looking questions, both ways, and in the labelled ones."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.steps.gate import exact_terms

DATA = Path(__file__).resolve().parents[3] / "data"

EXACT = [
    ("What does error LP-4092 mean?", "code", "LP-4092"),
    ("where is rma-754336", "code", "rma-754336"),
    ("Is SKU LRK-TX-308 in stock?", "code", "LRK-TX-308"),
    ("A customer gives me tracking BWX558201404.", "code", "BWX558201404"),
    ("our ZT411 prints blanks", "code", "ZT411"),
    ("summary of INC-2025-0421 please", "code", "INC-2025-0421"),
    ("which fields does ISO 20022 have", "code", "ISO 20022"),
    ("customs says code H3", "code", "code H3"),
    ("it shows error 91 at the till", "code", "error 91"),
    ("What is the status of order #48291?", "number", "#48291"),
    ("card 4111 1111 1111 1111 was refused", "number", "4111 1111 1111 1111"),
    ("call me at +49 341 555 0199", "number", "+49 341 555 0199"),
    ("session 550e8400-e29b-41d4-a716-446655440000 hangs", "uuid", "550e8400-e29b-41d4-a716-446655440000"),
    ("commit e83c5163 broke the label", "code", "e83c5163"),
    ("does v2.3 still sign with SHA1?", "version", "v2.3"),
    ("Firmware 84.20.18 on the printers?", "version", "84.20.18"),
    ("is version 7 supported", "version", "version 7"),
    ("What is in the idempotency_records table?", "name", "idempotency_records"),
    ("LedgerHashBroken alert what now", "name", "LedgerHashBroken"),
    ("what does Refund() return", "name", "Refund()"),
    ("why is retryAfter missing", "name", "retryAfter"),
    ("np.linalg.norm of a row", "name", "np.linalg.norm"),
    ("Larkfield-Signature header format", "name", "Larkfield-Signature"),
    ("Who may release held orders on 10 December 2026?", "date", "10 December 2026"),
    ("payouts of 2026-03-14", "date", "2026-03-14"),
    ("shipped 03.11.2026, not here", "date", "03.11.2026"),
    ("will it come by May 2", "date", "May 2"),
    ("is there duty on a €45.50 lamp", "price", "€45.50"),
    ("the 800 dollar limit", "price", "800 dollar"),
    ('the page says "card declined by issuer"', "quoted", '"card declined by issuer"'),
    ("what does 'awaiting pick' mean", "quoted", "'awaiting pick'"),
    ("POST /refunds gives nothing", "path", "POST /refunds"),
    ("who owns /v1/payouts/batch", "path", "/v1/payouts/batch"),
    ("https://status.example.com/incidents is down", "address", "https://status.example.com/incidents"),
    ("mail from claims@example.com", "address", "claims@example.com"),
    ("10.20.30.40 does not answer", "address", "10.20.30.40"),
]
LOOSE = [
    "How long are idempotency keys kept in payment-service?",
    "Can I return it within 2 days?",
    "Is the 24-hour window counted from delivery?",
    "What changed in 2025?",
    "How many shipments were late in March 2026?",
    "the 1990s lamp",
    "Does a 40 kg table need two people?",
    "60x40x30 cm carton",
    "What happens with 100000 customers?",
    "What's 15 percent of 240?",
    "I got this error 24 hours ago",
    "Is there a 3-year guarantee or a 30-day return?",
    "Is Postgres or DynamoDB the better choice?",
    "can't the drivers' vans wait, that's the customers' wish",
    "the parcel(s) and/or item(s)",
    "open 24/7, e.g. at 5 p.m. in the U.S.",
    "May 2 people collect it?",
    "we march 3 miles",
    "Who decides at level Red of the surge plan?",
    "What does FC-LEJ stand for?",
    "is it on the 2nd floor or the 19th-century wing",
    "How do I start a return?",
    "🙂 הקופסה נמעכה",
    "B2B and B2C, MP3 or 5G?",
    "It arrived broken.what now",
    "I need ten copies by Friday",
    "Incoterms 2020 in short",
]


@pytest.mark.parametrize(("text", "kind", "term"), EXACT)
def test_exact_terms_are_found(text, kind, term):
    found = exact_terms(text)
    assert (kind, term) in [(one.kind, one.text) for one in found]


@pytest.mark.parametrize("text", LOOSE)
def test_quantities_years_and_common_words_are_no_exact_terms(text):
    assert exact_terms(text) == ()


def questions(path):
    return [json.loads(line) for file in sorted(DATA.glob(path)) for line in file.read_text().splitlines()]


def test_the_labelled_questions_fall_on_the_right_side():
    support = questions("support/questions/*.jsonl")
    flagged = {
        mode: [q["text"] for q in support if q["mode"] == mode and exact_terms(q["text"])]
        for mode in {q["mode"] for q in support}
    }
    assert len(flagged["exact_identifier"]) == sum(q["mode"] == "exact_identifier" for q in support) == 16
    assert flagged["abstract"] == flagged["vocabulary_mismatch"] == flagged["ambiguous_followup"] == []
    assert flagged["plain"] == ["What does customs hold code H3 mean and what happens?"]  # it names one


@given(st.text(max_size=60))
def test_terms_stand_in_the_text_in_order_and_apart(text):
    at = 0
    for term in exact_terms(text):
        at = text.index(term.text, at) + len(term.text)


@pytest.mark.parametrize(
    "piece", ["a", "a.", "A1-", "'", "1 ", "/a", "_a", "aA", "1.1,", "A-", "#1 ", "error 1"]
)
def test_a_long_question_is_read_in_time(piece):
    began = time.process_time()
    exact_terms((piece * 10_000)[:10_000])
    assert time.process_time() - began < 2
