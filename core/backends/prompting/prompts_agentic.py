"""The prompts of iterative routes and of the router. Those about passages begin like the prompt of the
answer, so that an endpoint caches the passages once.
"""

from __future__ import annotations

from core.backends.prompting.prompts import Prompt
from core.backends.prompting.untrusted import GROUNDED

CHOOSE_NAME = Prompt(
    "choose-name/1",
    GROUNDED + " You choose the name that has to be looked up next to answer the question. Reply with its "
    "letter only.",
    "Question: {question}\n\n{passages}\n\nNames:\n{names}\nLetter:",
    (
        (
            "Question: Which bus goes to the hotel of the spring conference?\n\n<passage 1>\n"
            "Spring conference\nThe spring conference takes place in the Harbour Hotel and is opened by the "
            "mayor of Lindow.\n"
            "</passage 1>\n\nNames:\nA. Lindow\nB. Harbour Hotel\nLetter:",
            "B",
        ),
    ),
)
COPY_WORDS = Prompt(
    "copy-words/1",
    GROUNDED,
    "{passages}\n\nQuestion: {question}\n\nCopy from the passages the few words that answer the question: a "
    "name, a number, a term, at most {words} words. If they do not say it, reply exactly: not stated\n"
    "Words copied:",
)
_FIRST = "1. search (90 passages, 3 of them new, nearest 0.48, answered: no): "
_DONE = f"{_FIRST}Which bus goes to the hotel of the spring conference?"
_BUS = "Question: Which bus goes to the hotel of the spring conference?\nActions: search, look_up, answer\n"
CHOOSE_ACTION = Prompt(
    "choose-action/2",
    "You choose the next action towards the answer to a question. You see what was done so far, not what was "
    "found.\nsearch: input is a question or keywords to search the documents with.\n"
    "look_up: input is one or two words; gives the passages that hold them, in the documents found so far.\n"
    "sql: input is a question about orders, counts or dates that a database answers.\n"
    "answer: input is empty; for when the passages found answer the question, or nothing else can be tried."
    "\nIn an input, #1 stands for the answer that action 1 found, #2 for that of action 2. Never repeat an "
    "input. Reply as JSON with action and input.",
    "Question: {question}\nActions: {actions}\nDone so far:\n{done}",
    (
        (
            f"{_BUS}Done so far:\n{_DONE}",
            '{"action": "search", "input": "In which hotel is the spring conference?"}',
        ),
        (
            f"{_BUS}Done so far:\n{_DONE}\n"
            "2. search (90 passages, 2 of them new, nearest 0.71, answered: no): In which hotel is the "
            "spring conference?",
            '{"action": "search", "input": "Which bus goes to #2?"}',
        ),
        (
            "Question: May I bring my dog?\nActions: search, look_up, answer\nDone so far:\n"
            "1. search (90 passages, 3 of them new, nearest 0.66, answered: yes): May I bring my dog?",
            '{"action": "answer", "input": ""}',
        ),
    ),
)
_DOG = "Question: May I bring my dog to room B-12?\nPassages: 300\nAt most: 3\nPatterns tried: "
_FIRST_TRY = (
    '{"patterns": [{"match": "phrase", "text": "b-12"}, {"match": "word", "text": "dog"}, '
    '{"match": "beginning", "text": "room"}]}'
)
WRITE_PATTERNS = Prompt(
    "write-patterns/1",
    "You search files with grep. You write the patterns that a text which answers the question contains: "
    "names and codes as they are written, and the words that such a text would use, not only those of the "
    "question. match is word (text is a whole word), beginning (text is the beginning of words) or phrase "
    "(text stands there exactly). You see in how many passages each pattern tried before occurs: leave out "
    "those that occur in none or in nearly all, and write better ones. Reply as JSON.",
    "Question: {question}\nPassages: {size}\nAt most: {n}\nPatterns tried: {tried}",
    (
        (f"{_DOG}none", _FIRST_TRY),
        (
            f"{_DOG}\nb-12: 4\ndog: 0\nroom*: 280",
            '{"patterns": [{"match": "phrase", "text": "b-12"}, {"match": "beginning", "text": "pet"}, '
            '{"match": "beginning", "text": "animal"}]}',
        ),
    ),
)
DIRECT = Prompt(
    "direct/1",
    "You are the assistant of a help desk. The message needs nothing looked up. Reply in one or two "
    "sentences. State nothing about the company, its orders, prices or rules.",
    "{conversation}Message: {question}",
)
