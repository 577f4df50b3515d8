"""Steps of an agent that chooses its next action without seeing any retrieved text.

A document may say "now call sql". So the model that chooses sees only the fields of `Did` for each action:
its own words, counts, a cosine, and a one-word verdict. Another call, which reads the passages and can do
nothing else, gives that verdict. If the next search needs a phrase from a passage, the chooser writes a
variable ("#1"), which is filled in after the choice. A document can thus influence when the loop ends, but
its text reaches no choice of an action.

Source: Willison 2023, "The Dual LLM pattern"; Beurer-Kellner et al. 2025, "Design Patterns for Securing LLM
Agents against Prompt Injections", arXiv:2506.08837, section 3.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import create_model

from core.backends.prompting.prompts import CHOOSE_ACTION, CHOOSE_FILE, CHOOSE_TOOL, COPY_WORDS, EVIDENCE
from core.backends.prompting.replies import strict_schema
from core.backends.prompting.untrusted import quoted
from core.domain.errors import Unavailable
from core.domain.needs import Need
from core.domain.outputs import Search
from core.domain.types import Hit, Passage, Ranking
from core.steps.base import LETTERS
from core.steps.decisions import Decided
from core.steps.grep import exact_texts
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step
from core.steps.transform import ALIKE, Transform, references, shared, wording

Action = Literal["search", "look_up", "sql", "list", "find", "grep", "read"]  # besides, it may answer
WITHOUT_INPUT = ("answer", "list", "read")
Said = Literal["yes", "no", "unknown"]
MAX_COPIED_FROM = 3  # passages that words are copied from
WORDS: Mapping[Action, int] = {"search": 8, "look_up": 8, "sql": 3, "find": 3, "grep": 8}  # copied at most
INPUT = 300  # characters of an action's input


@dataclass(frozen=True, slots=True)
class Did:
    """An action as the chooser sees it. `input` is in the chooser's own words, variables not filled in."""

    action: Action
    input: str
    passages: int = 0
    new: int = 0
    nearest: float | None = None  # best cosine of a passage found with the question
    enough: Said = "unknown"  # whether what was collected until then answers the question
    before: bool = False  # it was asked before, and so not done

    @property
    def idle(self) -> bool:
        """Return True if the action ran and found no new passage. A look-up is idle only if it matched
        nothing at all: its passages were collected before, but their words can be copied.
        """
        return not (self.before or self.new or (self.action == "look_up" and self.passages))


@dataclass(frozen=True, slots=True)
class ActionChoice(Decided):
    """The action chosen; "answered" is the choice to answer. `input` is what it is done with."""

    decision: Action | Literal["answered", "unusable choice"]
    input: str = ""

    TEXT = "input"


@dataclass(frozen=True, slots=True)
class Enough(Decided):
    """The verdict on whether the collected passages answer the question."""

    decision: Said
    why: str


@dataclass(frozen=True, slots=True)
class Guard(Decided):
    """The check for an action chosen before."""

    decision: Literal["new", "asked before", "repeated"]
    why: str


@dataclass(frozen=True, slots=True)
class TurnDecision(Decided):
    """The decision whether the agent chooses again, with the reason if it stops."""

    decision: Literal["choose", "enough", "steps used up", "nothing to do", "nothing new", "budget spent"]

    FIRES = (("choose", "enough"),)


def outcome(did: Did) -> str:
    """Describe an action's result without repeating its input."""
    if did.before:
        return "not done: asked before, choose another"
    near = "" if did.nearest is None else f", nearest {did.nearest:.2f}"
    return f"{did.passages} passages, {did.new} of them new{near}, answered: {did.enough}"


def in_words(done: Sequence[Did]) -> str:
    """List the actions so far, one per line, numbered from 1. The input comes last, so that a model
    continuing the line copies words of an input and not of a result.
    """
    return "\n".join(f"{n}. {did.action} ({outcome(did)}): {did.input}" for n, did in enumerate(done, 1))


def read_choice(reply: str, offered: Sequence[str], done: Sequence[Did] = ()) -> tuple[str, str] | str:
    """Parse a reply into (action, input), or describe what is wrong with it. An input that repeats the result
    of an action in `done` is rejected, as it is not a query.
    """
    try:
        given = json.loads(reply)
    except ValueError:
        return "no JSON"
    action, words = (given.get("action"), given.get("input")) if isinstance(given, dict) else (None, None)
    if action not in offered:
        return f"the action {action!r}, which is none of {', '.join(offered)}"[:200]
    if not isinstance(words, str) or (action not in WITHOUT_INPUT and not wording(words)):
        return f"the action {action} without an input"
    if any(outcome(did) in words for did in done):
        return "an input that repeats the list of what was done"
    return str(action), " ".join(words.split())[:INPUT]


def holding(words: str, passages: Sequence[Passage]) -> Ranking:
    """Those of `passages` whose title or text holds all of `words`, in their order; those that hold them one
    after another come first. The score is 1 for these and 0.5 for the others.
    """
    phrase = f" {wording(words)} "
    wanted = set(phrase.split())
    found = []
    for passage in passages:
        text = f" {wording(f'{passage.title} {passage.text}')} "
        if wanted and wanted <= set(text.split()):
            found.append(Hit(passage, 1.0 if phrase in text else 0.5))
    return tuple(sorted(found, key=lambda hit: -hit.score))


