"""What a grammar lets a model write."""

import re

from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import LLMRequest, Message
from core.backends.llm.wire import body
from core.backends.prompting.replies import literal, one_of

PLAIN = LLMRequest("t/1", (Message("user", "x"),), 4)


@given(st.text(max_size=40))
def test_a_literal_is_one_terminal_that_reads_as_the_text(text: str) -> None:
    written = literal(text)

    inside = written[1:-1]
    assert not re.search(r'(?<!\\)(?:\\\\)*"', inside)
    assert "\n" not in written
    read = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(m[1], m[1]), inside, flags=re.S)
    assert read == text


def test_one_of_is_a_choice_of_the_texts() -> None:
    assert one_of(["yes", 'say "no"']) == r'root ::= "yes" | "say \"no\""'


def test_only_the_embedded_server_is_sent_a_grammar() -> None:
    asked = LLMRequest("t/1", PLAIN.messages, 4, grammar=one_of(["a"]))

    assert body(asked, model="m", embedded=True)["extra_body"]["grammar"] == 'root ::= "a"'
    assert "extra_body" not in body(asked, model="m")
    assert "grammar" not in body(PLAIN, model="m", embedded=True)["extra_body"]
