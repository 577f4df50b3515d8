"""The outputs that spans record: tagged types, which readers dispatch on.

`document` and `from_document` convert them to JSON and back. Types are only extended: a new field has a
default, so that stored runs stay readable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from core.domain.errors import BadInput
from core.domain.filters import Filter

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Scored = tuple[tuple[str, float], ...]  # (passage id, score), best first: a ranking without its texts
Terms = tuple[tuple[str, float], ...]  # (term or token, weight)
State = Literal["scored", "not scored", "error"]


@dataclass(frozen=True, slots=True)
class Pass:
    """Nothing that other steps or readers build on; `value` is what the step gave, as plain JSON."""

    value: Any = None
    type: Literal["pass"] = "pass"


@dataclass(frozen=True, slots=True)
class Reply:
    """A call of `model`: what it wrote, so far while `streaming`; `made` is when, ISO 8601, if that was
    before this run. `cut`: it ended at its limit of tokens.
    """

    text: str
    model: str = ""
    made: str = ""
    streaming: bool = False
    cut: bool = False
    reasoning: str = ""
    type: Literal["reply"] = "reply"


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait for a model: its `place` in the queue (1 is next) and `about` how many seconds that takes, by
    what recent calls took, or `until` what; once it is `over`, the milliseconds waited for others, which no
    time of the route counts, and for the route's own calls, which count.
    """

    place: int | None = None
    about: float | None = None
    until: str = ""
    over: bool = False
    others_ms: float = 0.0
    own_ms: float = 0.0
    type: Literal["waited"] = "waited"


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
    """A phrase of the graph, by its `node`, that a question leads to. `weight`: its `score` by the
    `passages` that mention it. `by`: the question names it ("name"), it is most like what the question names
    ("alike"), or a relation near the question ties it ("relation"); `asked` is the name, or the relation.
    """

    phrase: str
    node: int
    weight: float
    score: float
    passages: int
    by: Literal["name", "alike", "relation"]
    asked: str


@dataclass(frozen=True, slots=True)
class Entities:
    """The start of a graph walk."""

    seeds: tuple[Seed, ...]  # heaviest first
    unknown: tuple[str, ...] = ()  # names in the question that are not in the graph
    type: Literal["entities"] = "entities"


@dataclass(frozen=True, slots=True)
class Node:
    """A phrase, or a passage by its id: the share of the walk's time spent there, and that of the restarts
    made there.
    """

    name: str
    kind: Literal["phrase", "passage"]
    score: float
    seed: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """Two nodes by their places among those kept: a passage mentions a phrase, two phrases are related or
    alike.
    """

    a: int
    b: int
    weight: float
    kind: Literal["mention", "relation", "alike"]


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk over a graph of `phrases`, `passages` and `links`: some of the `nodes`, where it began and those
    visited most, with the `edges` among them. It began at `begun` nodes, followed an edge with probability
    `damping`, and took `iterations`, of which the last changed shares by `change` together.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    damping: float
    iterations: int
    change: float
    begun: int
    phrases: int
    passages: int
    links: int


@dataclass(frozen=True, slots=True)
class Search:
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
    type: Literal["search"] = "search"


@dataclass(frozen=True, slots=True)
class FilterRead:
    """A condition read from the question."""

    filter: Filter
    words: str  # the words it was read from; "" if a model read it
    passages: int  # number of passages that match it alone
    dropped: str = ""  # why it is not used; "" if it is


@dataclass(frozen=True, slots=True)
class FiltersRead:
    """The conditions read from a question by "rules" or the "model"; `left` of `of` passages meet those kept,
    and what the run asks for.
    """

    found: tuple[FilterRead, ...]
    left: int
    of: int
    by: str = "rules"
    type: Literal["filters_read"] = "filters_read"

    @property
    def kept(self) -> tuple[Filter, ...]:
        """Those that are used."""
        return tuple(one.filter for one in self.found if not one.dropped)


