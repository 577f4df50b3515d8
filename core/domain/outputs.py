"""The outputs that spans record: tagged types, which readers dispatch on.

`document` and `from_document` convert them to JSON and back. Types are only extended: a new field has a
default, so that stored runs stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from core.domain.errors import BadInput
from core.domain.filters import Filter

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Scored = tuple[tuple[str, float], ...]  # (passage id, score), best first: a ranking without its texts
Terms = tuple[tuple[str, float], ...]  # (term or token, weight)
State = Literal["scored", "not scored", "error"]


OUTPUTS: dict[str, type[Output]] = {}  # by tag


class Output:
    """Base of what a span records. `type` is the tag of stored outputs: the class' name in snake_case."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    type: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "type" not in vars(cls):
            cls.type = re.sub(r"\B(?=[A-Z])", "_", cls.__name__).lower()
        OUTPUTS[cls.type] = cls


@dataclass(frozen=True, slots=True)
class Pass(Output):
    """The result of a step on which no other step or reader builds."""

    value: Any = None  # the result as plain JSON


@dataclass(frozen=True, slots=True)
class Reply(Output):
    """A reply of a language model."""

    text: str  # partial while `streaming`
    model: str = ""
    made: str = ""  # timestamp of a cached reply, ISO 8601; "" for a live one
    streaming: bool = False
    cut: bool = False  # True if it ended at its token limit
    reasoning: str = ""  # the model's reasoning before the answer


@dataclass(frozen=True, slots=True)
class Waited(Output):
    """A wait for a model."""

    place: int | None = None  # place in the queue, 1 is next
    about: float | None = None  # estimated seconds of the wait, by recent calls
    until: str = ""  # what is waited for, if there is no estimate
    over: bool = False  # True once the wait has ended
    others_ms: float = 0.0  # milliseconds waited for others, which no time of the route counts
    own_ms: float = 0.0  # milliseconds waited for the route's own calls, which count


@dataclass(frozen=True, slots=True)
class MatchedPassage:
    """A passage matched with the question token by token."""

    id: str
    best: Terms  # for each question token, the most similar passage token and their cosine
    passage: tuple[str, ...] = ()  # the first tokens of the passage
    tokens: int = 0  # number of tokens of the passage
    # one row per question token, one column per token in `passage`; empty if only `best` is kept
    cosines: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenMatches:
    """Token by token: the question's tokens, and how the first hits matched them."""

    query: tuple[str, ...]
    hits: tuple[MatchedPassage, ...]


@dataclass(frozen=True, slots=True)
class Recalled:
    """The weight of a remembered turn."""

    id: str
    similarity: float
    age: int  # number of turns since
    recency: float  # 0 to 1, like `similarity` and `score`
    score: float


@dataclass(frozen=True, slots=True)
class Seed:
    """A phrase of the graph at which a walk begins."""

    phrase: str
    node: int  # its number in the graph
    weight: float  # `score` divided by `passages`
    score: float  # how much the question asks for it
    passages: int  # number of passages that mention it
    # the question names it, names something alike, or a relation near the question ties it
    by: Literal["name", "alike", "relation"]
    asked: str  # the name or the relation that led to it


@dataclass(frozen=True, slots=True)
class Entities(Output):
    """The start of a graph walk."""

    seeds: tuple[Seed, ...]  # heaviest first
    unknown: tuple[str, ...] = ()  # names in the question that are not in the graph


@dataclass(frozen=True, slots=True)
class Node:
    """A phrase or a passage of the graph."""

    name: str  # the phrase, or the passage's id
    kind: Literal["phrase", "passage"]
    score: float  # share of the walk's time spent there
    seed: float = 0.0  # share of the restarts made there


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two nodes."""

    a: int  # place of a node among those kept
    b: int  # place of the other node
    weight: float
    # a passage mentions a phrase; two phrases are related, or alike
    kind: Literal["mention", "relation", "alike"]


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk over a graph."""

    nodes: tuple[Node, ...]  # some nodes: where it began, and those visited most
    edges: tuple[Edge, ...]  # the edges among these nodes
    damping: float  # probability of following an edge
    iterations: int
    change: float  # sum of the changes of shares in the last iteration
    begun: int  # number of nodes where it began
    phrases: int  # number of phrases in the graph
    passages: int  # number of passages in the graph
    links: int  # number of links in the graph


