"""Steps that criticise a drafted answer claim by claim and write it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from core.backends.prompting.citations import Draft, abstains, resolve
from core.backends.prompting.prompts_corrective import CRITIQUE, REFINE
from core.backends.prompting.replies import CRITICISM, Claim, Criticism, criticism
from core.backends.prompting.untrusted import in_line, quoted
from core.domain.errors import ModelFailed
from core.domain.outputs import ClaimChanges, Criticised, Critique, DraftChoice
from core.domain.types import Ranking
from core.steps.decisions import ways
from core.steps.generate import Generate
from core.steps.step import step
from core.steps.transform import wording

Ended = Literal[
    "all claims supported", "no feedback", "refined answer is supported less", "oscillation", "unchanged",
    "rounds used up", "abstained", "critique failed", "budget spent",
]  # fmt: skip
ALIKE = 0.75  # similarity of two claims' words from which they are the same claim, worded anew
FORM = (
    '{"claims": [{"claim": "The pool opens at 7", "passage": 2, "supported": true}, {"claim": "Towels are '
    'free", "passage": null, "supported": false}], "feedback": "Leave out the towels.", "good": false}'
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the claims of a draft: `kept` as they were, `dropped`, `added`, and `changed`, which
    are still there but supported now and not before, or the other way round.
    """

    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Weighed:
    """A draft with its critique: the `share` of its claims that are supported, None where there are none."""

    draft: str
    claims: tuple[Claim, ...]
    share: float | None
    feedback: str
    changes: Changes | None
    decision: Literal["refine", "stop"]
    reason: Ended | None
    why: str

    def recorded(self) -> Critique:
        """The critique as readers take it."""
        changes = self.changes
        return Critique(
            self.draft,
            tuple(Criticised(one.claim, one.supported, one.passage) for one in self.claims),
            self.share,
            self.feedback,
            None if changes is None
            else ClaimChanges(changes.kept, changes.dropped, changes.added, changes.changed),
            self.decision,
            ways(type(self)),
            self.why,
            self.reason,
        )  # fmt: skip


class SelfRefine(Generate):
    """Self-Refine over a cited answer.

    Source: Madaan et al. 2023, "Self-Refine", arXiv:2303.17651, algorithm 1.
    """

    @step("EVALUATOR", "criticise the draft and decide")
    def weigh(
        self, text: str, hits: Ranking, drafts: tuple[str, ...], earlier: tuple[Weighed, ...], rounds: int
    ) -> Weighed:
        """Whether the last of `drafts`, an answer to `text` from `hits`, is written again; `earlier` are the
        verdicts on those before it. A draft that abstains or repeats one is not criticised.
        """
        shares = [one.share for one in earlier]
        draft = drafts[-1]
        ended = settled(drafts, rounds)
        if ended is not None:
            return Weighed(draft, (), None, "", None, "stop", ended, _SETTLED[ended])
        said = self.criticise(text, hits, draft)
        if isinstance(said, str):
            return Weighed(draft, (), None, "", None, "stop", "critique failed", f"not scored: {said}")
        share = sum(claim.supported for claim in said.claims) / len(said.claims) if said.claims else None
        before = shares[-1] if shares else None
        ended = after_critique(share, before, said, len(drafts), rounds)
        told = (
            f"{sum(claim.supported for claim in said.claims)} of {len(said.claims)} claims supported"
            if said.claims else "the critique names no claim"
        )  # fmt: skip
        if before is not None:
            told += f", {before:.0%} before"
        told += f": {ended}" if ended else f"; refinement {len(drafts)} of {rounds}"
        changes = claim_changes(earlier[-1].claims, said.claims) if earlier else None
        return Weighed(
            draft, said.claims, share, said.feedback, changes, "stop" if ended else "refine", ended, told
        )

    @step("LLM", "criticise claim by claim")
    def criticise(self, text: str, hits: Ranking, draft: str) -> Criticism | str:
        """The claims of `draft`, each checked against `hits`, with feedback; or why there is no critique."""

        def unusable(reply: str) -> str | None:
            return None if criticism(reply, len(hits)) else "not a critique in the JSON asked for"

        try:
            reply = self._ask(
                CRITIQUE, max_tokens=400, schema=CRITICISM, reuse_prefix=True, unusable=unusable,
                passages=quoted(hits), question=text, draft=in_line(draft), form=FORM,
            )  # fmt: skip
        except ModelFailed as error:
            return str(error)
        return criticism(reply.text, len(hits)) or f"{unusable(reply.text)}: {reply.text[:80]!r}"

    @step("LLM", "refine the answer")
    def refine(self, text: str, hits: Ranking, draft: str, feedback: str, claims: tuple[Claim, ...]) -> Draft:
        """The answer written again with sight of `feedback` and the claims found unsupported."""
        wrong = [in_line(claim.claim) for claim in claims if not claim.supported]
        told = in_line(feedback) + (f" Not supported: {'; '.join(wrong)}." if wrong else "")
        reply = self._ask(
            REFINE, max_tokens=160, reuse_prefix=True, stream=True,
            passages=quoted(hits), question=text, draft=in_line(draft), feedback=told.strip(),
        )  # fmt: skip
        return resolve(reply.text, [hit.passage.id for hit in hits])

    @step("CHAIN", "keep a draft")
    def keep_draft(self, drafts: tuple[Draft, ...], weighed: tuple[Weighed, ...], reason: Ended) -> Draft:
        """The draft that is the answer; see `kept`."""
        shares = [one.share for one in weighed]
        at = kept(reason, shares, len(drafts))
        told = ", ".join("none" if share is None else f"{share:.0%}" for share in shares) or "none"
        self.span.output = DraftChoice(
            at + 1, len(drafts), f"draft {at + 1} of {len(drafts)}", reason,
            f"stopped: {reason}; claims supported by draft: {told}", tuple(shares),
        )  # fmt: skip
        return drafts[at]