@dataclass(frozen=True, slots=True)
class SampleSearches:
    """One search for each of `texts`, to compare them: `lists` in their order, the mean Jaccard `overlap` of
    two lists (None for fewer than two), and the passages `in_all`. `where`: as for `Search`.
    """

    texts: tuple[str, ...]
    lists: tuple[Scored, ...]
    overlap: float | None
    in_all: tuple[str, ...]
    where: tuple[Filter, ...] = ()
    type: Literal["sample_searches"] = "sample_searches"


@dataclass(frozen=True, slots=True)
class VectorSpread:
    """The spread of unit vectors."""

    pairwise: float  # mean cosine distance of two vectors
    from_mean: float  # 1 minus the length of the mean vector


@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector (or one for each token) of `texts`, and of `question` where that was averaged in; drawn to
    `recalled` turns (passage ids) where there are any, or to `feedback`, the first passages found. `spread`
    is that of `texts` alone.
    """

    texts: tuple[str, ...]
    question: str | None = None
    recalled: tuple[str, ...] = ()
    spread: VectorSpread | None = None
    feedback: tuple[str, ...] = ()
    type: Literal["embedding"] = "embedding"

    @property
    def single(self) -> str | None:
        """The text that was embedded, if it was one text and nothing else."""
        alone = len(self.texts) == 1 and self.question is None and not self.recalled and not self.feedback
        return self.texts[0] if alone else None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Texts written from `before` to search with. `role`: the question in other words ("question"), one of
    several ways to ask ("variants"), its parts ("parts"), passages that may answer it ("passages"), keywords
    ("keywords"), the question with something put in ("context"). `terms`: where it is weighted terms, those;
    of them `added` are not the question's, and the `passages` gave them.
    """

    before: str
    texts: tuple[str, ...]
    role: Literal["question", "variants", "parts", "passages", "keywords", "context"]
    terms: Terms = ()
    added: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    type: Literal["rewrite"] = "rewrite"

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
class Fusion:
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
    type: Literal["fusion"] = "fusion"

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
class Rerank:
    """A list in another order."""

    reranker: str = ""
    order: tuple[Reranked, ...] = ()
    words: Mapping[str, float] = field(default_factory=dict)  # weights of the question's words
    scored: int = 0
    tokens: TokenMatches | None = None
    unmoved: str = ""  # why nothing was reordered; "" if it was
    type: Literal["rerank"] = "rerank"


@dataclass(frozen=True, slots=True)
class PassageGrade:
    """A passage's grade."""

    id: str
    grade: float | None  # 0 to 1; None if unavailable
    state: State
    why: str = ""
    value: float | None = None  # the grade on the grader's own scale
    by: str | None = None  # how the grade was read
    type: Literal["passage_grade"] = "passage_grade"


@dataclass(frozen=True, slots=True)
class Round:
    """A round of searching judged by its mean grade, on the grader's own scale: `before` is the mean of the
    round before, `number` counts from 1.
    """

    searched: str
    mean: float | None
    before: float | None
    number: int
    threshold: float
    gain: float
    rounds: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Grading:
    """Grades of several passages and what was decided by them: by the best of them against `low` and `high`,
    or, with `round`, by their mean.
    """

    grades: tuple[PassageGrade, ...]
    low: float
    high: float
    decision: str
    why: str
    ways: tuple[str, ...]
    evaluator: str = ""
    round: Round | None = None
    type: Literal["grading"] = "grading"


@dataclass(frozen=True, slots=True)
class Weighed:
    """A feature that a decision was computed from: its value, and the `part` that it adds to the logit of the
    likeliest way above that of the next one.
    """

    feature: str
    value: float
    part: float


@dataclass(frozen=True, slots=True)
class Decision:
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
    type: Literal["decision"] = "decision"