@dataclass(frozen=True, slots=True)
class Search(Output):
    """A search; its hits are on the span."""

    texts: tuple[str, ...] = ()  # the text searched, or () for a vector, whose step the link names
    model: str = ""
    # by passage, the text that represented it in the index
    keys: Mapping[str, str] = field(default_factory=dict)
    terms: int = 0  # number of weighted terms searched
    expansion: Terms = ()  # the heaviest terms searched
    matched: Mapping[str, Terms] = field(default_factory=dict)  # the terms' contributions to the first hits
    tokens: TokenMatches | None = None
    recalled: tuple[Recalled, ...] = ()
    unfound: str = ""  # why the words found nothing; "" if they did
    walk: Walk | None = None  # the graph walk that found the hits
    where: tuple[Filter, ...] = ()  # the filters applied
    codes: str = ""  # kind of vector codes used in a first pass
    # if `keys` are summaries: the first passages by their own vectors, best first
    alone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterRead:
    """A condition read from the question."""

    filter: Filter
    words: str  # the words it was read from; "" if a model read it
    passages: int  # number of passages that match it alone
    dropped: str = ""  # why it is not used; "" if it is


@dataclass(frozen=True, slots=True)
class FiltersRead(Output):
    """The conditions read from a question."""

    found: tuple[FilterRead, ...]
    left: int  # number of passages that meet those kept and the run's own filters
    of: int  # number of passages of the corpus
    by: str = "rules"  # "rules" or "model"

    @property
    def kept(self) -> tuple[Filter, ...]:
        """Those that are used."""
        return tuple(one.filter for one in self.found if not one.dropped)


@dataclass(frozen=True, slots=True)
class SampleSearches(Output):
    """One search for each of several texts, to compare them."""

    texts: tuple[str, ...]
    lists: tuple[Scored, ...]  # the list of each text, in their order
    overlap: float | None  # mean Jaccard overlap of two lists; None for fewer than two
    in_all: tuple[str, ...]  # ids of the passages in every list
    where: tuple[Filter, ...] = ()  # the filters applied


@dataclass(frozen=True, slots=True)
class VectorSpread:
    """The spread of unit vectors."""

    pairwise: float  # mean cosine distance of two vectors
    from_mean: float  # 1 minus the length of the mean vector


@dataclass(frozen=True, slots=True)
class Embedding(Output):
    """A vector of texts, or one for each token."""

    texts: tuple[str, ...]
    question: str | None = None  # the question, if it was averaged in
    recalled: tuple[str, ...] = ()  # ids of the remembered turns that the vector was moved towards
    spread: VectorSpread | None = None  # spread of the vectors of `texts` alone
    feedback: tuple[str, ...] = ()  # ids of the first passages found that the vector was moved towards

    @property
    def single(self) -> str | None:
        """The text that was embedded, if it was one text and nothing else."""
        alone = len(self.texts) == 1 and self.question is None and not self.recalled and not self.feedback
        return self.texts[0] if alone else None


@dataclass(frozen=True, slots=True)
class Rewrite(Output):
    """Texts written to search with."""

    before: str  # the text they were written from
    texts: tuple[str, ...]
    # the question in other words, several ways to ask, its parts, passages that may answer it, keywords, or
    # the question with something put in
    role: Literal["question", "variants", "parts", "passages", "keywords", "context"]
    terms: Terms = ()  # the weighted terms, if it is a list of terms
    added: tuple[str, ...] = ()  # those of the terms that are not the question's
    passages: tuple[str, ...] = ()  # ids of the passages that the terms are from

    @property
    def single(self) -> bool:
        """Return True if the text replaces the question, instead of being one of several texts."""
        return self.role in ("question", "keywords", "context")

    @property
    def changed(self) -> bool:
        """Return True if the texts differ from the original."""
        return self.texts != (self.before,)


Method = Literal["rrf", "linear", "fitted", "union", "best", "append", "collect", "concat", "reported"]


@dataclass(frozen=True, slots=True)
class Fusion(Output):
    """A fusion of several lists. Its settings are the span's arguments; its lists are the span's links, in
    order.

    "append", "collect" and "concat" put one list after another, and the first keeps its places. "reported" is
    an external pipeline's fusion of unknown method.
    """

    method: Method
    names: tuple[str, ...] = ()  # names of the lists
    # by text, the passages that no other text found
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # by passage, its rank in each list
    ranks: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    # by passage, each list's contribution to its score
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    new: tuple[str, ...] = ()  # the passages a collection gained
    features: tuple[str, ...] = ()  # the feature of each fitted weight

    @property
    def in_turn(self) -> bool:
        """Return True if the lists were concatenated instead of ranked together."""
        return self.method in ("append", "collect", "concat")


