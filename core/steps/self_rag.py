"""Steps of a model that decides by tokens of its own when to retrieve, and judges what it wrote.

Source: Asai et al. 2023, "Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection",
arXiv:2310.11511; the tokens and the prompt are those of the released models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from core.backends.base import Completion, LLMRequest, Message, TokenLogprob
from core.backends.prompting.citations import NOT_ANSWERED, Draft, unmarked
from core.backends.prompting.untrusted import harmless
from core.domain.errors import ModelFailed
from core.domain.outputs import Decision, Pass, Rerank, Reranked, Segment, SegmentTree
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.beam import GOES_ON, judged_tree, path_to, score_of
from core.steps.decisions import Decided
from core.steps.step import step
from core.steps.trace import plain

RETRIEVE, NO_RETRIEVAL, CONTINUE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"
RELEVANCE = ("[Relevant]", "[Irrelevant]")
SUPPORT = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
UTILITY = tuple(f"[Utility:{n}]" for n in range(1, 6))
WORTH = (-1.0, -0.5, 0.0, 0.5, 1.0)  # of each utility, section 3.3
TOKENS = (RETRIEVE, NO_RETRIEVAL, CONTINUE, *RELEVANCE, *SUPPORT, *UTILITY)
ALTERNATIVES = 20  # the most a vLLM server gives by default

_WRITTEN = re.compile("|".join(map(re.escape, TOKENS)))
_MARKUP = re.compile(r"</?paragraph>|</?s>|<unk>|\[PAD\]")
_NAMES = "|".join(re.sub(r"[\s:/]+", r"[\\s:/]*", token.strip("[]")) for token in TOKENS)
_INJECTED = re.compile(
    rf"\[(?=\s*(?:{_NAMES}|PAD)\s*\])|<(?=\s*/?\s*(?:paragraph|s|unk)\s*/?>)", re.IGNORECASE
)
_HEADING = re.compile(
    r"^(?:[^\S\n]|#)*#(?=\s*(?:instruction|input|response)\b)", re.IGNORECASE | re.MULTILINE
)

Ended = Literal["end", "retrieve", "cut"]


def foreign(text: str) -> str:
    """`text` of a question or passage without anything the model would read as a token or mark of its own:
    "[Relevant]" becomes "⟦Relevant]", "</paragraph>" becomes "‹/paragraph>".
    """
    marked = _INJECTED.sub(lambda found: "⟦" if found[0] == "[" else "‹", harmless(text))
    return _HEADING.sub("", marked)


def opening(question: str) -> str:
    """Return the prompt up to the model's own words."""
    return f"### Instruction:\n{foreign(question)}\n\n### Response:\n"


def evidence(title: str, text: str) -> str:
    """Format a passage as the model reads it, after the token that requests it."""
    return f"{RETRIEVE}<paragraph>{foreign(title)}\n{foreign(text)}</paragraph>"


def spoken(text: str) -> str:
    """Remove the reflection tokens and marks from a model's text."""
    return " ".join(_MARKUP.sub(" ", _WRITTEN.sub(" ", text)).split())


def odds(token: TokenLogprob, names: tuple[str, ...]) -> tuple[float, ...] | None:
    """Return the probabilities of `names` at a token, normalised to 1, or None if no alternative matches."""
    found = dict.fromkeys(names, 0.0)
    for written, logprob in dict(token.top or ((token.token, token.logprob),)).items():
        if written.strip() in found:
            found[written.strip()] += math.exp(logprob)
    total = sum(found.values())
    return tuple(mass / total for mass in found.values()) if total > 0 else None


@dataclass(frozen=True, slots=True)
class ReflectionSegment:
    """A text segment up to the model's next request for passages, with the model's own judgements."""

    text: str
    raw: str  # the text with its tokens, which a continuation needs
    relevance: float | None  # None if not judged, like `support` and `utility`
    support: Mapping[str, float] | None
    utility: float | None
    likelihood: float  # geometric mean of the tokens' probabilities
    ended: Ended  # "cut" at the token limit
    asks: float | None = None  # P(retrieve) against P(no retrieval) at the end