@dataclass(frozen=True, slots=True)
class Pick:
    """A passage that MMR chose: its rank (from 1) before, its score then, and what it was most like."""

    id: str
    was: int
    score: float
    relevance: float
    similarity: float
    nearest: str | None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The better passage that a dropped one duplicates."""

    kept: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Selection:
    """Some of what was given. Each method fills its own fields.

    "mmr": `chosen`, and of the first passages given their cosines with the question (`near`) and likeness
    (`alike`, see `core.steps.select.pack`), from which other values can be tried. "duplicates": `dropped`.
    "floor": `cosines` of all passages, and the `floor`. "round": `at`, the list that was taken, and why
    searching ended. "named": those that something else names, such as an answer's citations.
    """

    method: Literal["mmr", "duplicates", "floor", "round", "named"]
    chosen: tuple[Pick, ...] = ()
    near: tuple[float, ...] = ()
    alike: tuple[int, ...] = ()
    dropped: Mapping[str, Duplicate] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    floor: float | None = None
    at: int | None = None
    decision: str = ""
    reason: str = ""
    why: str = ""
    type: Literal["selection"] = "selection"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A piece of a passage, its similarity to the question if that was computed, and whether it was kept.
    `heading` is the last one above it in its passage.
    """

    id: str
    text: str
    score: float | None
    kept: bool
    heading: str = ""


@dataclass(frozen=True, slots=True)
class SentenceFilter:
    """Passages split into pieces, some of which are kept."""

    sentences: tuple[Sentence, ...]
    floor: float | None = None  # minimum score of a kept piece; None if a model chose
    type: Literal["sentence_filter"] = "sentence_filter"

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
class Excerpts:
    """The remaining text of each passage, by passage id, and the tokens saved."""

    excerpts: Mapping[str, str]
    tokens_before: int = 0
    tokens_after: int = 0
    type: Literal["excerpts"] = "excerpts"


@dataclass(frozen=True, slots=True)
class Merged:
    """A passage of which `found` pieces of `pieces` were found: `text` is what is read of it, "" for all."""

    id: str
    found: int
    pieces: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Merging:
    """The passages read whole, because more than `share` of their pieces were found."""

    passages: tuple[Merged, ...]
    share: float
    type: Literal["merging"] = "merging"

    @property
    def excerpts(self) -> dict[str, str]:
        """Return the text read from each passage that is not read whole."""
        return {one.id: one.text for one in self.passages if one.text}


@dataclass(frozen=True, slots=True)
class Written:
    """An answer: `cited` are passage ids, `wrong` markers that no passage has, `uncited` sentences without a
    marker, `shown` the passages it was written from, in the order of the prompt.

    `copied`: its words stand in the passages, no model wrote them. `evidence` against `floor`: whether the
    passages were taken to hold an answer, where copying checked that itself. `unaided`: written without
    passages.
    """

    text: str
    cited: tuple[str, ...] = ()
    abstained: bool = False
    wrong: tuple[int, ...] = ()
    uncited: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    copied: bool = False
    evidence: float | None = None
    floor: float | None = None
    unaided: bool = False
    attention: Mapping[str, float] = field(default_factory=dict)
    type: Literal["written"] = "written"


@dataclass(frozen=True, slots=True)
class ShortAnswer:
    """A few words copied from passages that answer `question`, used in a later search."""

    question: str
    text: str  # "" if there is none
    source: str = ""  # id of the passage that contains it
    type: Literal["short_answer"] = "short_answer"


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
class Critique:
    """A draft with what was said of it: the `share` of its claims that are supported, None without any."""

    draft: str
    claims: tuple[Criticised, ...]
    share: float | None
    feedback: str
    changes: ClaimChanges | None
    decision: str
    ways: tuple[str, ...]
    why: str
    reason: str | None = None
    type: Literal["critique"] = "critique"


