"""Steps of an agent that locates passages in files and reads some of them; see `core.steps.agent`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from core.backends.prompting.prompts import CHOOSE_FILE
from core.backends.prompting.replies import odds, one_of
from core.backends.prompting.untrusted import in_line
from core.domain.outputs import Search
from core.domain.types import Hit, Passage, Ranking
from core.steps.agent import Action, Did
from core.steps.grep import exact_texts
from core.steps.iterate import LETTERS
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step

Tools = Literal["both", "search", "grep"]
READ = "read"  # the `model` of a search that opens a file
BLIND = 2  # actions in a row after which something has to be read


class ReadFiles(Retrieve):
    """Listing, finding and reading files."""

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
        letters = LETTERS[: len(shown)]
        reply = self._ask(
            CHOOSE_FILE,
            max_tokens=1,
            top_logprobs=20,
            grammar=one_of([letter.upper() for letter in letters]),
            question=question,
            files="\n".join(f"{a.upper()}. {in_line(name)}" for a, name in zip(letters, shown, strict=True)),
        )
        found = odds(reply, tuple(letters))
        if found is None:
            self.span.attributes["note"] = f"none of the letters: {reply.text[:40]!r}; the first file is read"
            return 0
        return max(range(len(shown)), key=lambda at: found.of[letters[at]])

    @step("TOOL", "read a range of a file", returns=Ranking)
    def read_range(self, found: Ranking, file: str, length: int, read: Ranking) -> Ranking:
        """Return up to `length` adjoining passages of `file` that are not in `read`, from the best of `found`
        on, or from the passage before it if that is unread.
        """
        known = {hit.passage.id for hit in read}
        best = next(
            hit.passage for hit in found if hit.passage.doc_id == file and hit.passage.id not in known
        )
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