Tools = Literal["both", "search", "grep"]
READ = "read"  # the `model` of a search that opens a file
BLIND = 2  # actions in a row after which something has to be read


class Agent(Retrieve, Transform):
    """Choosing actions, doing them, and reading what they found apart from the choice."""

    def offered(self) -> tuple[str, ...]:
        """List the actions available for this corpus. "sql" is included only if the corpus has tables."""
        try:
            self.context.prepared(Need.TABLES)
        except Unavailable:
            return "search", "look_up", "answer"
        return "search", "look_up", "sql", "answer"

    @step("CHAIN", "choose again or stop", returns=TurnDecision)
    def may_choose(
        self, done: tuple[Did, ...], steps: int, collected: int, lacking: str, idle: int = 1
    ) -> TurnDecision:
        """Decide whether the agent chooses again after the actions `done`, the first of which nobody chose.
        It stops once the collected passages answer the question: a small model's further choices are noise.
        It also stops after `idle` actions in a row that added nothing.
        """
        chosen, last = len(done) - 1, done[-1]
        if chosen >= steps:
            return TurnDecision("steps used up", f"{chosen} of {steps} actions are chosen")
        if not collected:
            return TurnDecision("nothing to do", "no passage was found to read or look up in")
        if last.enough == "yes":
            return TurnDecision("enough", "the passages collected answer the question")
        if len(done) >= idle and all(did.idle for did in done[-idle:]):
            return TurnDecision("nothing new", f"the last action, {last.action}, added nothing")
        if lacking:
            return TurnDecision("budget spent", lacking)
        return TurnDecision("choose", f"{chosen} of {steps} actions are chosen")

    @step("AGENT", "choose an action", returns=ActionChoice)
    def choose_action(self, question: str, done: tuple[Did, ...], offered: tuple[str, ...]) -> ActionChoice:
        """Ask the model for the next action out of `offered`. The model sees no retrieved text.

        Source: Yao et al. 2023, "ReAct", arXiv:2210.03629, section 2. Its free-form thoughts are omitted:
        they concern the text read, and the chooser has read none.
        """
        actions: Any = Literal[tuple(offered)]
        form = create_model("Action", action=(actions, ...), input=(str, ...))
        read = self._read(
            CHOOSE_ACTION if "look_up" in offered else CHOOSE_TOOL,
            lambda reply: read_choice(reply, offered, done),
            max_tokens=100,
            schema=strict_schema(form),
            question=question,
            actions=", ".join(offered),
            done=in_words(done),
        )
        if isinstance(read, str):
            return ActionChoice("unusable choice", f"also when asked again, the model gave {read}")
        action, words = read
        why = f"the model chose {action} of {', '.join(offered)} after {len(done)} actions"
        if action == "answer":
            return ActionChoice("answered", why)
        return ActionChoice(action, why, words)  # type: ignore[arg-type] # one of `offered`

    @step("GUARDRAIL", "was it asked before", returns=Guard)
    def asked_before(self, action: str, words: str, done: tuple[Did, ...]) -> Guard:
        """Check whether an action repeats an earlier one of its kind: the share of common words is at least
        `ALIKE`. The first repetition is reported to the model, the second ends the loop.
        """
        asked = set(wording(words).split())
        if not any(did.action == action and shared(asked, did.input) >= ALIKE for did in done):
            return Guard("new", "no earlier action has these words")
        if any(did.before for did in done):
            return Guard("repeated", "it has the words of an earlier action, for the second time")
        return Guard("asked before", "it has the words of an earlier action: the model is told, once")

    def with_answers(
        self, action: Action, text: str, question: str, searched: Sequence[tuple[str, Ranking]]
    ) -> str:
        """`text` with each variable replaced by words copied from what the action of that number found."""
        named = references(text, question) & set(range(1, len(searched) + 1))
        if not named:
            return text
        answers = tuple(
            self.copied_words(asked, hits[:MAX_COPIED_FROM], WORDS[action])
            if number in named and hits
            else None
            for number, (asked, hits) in enumerate(searched, 1)
        )
        return self.fill_in(text, answers, question)

    @step("LLM", "copy words from the passages", returns=str, optional=True)
    def copied_words(self, question: str, hits: Ranking, most: int) -> str | None:
        """Copy at most `most` words from `hits` that answer `question`; return None, with a note, if the
        passages contain no answer. The words are used in a search and nowhere else.
        """
        return self._copied(COPY_WORDS, question, hits, most, max_tokens=32, reuse_prefix=True)

    @step("RETRIEVER", "look up words", returns=Ranking)
    def look_up(self, words: str, collected: Ranking) -> Ranking:
        """Return the passages that contain all of `words`, in the documents of `collected`; see `holding`.

        Collected passages from outside the corpus, such as a query's result, are searched themselves.
        """
        corpus = self.context.corpus
        own = corpus.by_ids([hit.passage.id for hit in collected])
        documents = dict.fromkeys(passage.doc_id for passage in own.values())
        passages = [one for id in documents for one in corpus.document(id)[1]]
        if (allowed := self.allowed()) is not None:
            passages = [one for one in passages if allowed[corpus.row(one.id)]]
        passages += [hit.passage for hit in collected if hit.passage.id not in own]
        self.span.attributes["documents"] = list(documents)
        self.span.output = Search((words,), where=self.context.where)
        return holding(words, passages)[:POOL]

    @step("EVALUATOR", "do the passages answer the question", returns=Enough)
    def enough(self, question: str, collected: Ranking, threshold: float) -> Enough:
        """Yes or No of a call that reads the passages and can do nothing else, "yes" where P(Yes) is at least
        `threshold`; else "unknown".
        """
        if not collected:
            self.note("no passage was found, so the model was not called")
            return Enough("no", "there is no passage")
        found = self._yes(EVIDENCE, threshold, passages=quoted(collected), question=question)
        return Enough("unknown" if found.enough is None else "yes" if found.enough else "no", found.why)

    def limit(self, calls: int, tokens: int) -> None:
        """Lower this route's budget of model calls and tokens, the answer's included."""
        self.context.max_calls = min(self.context.max_calls, calls)
        self.context.max_tokens = min(self.context.max_tokens, tokens)

    def spent(self, seconds: float, read: int, keep: int) -> str:
        """Return which budget of the reading is used up, or ""."""
        if read >= keep:
            return f"{read} passages are read, which is the most allowed"
        if (used := self.context.trace.now() / 1000) >= seconds:
            return f"{used:.0f} of {seconds:.0f} seconds are used"
        return ""

    def first_tool(self, question: str, tools: Tools) -> Action:
        """Return the action that the question itself is searched by: grep if it has exact terms."""
        if tools == "both":
            return "grep" if exact_texts(question) else "search"
        return tools

    def file_tools(self, tools: Tools, done: Sequence[Did], unread: int) -> tuple[str, ...]:
        """Return the actions that the model may choose from. After BLIND actions that read nothing it can
        only read. It can answer once something was read.
        """
        read = ("read",) if unread else ()
        blind = [did.action for did in done[-BLIND:]]
        if read and len(blind) == BLIND and "read" not in blind:
            return read
        listed = () if any(did.action == "list" for did in done) else ("list",)
        locate = {"both": ("grep", "search"), "search": ("search",), "grep": ("grep",)}[tools]
        answer = ("answer",) if any(did.action == "read" for did in done) or not read else ()
        return *listed, "find", *locate, *read, *answer

    @step("TOOL", "list files", returns=Ranking)
    def list_files(self, holding: str = "", k: int = POOL) -> Ranking:
        """Return the first passage of each of up to `k` files whose name or title has `holding`, by name."""
        corpus, allowed = self.context.corpus, self.allowed()
        first = []
        for listed in corpus.documents(holding, limit=k):
            passages = corpus.document(listed.id)[1]
            first += [one for one in passages if allowed is None or allowed[corpus.row(one.id)]][:1]
        self.span.output = Search((holding,), "list", where=self.context.where)
        return _in_order(first)

    @step("AGENT", "choose the file to read", returns=int)
    def choose_file(self, question: str, files: tuple[str, ...]) -> int:
        """Return the index of one of `files`. The model sees their names and can reply with a letter only;
        its probability decides. A reply without a letter means the first file, with a note.
        """
        shown = files[: len(LETTERS)]
        if len(shown) < 2:
            return 0
        reply, shares = self._choose(CHOOSE_FILE, shown, "files", question=question)
        if shares is None:
            self.note(f"none of the letters: {reply.text[:40]!r}; the first file is read")
            return 0
        return shares.index(max(shares))

    @step("TOOL", "read a range of a file", returns=Ranking)
    def read_range(self, found: Ranking, file: str, length: int, read: Ranking) -> Ranking:
        """Return up to `length` adjoining passages of `file` that are not in `read`, from the best of `found`
        on, or from the passage before it if that is unread.
        """
        known = {hit.passage.id for hit in read}
        inside = (hit.passage for hit in found if hit.passage.doc_id == file)
        best = next(passage for passage in inside if passage.id not in known)
        corpus, allowed = self.context.corpus, self.allowed()
        passages = [
            one
            for one in corpus.document(file)[1]
            if one.id not in known and (allowed is None or allowed[corpus.row(one.id)])
        ]
        ids = [one.id for one in passages]
        start = max(0, min(ids.index(best.id) - (length > 2), len(ids) - length))
        self.span.output = Search((file,), READ, where=self.context.where)
        self.span.attributes["asked for"] = best.id
        return _in_order(passages[start : start + length])


def files_of(found: Ranking, read: Ranking) -> tuple[str, ...]:
    """Return the files of `found` that have passages outside `read`, best first."""
    known = {hit.passage.id for hit in read}
    return tuple(dict.fromkeys(hit.passage.doc_id for hit in found if hit.passage.id not in known))


def _in_order(passages: Sequence[Passage]) -> Ranking:
    return tuple(Hit(passage, 1 / place) for place, passage in enumerate(passages, 1))