@dataclass(frozen=True, slots=True)
class DraftChoice:
    """The choice of the final draft."""

    kept: int  # number of the draft, from 1
    drafts: int
    decision: str
    reason: str
    why: str
    shares: tuple[float | None, ...] = ()  # share of supported claims of each judged draft
    type: Literal["draft_choice"] = "draft_choice"


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment written from a passage, in its place in a tree: `parent` is an index, None at the beginning.

    `score`, `path` and `chosen`: its own score, the mean along its path, whether the answer has it.
    """

    passage: str
    text: str
    relevance: float | None = None
    support: Mapping[str, float] | None = None
    utility: float | None = None
    likelihood: float | None = None
    parent: int | None = None
    depth: int = 1
    ended: str = ""
    score: float | None = None
    path: float | None = None
    chosen: bool = False
    why: str = ""
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentTree:
    """Segments with their judgements, which can be ranked again with other weights."""

    decision: str
    why: str
    branches: tuple[Segment, ...]
    weights: Mapping[str, float]
    beam: int = 1
    segments: int = 1
    unjudged: tuple[Segment, ...] = ()  # segments without all judgements, each with `why`; never chosen
    type: Literal["segment_tree"] = "segment_tree"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One query of a model, what was wrong with it, or "", and what it was to mend: "" for the first."""

    sql: str
    error: str = ""
    repairs: str = ""


@dataclass(frozen=True, slots=True)
class TableResult:
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
    type: Literal["table_result"] = "table_result"


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
class External:
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
    type: Literal["external"] = "external"


@dataclass(frozen=True, slots=True)
class ScoreCut:
    """A ranking ended after `kept` passages: the largest drop, by `size`, is behind the first `drop` (0: none
    is there). `guarded`: fewer would have been kept, but for the least that are asked for.
    """

    kept: int
    drop: int
    size: float
    guarded: bool = False
    type: Literal["cut"] = "cut"


@dataclass(frozen=True, slots=True)
class Inserted:
    """Passages that were put into a ranking though no search found them, in the order they were drawn."""

    ids: tuple[str, ...]
    type: Literal["inserted"] = "inserted"


@dataclass(frozen=True, slots=True)
class WebGrades:
    """Grades of web results, by the evaluator that graded the corpus' passages. From `high` on a result is
    trusted.
    """

    grades: tuple[PassageGrade, ...]
    high: float
    evaluator: str = ""
    type: Literal["web_grades"] = "web_grades"


Output = (
    Pass
    | Reply
    | Waited
    | Search
    | SampleSearches
    | Embedding
    | Rewrite
    | Fusion
    | Rerank
    | PassageGrade
    | Grading
    | Decision
    | Selection
    | SentenceFilter
    | Excerpts
    | Written
    | ShortAnswer
    | Critique
    | DraftChoice
    | SegmentTree
    | TableResult
    | External
    | ScoreCut
    | Inserted
    | Merging
    | Entities
    | FiltersRead
    | WebGrades
)
OUTPUTS: tuple[type, ...] = get_args(Output)
Decided = Grading | Decision | Critique | DraftChoice | SegmentTree | TableResult  # has `decision` and `why`
NOTHING = Pass()


def document(output: Output) -> dict[str, Any]:
    """Convert an output to JSON values with its type, omitting default fields."""
    return {"type": output.type, **_adapter().dump_python(output, exclude_defaults=True)}


def from_document(given: Any) -> Output:
    """Convert a document to an output. Raises BadInput with the first invalid field."""
    try:
        output: Output = _validate()(given)
    except ValueError as error:  # pydantic's ValidationError
        raise BadInput(f"a step's output: {_fault(error)}") from None
    return output


def _fault(error: Any) -> str:
    """Return the location and message of the first validation error."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = " ".join(".".join(map(str, first["loc"])).split())[:120] or "all of it"
    if first["type"] == "union_tag_invalid":  # else it names the tag, which may be anything
        return f"{place}: its type is none of {first['ctx']['expected_tags']}"
    return f"{place}: {first['msg']}"


@cache
def _validate() -> Callable[[Any], Any]:
    return _adapter().validator.validate_python


@cache
def _adapter() -> TypeAdapter[Output]:
    """Made when first needed: a process that stores nothing does without pydantic."""
    from pydantic import ConfigDict, Field, TypeAdapter

    return TypeAdapter(Annotated[Output, Field(discriminator="type")], config=ConfigDict(extra="forbid"))