def read_segment(completion: Completion, threshold: float | None) -> ReflectionSegment:
    """Read the segment at the beginning of a completion and drop the rest.

    It ends with its first utility token, at [Retrieval], and, unless `threshold` is None, at a [No Retrieval]
    where [Retrieval] has at least that share of the two. Raises ModelFailed if text and tokens disagree.
    """
    places = _places(completion)
    end, size = len(completion.text), len(completion.logprobs)
    ended: Ended = "cut" if completion.finish == "length" else "end"
    asks = None
    for name, start, stop, at in places:
        if name in (RETRIEVE, NO_RETRIEVAL):
            share = odds(completion.logprobs[at], (RETRIEVE, NO_RETRIEVAL))
            asks = share[0] if share else None
            if name == RETRIEVE or (threshold is not None and (asks or 0.0) >= threshold):
                end, size, ended = start, at, GOES_ON
                break
        elif name in UTILITY:
            end, size, ended = stop, at + 1, "end"
            break
    tokens, raw = completion.logprobs[:size], completion.text[:end]
    relevance = odds(tokens[0], RELEVANCE) if tokens else None
    support = _first(tokens, SUPPORT)
    utility = _first(tokens, UTILITY)
    return ReflectionSegment(
        spoken(raw),
        raw.removesuffix("</s>"),
        relevance[0] if relevance else None,
        dict(zip(("fully", "partially", "no"), support, strict=True)) if support else None,
        sum(worth * mass for worth, mass in zip(WORTH, utility, strict=True)) if utility else None,
        math.exp(sum(token.logprob for token in tokens) / len(tokens)) if tokens else 0.0,
        ended,
        asks,
    )


def _first(tokens: tuple[TokenLogprob, ...], names: tuple[str, ...]) -> tuple[float, ...] | None:
    return next((odds(token, names) for token in tokens if token.token.strip() in names), None)


def _places(completion: Completion) -> Iterator[tuple[str, int, int, int]]:
    """Each reflection token: name, characters [start, stop) of the text, and index among the tokens."""
    at = [n for n, token in enumerate(completion.logprobs) if token.token.strip() in TOKENS]
    named = [completion.logprobs[n].token.strip() for n in at]
    found = list(_WRITTEN.finditer(completion.text))
    spans = [match.span() for match in found]
    if [match[0] for match in found] == named[:-1] and named[-1:] == [RETRIEVE]:
        spans.append((len(completion.text),) * 2)  # a server that leaves out what it was told to stop at
    elif [match[0] for match in found] != named:
        raise ModelFailed(
            f"{completion.model} gives {len(found)} reflection tokens in its text and {len(named)} among its "
            "tokens: it is no reflection-token model, or its server hides special tokens"
        )
    return ((name, *span, n) for name, span, n in zip(named, spans, at, strict=True))


Written = tuple[tuple[Hit, ReflectionSegment], ...]  # a segment from each passage
LENGTH = 100  # tokens of a segment at most, as the released decoder has it
When = Literal["adaptive", "always", "never"]
Stop = Literal["go on", "every path has ended", "as deep as allowed", "nothing found"]


@dataclass(frozen=True, slots=True)
class RetrievalDecision(Decided):
    """The decision whether the model receives passages."""

    decision: Literal["retrieve", "no retrieval"]
    probability: float | None = None  # P([Retrieval]) against P([No Retrieval])
    threshold: float | None = None

    SCORE = "probability"
    FIRES = (("no retrieval", "retrieve"),)


@dataclass(frozen=True, slots=True)
class GrowingTree:
    """All segments written, in order; `kept` are the last ones of the paths in the beam, `open` those to go
    on from (None is the beginning).
    """

    weights: dict[str, float]
    beam: int
    segments: int
    branches: tuple[Segment, ...] = ()
    raws: tuple[str, ...] = ()  # the model's words of each segment, tokens included
    kept: tuple[int, ...] = ()
    open: tuple[int | None, ...] = (None,)
    found: Ranking = ()  # every passage that a segment was written from

    def text_of(self, at: int | None) -> str:
        """Return the text of segment `at`, or "" for None."""
        return "" if at is None else self.branches[at].text

    def raw(self, at: int | None) -> str:
        """Return the model's words up to the end of segment `at`, tokens included, passages omitted."""
        return "".join(self.raws[step] for step in path_to(self.branches, at))


