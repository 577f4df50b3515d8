"""Every prompt in one place: short, the common part first so that an endpoint's prompt cache can keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.backends.base import Message
from core.backends.prompting.untrusted import GROUNDED, harmless

FIRMER = " Your last reply was rejected: {wrong}. Do exactly what is asked, in the form that is asked for."


@dataclass(frozen=True, slots=True)
class Prompt:
    """A named, versioned prompt; {words} in `user` are filled in by name. A new text is a new version."""

    name: str
    system: str
    user: str
    examples: tuple[tuple[str, str], ...] = ()  # (what the user says, the reply wanted)

    def fill(self, values: Mapping[str, str], firmer: str = "") -> tuple[Message, ...]:
        """Fill in `values` literally: braces in a document or question mean nothing, nor do sequences that a
        chat template would read as the end of a message.
        """
        text = self.user
        parts = []
        while text:
            before, brace, rest = text.partition("{")
            name, close, text = rest.partition("}") if brace else ("", "", "")
            parts.append(before + (harmless(values[name]) if close else brace + name))
        shown = [
            message
            for user, reply in self.examples
            for message in (Message("user", user), Message("assistant", reply))
        ]
        return Message("system", self.system + firmer), *shown, Message("user", "".join(parts))

    def with_instruction(self, instruction: str) -> Prompt:
        """Return this prompt with another instruction, marked as custom in its name; "" keeps it."""
        return replace(self, name=f"{self.name}/custom", system=instruction) if instruction else self


REWRITE = Prompt(
    "rewrite/2",
    "You rewrite the user's last message as one search question that can be understood without the "
    "conversation: put in what the message only points at. Keep names, numbers and the user's intent. Reply "
    "with the question only.",
    "Conversation:\n{history}\n\nLast message: {question}",
    (
        (
            "Conversation:\nuser: Are dogs allowed in your hotel?\nassistant: Yes, dogs are welcome.\n\n"
            "Last message: What does it cost?",
            "What does it cost to bring a dog to the hotel?",
        ),
        (
            "Conversation:\nuser: My suitcase did not arrive with my flight.\n\nLast message: Where do I go?",
            "Where do I report a suitcase that did not arrive with my flight?",
        ),
        (
            "Conversation:\nuser: I may pay by invoice or by card. How long does a refund to a card take?\n"
            "assistant: Three days.\n\nLast message: And with the first?",
            "How long does a refund take when I paid by invoice?",
        ),
    ),
)
VARIANTS = Prompt(
    "variants/2",
    "You write search queries. Given a question, you write other ways to ask for the same information, with "
    "synonyms and the terms that a company's documents would use. One query a line, no numbering, no "
    "comments.",
    "Question: {question}\nNumber of queries: {n}",
    (
        (
            "Question: Can I bring my dog?\nNumber of queries: 3",
            "pet policy for hotel guests\nare animals permitted in rooms\nfees and rules for travelling with"
            " a dog",
        ),
    ),
)
STEP_BACK = Prompt(
    "step-back/1",
    "You write the more general question behind a question: the one about the rule, policy or principle that "
    "the case falls under. Leave out particulars such as names, numbers, places and dates. Reply with the "
    "question only.",
    "Question: {question}",
    (
        (
            "Question: May I bring my 12 kg dog to the hotel in Lyon in May?",
            "What are the rules for pets in hotels?",
        ),
        (
            "Question: Why did they charge me 40 euros for a suitcase on flight 212?",
            "How are the fees for luggage decided?",
        ),
    ),
)
DECOMPOSE = Prompt(
    "decompose/2",
    "You split a question into the simpler questions whose answers together answer it. Each asks for another "
    "thing and is understandable without the others, so repeat the names. One question a line, no numbering, "
    "no comments.",
    "Question: {question}\nAt most: {n}",
    (
        (
            "Question: Is breakfast cheaper at the Harbour Hotel or at the Park Hotel?\nAt most: 4",
            "What does breakfast cost at the Harbour Hotel?\nWhat does breakfast cost at the Park Hotel?",
        ),
        (
            "Question: When was the architect of the hotel in which the spring conference takes place born?\n"
            "At most: 4",
            "In which hotel does the spring conference take place?\nWho is the architect of the hotel of the "
            "spring conference?\nWhen was that architect born?",
        ),
    ),
)
DECOMPOSE_STEPS = Prompt(
    "decompose-steps/2",
    "You split a question into the simpler questions that must be answered one after another to answer it. "
    "Where a question needs the answer to an earlier one, write # and the number of that one in its place. "
    "One numbered question a line, no comments.",
    "Question: {question}\nAt most: {n}",
    (
        (
            "Question: Which bus goes to the hotel where the spring conference takes place?\nAt most: 4",
            "1. In which hotel does the spring conference take place?\n2. Which bus goes to #1?",
        ),
        (
            "Question: When was the architect of the hotel in which the spring conference takes place born?\n"
            "At most: 4",
            "1. In which hotel does the spring conference take place?\n2. Who is the architect of #1?\n"
            "3. When was #2 born?",
        ),
    ),
)
SHORT_ANSWER = Prompt(
    "short-answer/2",
    GROUNDED
    + " You copy from them the few words that answer the question: a name, a number, a term. If they "
    "do not say it, reply exactly: not stated",
    "{passages}\n\nQuestion: {question}\n\nWords copied:",
    (
        (
            "<passage 1>\nSpring conference\nThe conference is held from 3 to 5 April in the Harbour Hotel, "
            "as every year.\n</passage 1>\n\nQuestion: In which hotel does the spring conference take "
            "place?\n\nWords copied:",
            "Harbour Hotel",
        ),
        (
            "<passage 1>\nPets\nDogs pay EUR 15 a night.\n</passage 1>\n\nQuestion: Which bus goes to the "
            "Harbour Hotel?\n\nWords copied:",
            "not stated",
        ),
    ),
)
HYDE = Prompt(
    "hyde/2",
    "You write the passage of a company's internal documentation that answers the question. Write it as it "
    "could stand there, with the steps, terms and limits such a document names, even if you have to make "
    "them up. Two to four sentences of plain text, no introduction.",
    "Question: {question}",
    (
        (
            "Question: Can I bring my dog?",
            "Pets up to 10 kg are admitted to standard rooms on request. Guests register the animal at "
            "check-in and pay a cleaning fee of EUR 15 a night. Animals are not permitted in the restaurant "
            "and the spa area; assistance dogs are exempt from all restrictions.",
        ),
    ),
)
GRADE = Prompt(
    "grade/4",
    GROUNDED,
    "{passage}\n\nQuestion: {question}\n\nIs the answer to the question stated in the passage? Yes or No:",
)
WEB_QUERY = Prompt(
    "web-query/1",
    "You turn a question into a web search query of at most eight keywords. Reply with the keywords only.",
    "Question: {question}\n\nKeywords:",
)
SENTENCES = Prompt(
    "sentences/2",
    GROUNDED + " You are given a question and the numbered sentences of one passage. "
    "Reply with the numbers of the sentences that help to answer the question, separated by commas. If no "
    "sentence helps, reply with the word none.",
    "{sentences}\n\nQuestion: {question}\n\nNumbers of the sentences that help:",
    (
        (
            "<passage 1>\n1. The hotel was built in 1912.\n2. Pets up to 10 kg may stay in standard rooms.\n"
            "3. Breakfast is served from seven.\n4. The fee for an animal is EUR 15 a night.\n</passage 1>"
            "\n\nQuestion: Can I bring my dog?\n\nNumbers of the sentences that help:",
            "2, 4",
        ),
        (
            "<passage 1>\n1. Towels are changed daily.\n2. Guests pay on departure.\n</passage 1>\n\n"
            "Question: When is the pool open?\n\nNumbers of the sentences that help:",
            "none",
        ),
    ),
)
ANSWER = Prompt(  # the passages come first, so that what else is asked about them reads them only once
    "answer/2",
    GROUNDED,
    "{passages}\n\nQuestion: {question}\n\nWrite a short answer to the question, in one to three sentences, "
    "with what the passages say. After each sentence put the number of its passage, like [1].",
)
EVIDENCE = Prompt(
    "evidence/1",
    GROUNDED,
    "{passages}\n\nQuestion: {question}\n\nIs the answer to the question stated in the passages? Yes or No:",
)
CONTEXT = Prompt(  # the part that passages of a document share comes first, so that it is read once
    "context/1",
    "You describe parts of documents for a search engine. Reply with one sentence of at most 25 words.",
    "Document: {title}\n{document}\n\nHere is the beginning of one part of this document:\n{passage}\n\n"
    "Say in one sentence what the document is about and what this part of it is about, with the names of the "
    "things. Sentence:",
)
SUMMARY = Prompt(
    "summary/1",
    "You summarise passages for a search engine. Reply with one paragraph of at most 100 words.",
    "Passages:\n{passages}\n\nSay what these passages say together, with the names, numbers and dates that "
    "they give. Summary:",
)
QUESTIONS = Prompt(
    "questions/1",
    "You write search questions.",
    'Passage from "{title}":\n{passage}\n\nWrite {n} different short questions that this passage answers, '
    "one a line:",
)
CONDITIONS = Prompt(
    "conditions/1",
    "You turn what a question says about the documents to look in into filters on their metadata, as JSON. "
    "Only what it says about documents counts: who wrote them, when, of what kind. What the question is "
    "about is no filter. Without such a condition the list is empty. Reply with the JSON only.",
    "Fields, with their kind and some values:\n{fields}\n\nQuestion: {question}\n\nFilters:",
    (
        (
            "Fields, with their kind and some values:\nauthor (text): Kitchen team, M. Silva\n"
            "changed (date): 2024-05-01, 2025-02-11\n\n"
            "Question: How much salt do recipes by the Kitchen team changed after 2024 take?\n\nFilters:",
            '{"filters": [{"field": "author", "operator": "~", "value": "Kitchen team"}, '
            '{"field": "changed", "operator": ">", "value": "2024"}]}',
        ),
        (
            "Fields, with their kind and some values:\nauthor (text): Kitchen team, M. Silva\n\n"
            "Question: How much salt does bread need?\n\nFilters:",
            '{"filters": []}',
        ),
    ),
)
TRIPLES = Prompt(
    "triples/2",
    "You note what a passage states as triples, one a line: subject | relation | object. Subject and object "
    "are names or short noun phrases of the passage, the relation a few words.",
    'Passage from "{title}":\n{passage}\n\nUp to {n} different triples:',
    (
        (
            'Passage from "Getting here":\nBus 12 stops at the Harbour Hotel every ten minutes.\n\n'
            "Up to 2 different triples:",
            "Bus 12 | stops at | Harbour Hotel\nBus 12 | runs every | ten minutes",
        ),
    ),
)