@dataclass(frozen=True, slots=True)
class Reranked:
    """One passage in its new place."""

    id: str
    was: int  # earlier rank, from 1
    before: float  # earlier score
    score: float | None  # the reranker's score; None if there is none, which `state` and `why` explain
    # by signal, its value and its contribution to the score
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    state: State = "scored"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rerank(Output):
    """A list in another order."""

    reranker: str = ""
    order: tuple[Reranked, ...] = ()
    words: Mapping[str, float] = field(default_factory=dict)  # weights of the question's words
    scored: int = 0
    tokens: TokenMatches | None = None
    unmoved: str = ""  # why nothing was reordered; "" if it was


@dataclass(frozen=True, slots=True)
class PassageGrade(Output):
    """A passage's grade."""

    id: str
    grade: float | None  # 0 to 1; None if unavailable
    state: State
    why: str = ""
    value: float | None = None  # the grade on the grader's own scale
    by: str | None = None  # how the grade was read


@dataclass(frozen=True, slots=True)
class Round:
    """A round of searching, judged by its mean grade on the grader's own scale."""

    searched: str
    mean: float | None
    before: float | None  # the mean of the round before
    number: int  # from 1
    threshold: float
    gain: float
    rounds: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Grading(Output):
    """Grades of several passages and the decision made from them."""

    grades: tuple[PassageGrade, ...]
    low: float  # below it, the best grade means that nothing found is trusted
    high: float  # from it on, the best grade means that what was found is trusted
    decision: str
    why: str
    ways: tuple[str, ...]
    evaluator: str = ""
    round: Round | None = None  # set if the mean grade decided, instead of the best


@dataclass(frozen=True, slots=True)
class Weighed:
    """A feature that a decision was computed from."""

    feature: str
    value: float
    part: float  # what it adds to the logit of the likeliest way above that of the next one


@dataclass(frozen=True, slots=True)
class Decision(Output):
    """A decision with its reason.

    If a `score` was compared with a `threshold`, the first of `ways` applies from the threshold up, the
    second below it.
    """

    decision: str  # one of `ways`
    ways: tuple[str, ...]
    why: str  # one sentence
    score: float | None = None
    threshold: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)  # score of each way
    text: str = ""  # text to continue with
    details: Mapping[str, Any] = field(default_factory=dict)  # plain JSON, for readers
    weighed: tuple[Weighed, ...] = ()  # the features, most influential first
    between: tuple[str, str] | None = None  # the two likeliest ways, which `weighed` separates


@dataclass(frozen=True, slots=True)
class Pick:
    """A passage chosen by MMR."""

    id: str
    was: int  # its earlier rank, from 1
    score: float  # its MMR score when it was chosen
    relevance: float
    similarity: float
    nearest: str | None  # id of the chosen passage it is most like; None for the first


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The better passage that a dropped one duplicates."""

    kept: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Selection(Output):
    """Some of the passages given. Each method fills its own fields."""

    # "named": passages that something else names, such as an answer's citations
    method: Literal["mmr", "duplicates", "floor", "round", "named"]
    chosen: tuple[Pick, ...] = ()  # "mmr": the passages in the order chosen
    near: tuple[float, ...] = ()  # "mmr": cosines of the first passages given with the question
    alike: tuple[int, ...] = ()  # "mmr": their likeness to each other, see `core.steps.select.pack`
    dropped: Mapping[str, Duplicate] = field(default_factory=dict)  # "duplicates": by passage id
    cosines: Mapping[str, float] = field(default_factory=dict)  # "floor": of all passages
    floor: float | None = None  # "floor": the least cosine of a passage that is kept
    at: int | None = None  # "round": place of the list that was taken
    decision: str = ""
    reason: str = ""  # "round": why searching ended
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A piece of a passage."""

    id: str  # the passage's id
    text: str
    score: float | None  # similarity to the question; None if not computed
    kept: bool
    heading: str = ""  # the last heading above it in its passage