class SelfRag(StepBase):
    """Self-RAG's decoding, against a model that was trained for it.

    Source: Asai et al. 2023, arXiv:2310.11511, algorithm 1 and section 3.3.
    """

    @step("EVALUATOR", "decide whether to retrieve", returns=RetrievalDecision)
    def wants_passages(self, text: str, when: When, threshold: float) -> RetrievalDecision:
        """adaptive: retrieve where P([Retrieval]) is at least `threshold` of the two tokens'."""
        if when != "adaptive":
            decision: Literal["retrieve", "no retrieval"] = "retrieve" if when == "always" else "no retrieval"
            return RetrievalDecision(decision, f"the parameter retrieve is {when}: the model was not asked")
        first = self._reflect(opening(text), 1)
        share = odds(first.logprobs[0], (RETRIEVE, NO_RETRIEVAL))
        if share is None:
            raise ModelFailed(
                f"neither {RETRIEVE} nor {NO_RETRIEVAL} is among the {len(first.logprobs[0].top)} likeliest "
                f"first tokens of {first.model}; it is not a reflection-token model"
            )
        enough = share[0] >= threshold
        told = f"P({RETRIEVE}) is {share[0]:.2f}, {'at least' if enough else 'below'} {threshold:g}"
        return RetrievalDecision("retrieve" if enough else "no retrieval", told, share[0], float(threshold))

    @step("LLM", "answer without passages", returns=Draft)
    def answer_unaided(self, text: str) -> Draft:
        """Return the model's continuation of [No Retrieval]; nothing is cited."""
        reply = self._reflect(opening(text) + NO_RETRIEVAL, 3 * LENGTH, stop=(RETRIEVE,))
        return Draft(_worded(spoken(reply.text), reply.model), unaided=True)

    @step("LLM", "write a segment for each passage", returns=Written)
    def write_segments(self, text: str, before: str, hits: Ranking, threshold: float | None) -> Written:
        """Write a continuation of `before` from each passage, in parallel. Failed ones are dropped with a
        note; raises ModelFailed if all failed, or if none was judged for relevance.
        """

        def write(hit: Hit) -> ReflectionSegment | ModelFailed:
            prompt = opening(text) + before + evidence(hit.passage.title, hit.passage.text)
            try:
                return read_segment(self._reflect(prompt, LENGTH, stop=(RETRIEVE,)), threshold)
            except ModelFailed as error:
                return error

        outcomes = tuple(zip(hits, self.each(write, hits), strict=True))
        errors = {hit.passage.id: one for hit, one in outcomes if isinstance(one, ModelFailed)}
        if errors:
            self.span.attributes["failed"] = {id: str(error) for id, error in errors.items()}
        if errors and len(errors) == len(hits):
            raise next(iter(errors.values()))
        written = tuple((hit, one) for hit, one in outcomes if isinstance(one, ReflectionSegment))
        if written and all(segment.relevance is None for _, segment in written):
            raise ModelFailed(
                f"the model judged none of {len(written)} passages; it writes no reflection tokens"
            )
        self.span.output = Pass([{"passage": hit.passage.id, **plain(segment)} for hit, segment in written])
        return written

    @step("EVALUATOR", "keep the best paths", returns=GrowingTree)
    def keep_best(self, tree: GrowingTree, grown: tuple[Written, ...]) -> GrowingTree:
        """`tree` with what was written from each of its open ends, cut back to the beam."""
        branches, raws, found = list(tree.branches), list(tree.raws), list(tree.found)
        for parent, written in zip(tree.open, grown, strict=True):
            depth = 1 if parent is None else tree.branches[parent].depth + 1
            for hit, one in written:
                support = None if one.support is None else dict(one.support)
                judged = (one.relevance, support, one.utility, one.likelihood)
                branches.append(Segment(hit.passage.id, one.text, *judged, parent, depth, one.ended))
                raws.append(one.raw)
                found.append(hit)
        _, result = judged_tree(branches, tree.weights, tree.beam, tree.segments)
        going = tuple(at for at in result.open if at >= len(tree.branches))
        deep = any(branches[at].ended == "retrieve" for at in result.kept)
        decision: Stop = "go on" if going else "as deep as allowed" if deep else "every path has ended"
        decision = decision if branches else "nothing found"
        kept = [{"segment": n, "passage": branches[n].passage, "path": result.paths[n]} for n in result.kept]
        why = (
            f"{len(kept)} paths are kept of {len(branches) - len(tree.branches)} new ones and those that had "
            f"ended (beam {tree.beam}); {len(going)} ask for more passages"
        )
        self.span.output = Decision(decision, get_args(Stop), why, details={"kept": kept})
        grown_tree = replace(tree, branches=tuple(branches), raws=tuple(raws), found=tuple(found))
        return replace(grown_tree, kept=result.kept, open=going)

    @step("RERANKER", "order by the segments written", returns=Ranking)
    def by_segments(self, tree: GrowingTree) -> Ranking:
        """Rank the passages by the best score of a segment written from each; the answer's own come first."""
        scores = [score_of(branch, tree.weights) for branch in tree.branches]
        cited = [tree.branches[at].passage for at in self._chosen(tree)]
        best: dict[str, float] = {}
        for branch, score in zip(tree.branches, scores, strict=True):
            best[branch.passage] = max(score, best.get(branch.passage, score))
        passages = {hit.passage.id: hit.passage for hit in tree.found}
        order = dict.fromkeys([*cited, *sorted(best, key=lambda id: (-best[id], id))])
        first = {hit.passage.id: (at, hit.score) for at, hit in reversed(list(enumerate(tree.found, 1)))}
        moved = tuple(Reranked(id, *first[id], best[id]) for id in order)
        self.span.output = Rerank(self.context.reflection().model, moved)
        return tuple(Hit(passages[id], 1 / rank) for rank, id in enumerate(order, 1))

    @step("EVALUATOR", "choose the best path", returns=Draft)
    def choose_path(self, tree: GrowingTree, hits: Ranking) -> Draft:
        """Return the answer along the best path, each segment with the number of its passage among `hits`.
        The span keeps the whole tree (see `core.steps.beam`).
        """
        judged, result = judged_tree(tree.branches, tree.weights, tree.beam, tree.segments)
        paths = result.paths
        chosen = self._chosen(tree)
        if chosen:
            decision = f"path of {len(chosen)} segment{'s' if len(chosen) > 1 else ''}"
            why = f"its mean score {paths[chosen[-1]]:.2f} is the highest of {len(tree.kept)} paths kept"
            if tree.open:
                why += "; the budget of calls was spent before it could go on"
        else:
            decision, why = "abstain", "no passage was found to write from"
        self.span.output = SegmentTree(
            decision, why, judged, dict(tree.weights), int(tree.beam), int(tree.segments)
        )
        if not chosen:
            return Draft(NOT_ANSWERED, abstained=True)
        numbers = {hit.passage.id: n for n, hit in enumerate(hits, 1)}
        told = [tree.branches[at] for at in chosen if tree.branches[at].text]
        text = " ".join(f"{unmarked(branch.text)} [{numbers[branch.passage]}]" for branch in told)
        _worded(text, self.context.reflection().model)
        return Draft(text, tuple(dict.fromkeys(branch.passage for branch in told)))

    def _chosen(self, tree: GrowingTree) -> list[int]:
        return path_to(tree.branches, tree.kept[0]) if tree.kept else []

    def _reflect(self, prompt: str, max_tokens: int, stop: tuple[str, ...] = ()) -> Completion:
        request = LLMRequest(
            "self-rag/1", (Message("user", prompt),), max_tokens, top_logprobs=ALTERNATIVES, stop=stop
        )
        return self._complete(request, llm=self.context.reflection())


def _worded(text: str, model: str) -> str:
    if not text:
        raise ModelFailed(f"{model} wrote only reflection tokens and no text")
    return text
