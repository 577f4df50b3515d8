"""Steps that check an answer claim by claim against what it cites, and write again what is not supported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.backends.prompting.citations import (
    NOT_ANSWERED,
    Draft,
    abstains,
    markers,
    resolve,
    sentences,
    unmarked,
)
from core.backends.prompting.prompts import CLAIM, MEND
from core.backends.prompting.replies import first_line
from core.backends.prompting.untrusted import between, in_line
from core.domain.errors import ModelFailed
from core.domain.outputs import Criticised, Critique, DraftChoice
from core.domain.types import Ranking
from core.steps.decisions import Decided, ways
from core.steps.generate import Generate
from core.steps.step import step
from core.steps.transform import wording

HELD_AGAINST = 3  # sentences of the cited passages that a claim is checked against
MENDED_FROM = 4  # sentences of all passages that it is written again from
NOTHING = "none"  # the model's word for a claim about which the passages say nothing
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


Support = Literal[
    "all supported", "some unsupported", "some not checked", "none supported", "not checked", "no claim"
]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a draft, with the verdict on it."""

    text: str  # with its markers
    passages: tuple[int, ...]  # the cited passage numbers, from 1
    evidence: str  # the sentences it was compared with
    probability: float | None  # P(Yes) that `evidence` states the claim; None if unavailable
    supported: bool | None  # None if the claim could not be checked
    why: str


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft with the verdict on each of its claims."""

    draft: str
    claims: tuple[Claim, ...]
    decision: Support
    why: str

    @property
    def share(self) -> float | None:
        """Return the share of checked claims that are supported, or None if none was checked."""
        verdicts = [one.supported for one in self.claims if one.supported is not None]
        return sum(verdicts) / len(verdicts) if verdicts else None

    def recorded(self) -> Critique:
        """Return the output stored on the span."""
        claims = []
        for one in self.claims:
            passage = one.passages[0] if one.passages else None
            said, judged = unmarked(one.text), (one.probability, one.evidence, one.why)
            claims.append(Criticised(said, one.supported, passage, *judged))
        decided = (self.decision, ways(type(self)), self.why)
        return Critique(self.draft, tuple(claims), self.share, "", None, *decided)


@dataclass(frozen=True, slots=True)
class Revision(Decided):
    """The decision how to treat unsupported claims."""

    decision: Literal["keep", "rewrite", "leave out", "abstain"]

    FIRES = (("rewrite", "keep"), ("leave out", "keep"), ("abstain", "keep"))


class CheckClaims(Generate):
    """Attribution of each claim, and revision of unsupported ones.

    Source: Gao et al. 2023, "RARR: Researching and Revising What Language Models Say", arXiv:2210.08726,
    section 3 (agreement, then editing); Rashkin et al. 2023, "Measuring Attribution in Natural Language
    Generation Models", arXiv:2112.12870 (comparing a sentence with its cited sources).
    """

    @step("EVALUATOR", "check the claims", returns=CheckedDraft)
    def check_claims(self, text: str, hits: Ranking, draft: Draft, threshold: float) -> CheckedDraft:
        """Check each sentence of `draft`, an answer to `text` from `hits`, against the `HELD_AGAINST` nearest
        sentences of its cited passages, or of all passages if it cites none.

        A claim is supported if P(Yes) is at least `threshold`. It is unsupported if it contains a number that
        appears neither in its passages nor in the question: a small model overlooks invented figures.
        """
        if draft.abstained:
            return CheckedDraft(draft.text, (), "no claim", "the draft says that the passages do not answer")
        claims = tuple(self.check_claim(text, one, hits, threshold) for one in sentences(draft.text))
        if not claims:
            return CheckedDraft(draft.text, (), "no claim", "the draft has no sentence")
        right = sum(one.supported is True for one in claims)
        unread = sum(one.supported is None for one in claims)
        why = f"{right} of {len(claims)} claims supported" + (f", {unread} not checked" if unread else "")
        decision: Support = "some unsupported" if right else "none supported"
        if unread == len(claims):
            decision = "not checked"
        elif right + unread == len(claims):
            decision = "some not checked" if unread else "all supported"
        return CheckedDraft(draft.text, claims, decision, why)

    @step("EVALUATOR", "check a claim", returns=Claim)
    def check_claim(self, text: str, sentence: str, hits: Ranking, threshold: float) -> Claim:
        """Return the verdict on one sentence."""
        cited = tuple(n for n in markers(sentence) if 1 <= n <= len(hits)) or tuple(range(1, len(hits) + 1))
        said = unmarked(sentence)
        read = {n: hits[n - 1] for n in cited}
        shown = self._nearest(said, {n: hit.passage.text for n, hit in read.items()}, HELD_AGAINST)
        quotes = "\n".join(between(n, read[n].passage.title, quote) for n, quote in shown.items())
        about = (sentence, tuple(n for n in markers(sentence) if n in read), " … ".join(shown.values()))
        whole = " ".join((text, *(f"{hit.passage.title} {hit.passage.text}" for hit in read.values())))
        if made_up := unknown_numbers(said, whole):
            why = f"{', '.join(made_up)} stands neither in the passages cited nor in the question"
            return Claim(*about, None, False, why)
        found = self._yes(CLAIM, threshold, passages=quotes, question=text, claim=in_line(said))
        why = found.why if found.by else f"not checked: {found.why}"
        return Claim(*about, found.share, found.enough, why)

    @step("CHAIN", "revise or keep", returns=Revision)
    def revise(self, checked: CheckedDraft, done: int, rounds: int, lacking: str) -> Revision:
        """Decide how to proceed after `done` of at most `rounds` revisions.

        Claims that could not be checked are not rewritten, as nothing contradicts them; they are left out if
        other claims are supported. If no claim could be checked, the draft stays.
        """
        if checked.decision in ("all supported", "no claim", "not checked"):
            return Revision("keep", checked.why)
        if checked.decision == "some not checked":
            return Revision("leave out", checked.why)
        if done < rounds and not lacking:
            return Revision("rewrite", f"{checked.why}; revision {done + 1} of {rounds}")
        ended = lacking or f"{done} of {rounds} revisions are made"
        if checked.decision == "none supported":
            return Revision("abstain", f"{checked.why}; {ended}")
        return Revision("leave out", f"{checked.why}; {ended}")

    @step("LLM", "rewrite the unsupported claims", returns=Draft)
    def rewrite_claims(self, text: str, hits: Ranking, checked: CheckedDraft) -> Draft:
        """Rewrite each unsupported claim from the sentences nearest to it, or drop it if the passages do not
        cover it. The other claims stay unchanged.
        """
        parts: list[str] = []
        for claim in checked.claims:
            better = self._mended(text, hits, claim) if claim.supported is False else claim.text
            if better and wording(better) not in map(wording, parts):
                parts.append(better)
        return self._draft(parts, hits)

    def _mended(self, text: str, hits: Ranking, claim: Claim) -> str:
        """Return another sentence with its marker, or "" if the model has none.

        If the reply is only a marker, the claim stands and cites that passage. A reply without a marker cites
        the passage of the nearest sentence. Both are checked again.
        """
        wanted = f"{text} {unmarked(claim.text)}"
        texts = {n: hit.passage.text for n, hit in enumerate(hits, 1)}
        shown = self._nearest(wanted, texts, MENDED_FROM)
        quotes = "\n".join(between(n, hits[n - 1].passage.title, quote) for n, quote in shown.items())
        try:
            reply = self._ask(
                MEND,
                max_tokens=60,
                stop=("\n",),
                reuse_prefix=True,
                stream=True,
                passages=quotes,
                question=text,
                claim=in_line(unmarked(claim.text)),
            )
        except ModelFailed as error:
            self.note(f"left out, as the model failed: {error}")
            return ""
        said = first_line(reply.text)
        if markers(said) and not wording(unmarked(said)):
            return f"{unmarked(claim.text)} {said}"
        better = "" if wording(said) == NOTHING else next(iter(sentences(said)), "")
        if better and shown and not markers(better) and not abstains(better):
            better += f" [{next(iter(self._nearest(better, shown, 1)))}]"
        return better

    @step("CHAIN", "keep what is supported", returns=Draft)
    def keep_supported(
        self,
        drafts: tuple[Draft, ...],
        checked: tuple[CheckedDraft, ...],
        plan: Revision | None,
        hits: Ranking,
    ) -> Draft:
        """Return the answer according to `plan`: the last draft, only its supported claims, or an abstention.
        Without a plan the budget was spent, and the last checked draft, or else the first, is the answer.
        """
        at = max(len(checked) - 1, 0) if plan is None else len(drafts) - 1
        draft = drafts[at]
        reason: str = "budget spent" if plan is None else plan.decision
        if plan is not None and checked and checked[-1].decision == "not checked":
            reason = "not checked"
        if plan is not None and plan.decision == "leave out":
            draft = self._draft([one.text for one in checked[-1].claims if one.supported], hits)
        elif plan is not None and plan.decision == "abstain":
            draft = Draft(NOT_ANSWERED, abstained=True, shown=draft.shown)
        shares = tuple(one.share for one in checked)
        told = ", ".join("none" if share is None else f"{share:.0%}" for share in shares) or "none"
        why, decision = f"{reason}; claims supported by draft: {told}", f"draft {at + 1} of {len(drafts)}"
        self.span.output = DraftChoice(at + 1, len(drafts), decision, reason, why, shares)
        return draft

    def _draft(self, parts: Sequence[str], hits: Ranking) -> Draft:
        if not parts:
            return Draft(NOT_ANSWERED, abstained=True, shown=tuple(hit.passage.id for hit in hits))
        return resolve(" ".join(parts), [hit.passage.id for hit in hits])

    def _nearest(self, wanted: str, texts: Mapping[int, str], most: int) -> dict[int, str]:
        """Of `texts` by number the `most` sentences nearest to `wanted`, joined in their order."""
        pairs = [(n, sentence) for n, text in texts.items() for sentence in sentences(text)]
        if not pairs:
            return {}
        vectors = self.vectors_of_texts([sentence for _, sentence in pairs])
        best = np.argsort(-(vectors @ self.context.embedder.embed_query(wanted)), kind="stable")[:most]
        shown: dict[int, list[str]] = {}
        for at in sorted(best):
            shown.setdefault(pairs[at][0], []).append(pairs[at][1])
        return {n: " ".join(some) for n, some in shown.items()}


def unknown_numbers(claim: str, text: str) -> tuple[str, ...]:
    """Return the numbers in `claim` that are missing from `text`. Digits and decimal point are compared:
    "1,000" equals "1000".
    """
    known = {_plain(number) for number in _NUMBER.findall(text)}
    return tuple(number for number in dict.fromkeys(_NUMBER.findall(claim)) if _plain(number) not in known)


def _plain(number: str) -> str:
    """Remove commas, points and leading zeros. A group of three digits after a separator cannot be
    distinguished from a fraction, so both separators are removed.
    """
    return re.sub(r"[.,]", "", number).lstrip("0") or "0"