@dataclass(frozen=True, slots=True)
class SentenceFilter(Output):
    """Passages split into pieces, some of which are kept."""

    sentences: tuple[Sentence, ...]
    floor: float | None = None  # minimum score of a kept piece; None if a model chose

    @property
    def by_passage(self) -> dict[str, tuple[Sentence, ...]]:
        """The pieces of each passage, passages in the order in which they were seen."""
        found: dict[str, list[Sentence]] = {}
        for sentence in self.sentences:
            found.setdefault(sentence.id, []).append(sentence)
        return {id: tuple(some) for id, some in found.items()}

    @property
    def kept(self) -> int:
        """Return the number of kept pieces."""
        return sum(sentence.kept for sentence in self.sentences)


@dataclass(frozen=True, slots=True)
class Excerpts(Output):
    """The remaining text of each passage, by passage id, and the tokens saved."""

    excerpts: Mapping[str, str]
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """A passage of which several pieces were found."""

    id: str
    found: int  # number of its pieces found
    pieces: int  # number of its pieces
    text: str = ""  # what is read of it; "" for all


@dataclass(frozen=True, slots=True)
class Merging(Output):
    """The passages read whole, because more than `share` of their pieces were found."""

    passages: tuple[Merged, ...]
    share: float

    @property
    def excerpts(self) -> dict[str, str]:
        """Return the text read from each passage that is not read whole."""
        return {one.id: one.text for one in self.passages if one.text}


@dataclass(frozen=True, slots=True)
class Written(Output):
    """A written answer."""

    text: str
    cited: tuple[str, ...] = ()  # ids of the cited passages
    abstained: bool = False
    wrong: tuple[int, ...] = ()  # markers that no passage has
    uncited: tuple[str, ...] = ()  # sentences without a marker
    shown: tuple[str, ...] = ()  # ids of the passages in the prompt, in its order
    copied: bool = False  # True if its sentences were copied from the passages instead of written by a model
    evidence: float | None = None  # P(Yes) that the passages hold an answer, if copying checked it
    floor: float | None = None  # what `evidence` was compared with
    unaided: bool = False  # True if it was written without passages
    attention: Mapping[str, float] = field(default_factory=dict)  # share of attention by passage id


@dataclass(frozen=True, slots=True)
class ShortAnswer(Output):
    """A few words copied from passages that answer `question`, used in a later search."""

    question: str
    text: str  # "" if there is none
    source: str = ""  # id of the passage that contains it


@dataclass(frozen=True, slots=True)
class Criticised:
    """One claim of a draft with its verdict."""

    claim: str
    supported: bool | None  # None if not judged
    passage: int | None = None  # number of the cited passage, from 1; None if unknown
    probability: float | None = None  # P(Yes) that `evidence` states the claim
    evidence: str = ""  # the sentences it was compared with
    why: str = ""


@dataclass(frozen=True, slots=True)
class ClaimChanges:
    """The changes to the claims of the draft before."""

    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Critique(Output):
    """A draft with the verdicts on its claims."""

    draft: str
    claims: tuple[Criticised, ...]
    share: float | None  # share of the claims that are supported; None without claims
    feedback: str
    changes: ClaimChanges | None
    decision: str
    ways: tuple[str, ...]
    why: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DraftChoice(Output):
    """The choice of the final draft."""

    kept: int  # number of the draft, from 1
    drafts: int
    decision: str
    reason: str
    why: str
    shares: tuple[float | None, ...] = ()  # share of supported claims of each judged draft


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment written from a passage, in its place in a tree."""

    passage: str  # the passage's id
    text: str
    relevance: float | None = None
    support: Mapping[str, float] | None = None
    utility: float | None = None
    likelihood: float | None = None
    parent: int | None = None  # index in the tree; None at the beginning
    depth: int = 1
    ended: str = ""  # why writing it ended
    score: float | None = None  # its own score
    path: float | None = None  # mean score along its path
    chosen: bool = False  # True if it is part of the answer
    why: str = ""  # what is missing, if it was not judged in full
    by: tuple[str, ...] = ()  # how each judgement was read


@dataclass(frozen=True, slots=True)
class SegmentTree(Output):
    """Segments with their judgements, which can be ranked again with other weights."""

    decision: str
    why: str
    branches: tuple[Segment, ...]
    weights: Mapping[str, float]
    beam: int = 1
    segments: int = 1
    unjudged: tuple[Segment, ...] = ()  # segments without all judgements, each with `why`; never chosen


@dataclass(frozen=True, slots=True)
class Attempt:
    """One query of a model."""

    sql: str
    error: str = ""  # what was wrong with it; "" for nothing
    repairs: str = ""  # what it was to mend; "" for the first query


@dataclass(frozen=True, slots=True)
class TableResult(Output):
    """The result of querying a database."""

    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    tables: tuple[str, ...]
    database: str
    decision: str
    ways: tuple[str, ...]
    why: str
    truncated: str = ""
    error: str = ""
    attempts: tuple[Attempt, ...] = ()
    links: tuple[str, ...] = ()  # stored values that the question names
    joins: tuple[str, ...] = ()  # join conditions between the tables
    bounded: bool = False  # True if a grammar of the schema constrained the query


@dataclass(frozen=True, slots=True)
class ReturnedHit:
    """One hit as a pipeline of the user's returned it, with its place in the corpus."""

    id: str  # equal for hits of equal document and words
    score: float
    doc: str  # its document in the corpus, or as the pipeline named it
    start: int | None = None  # its first character in that document; None if the place is not known
    end: int | None = None  # the character after its last one
    ids: tuple[str, ...] = ()  # the passages of the corpus it stands for
    text: str = ""  # only if its place is not known