_SETTLED: dict[Ended, str] = {
    "abstained": "the draft says that the passages do not answer: there are no claims to check",
    "unchanged": "the refined draft is the one before it",
    "oscillation": "the refined draft is one from before the last: writing goes in circles",
    "rounds used up": "no refinement is allowed",
}


def settled(drafts: Sequence[str], rounds: int) -> Ended | None:
    """The reason to stop that the drafts alone give, before any critique; None if there is none.

    Drafts that differ in case, punctuation and space alone are one.
    """
    worded = [wording(draft) for draft in drafts]
    if abstains(drafts[-1]):
        return "abstained"
    if worded[-1] in worded[-2:-1]:
        return "unchanged"
    if worded[-1] in worded[:-1]:
        return "oscillation"
    return "rounds used up" if rounds == 0 else None


def after_critique(
    share: float | None, before: float | None, said: Criticism, number: int, rounds: int
) -> Ended | None:
    """The reason to stop after the critique of draft `number` (from 1), or None to refine it.

    `share` and `before` are the supported shares of its claims and of those of the draft before.
    """
    if share == 1:
        return "all claims supported"
    if share is not None and before is not None and share < before:
        return "refined answer is supported less"
    if said.good or not said.feedback:
        return "no feedback"
    return "rounds used up" if number > rounds else None


def kept(reason: Ended, shares: Sequence[float | None], drafts: int) -> int:
    """The index of the draft that is the answer, of so many; `shares` are those of the drafts judged.

    It is the last one, unless that is worse than the one before or was not checked. A refined draft that
    abstains is taken where the one before had no supported claim: then no answer is better than that one.
    """
    last = drafts - 1
    if last == 0 or reason == "unchanged":
        return last
    if reason == "abstained":
        return last if shares[last - 1] == 0 else last - 1
    if reason in ("refined answer is supported less", "oscillation", "critique failed"):
        return last - 1
    return min(last, max(len(shares) - 1, 0))


def claim_changes(before: Sequence[Claim], after: Sequence[Claim]) -> Changes:
    """Which claims of `before` are in `after`: pairs of most similar words first, each claim in one pair.

    Similarity is difflib's ratio over the words, from `ALIKE` on.
    """
    pairs = sorted(
        (
            (-likeness(old.claim, new.claim), i, j)
            for i, old in enumerate(before)
            for j, new in enumerate(after)
        )
    )
    old_to_new: dict[int, int] = {}
    for unlike, i, j in pairs:
        if -unlike >= ALIKE and i not in old_to_new and j not in old_to_new.values():
            old_to_new[i] = j
    news = {j: i for i, j in old_to_new.items()}
    same = {j for j, i in news.items() if after[j].supported == before[i].supported}
    return Changes(
        tuple(after[j].claim for j in sorted(same)),
        tuple(one.claim for i, one in enumerate(before) if i not in old_to_new),
        tuple(one.claim for j, one in enumerate(after) if j not in news),
        tuple(after[j].claim for j in sorted(news.keys() - same)),
    )


def likeness(one: str, other: str) -> float:
    """How alike two texts are, 0 to 1, by their words in order; 1 where they are the same words."""
    first, second = sorted((wording(one).split(), wording(other).split()))  # the ratio is not symmetric
    return SequenceMatcher(None, first, second, autojunk=False).ratio()