@dataclass(frozen=True, slots=True)
class External(Output):
    """A call of an external pipeline, with how its hits match the corpus."""

    pipeline: str
    door: str
    hits: int = 0  # number returned
    matched: int = 0  # number of `hits` that are passages of the corpus
    rules: Mapping[str, int] = field(default_factory=dict)  # number of matches by rule
    unmatched: tuple[str, ...] = ()  # ids of hits that are not in the corpus
    matching: str = ""  # a summary in one sentence
    matching_ms: float | None = None
    # names of the reported stages, in order; () if it reported only its final list
    stages: tuple[str, ...] = ()
    scored: bool = True
    inside_ms: float | None = None  # duration of the pipeline's own code by its own clock
    made: str = ""  # timestamp of a stored reply, ISO 8601; "" for a live one
    ignored: tuple[str, ...] = ()  # names of fields that nothing reads
    returned: tuple[ReturnedHit, ...] = ()  # its last list, hit by hit


@dataclass(frozen=True, slots=True)
class ScoreCut(Output):
    """A ranking ended at the largest drop of its scores."""

    kept: int  # number of passages kept
    drop: int  # rank after which the scores drop most; 0 for none
    size: float  # the drop's size
    guarded: bool = False  # True if the minimum length kept more passages than the drop
    type = "cut"


@dataclass(frozen=True, slots=True)
class Inserted(Output):
    """Passages that were put into a ranking though no search found them, in the order they were drawn."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WebGrades(Output):
    """Grades of web results, by the evaluator that graded the corpus' passages. From `high` on a result is
    trusted.
    """

    grades: tuple[PassageGrade, ...]
    high: float
    evaluator: str = ""


Decided = Grading | Decision | Critique | DraftChoice | SegmentTree | TableResult  # has `decision` and `why`
NOTHING = Pass()


def document(output: Output) -> dict[str, Any]:
    """Convert an output to JSON values with its type, omitting default fields."""
    return {"type": output.type, **_adapter(output.type).dump_python(output, exclude_defaults=True)}


def from_document(given: Any) -> Output:
    """Convert a document to an output. Raises BadInput with the first invalid field."""
    tag = given.get("type") if isinstance(given, dict) else None
    if tag not in OUTPUTS:
        raise BadInput(f"a step's output: its type is none of {', '.join(OUTPUTS)}")
    try:
        own = {name: one for name, one in given.items() if name != "type"}
        found: Output = _adapter(tag).validator.validate_python(own)
    except ValueError as error:  # pydantic's ValidationError
        raise BadInput(f"a step's output: {tag}.{fault(error)}") from None
    return found


def fault(error: Any) -> str:
    """Return the location and message of the first of pydantic's validation errors."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = " ".join(".".join(map(str, first["loc"])).split())[:120] or "all of it"
    return f"{place}: {first['msg']}"


@cache
def _adapter(tag: str) -> TypeAdapter[Output]:
    """Made when first needed: a process that stores nothing does without pydantic."""
    from pydantic import TypeAdapter

    return TypeAdapter(OUTPUTS[tag])
