"""What a step came to, as its span records it: tagged types, which readers dispatch on and never guess.

`document` and `from_document` are the one way to JSON and back. A type is only ever added to: a field that is
new has a default, so that what is stored stays readable.
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
    """How one passage matched token by token: for each token of the question the passage's most similar one
    and their cosine. `cosines` has a row for each of the first tokens of the question and a column for each
    of `passage`, the first of `tokens` in all; both are empty where only the best are kept.
    """

    id: str
    best: Terms
    passage: tuple[str, ...] = ()
    tokens: int = 0
    cosines: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenMatches:
    """Token by token: the question's tokens, and how the first hits matched them."""

    query: tuple[str, ...]
    hits: tuple[MatchedPassage, ...]


@dataclass(frozen=True, slots=True)
class Recalled:
    """How much a remembered turn counts: `age` in turns said since, the rest from 0 to 1."""

    id: str
    similarity: float
    age: int
    recency: float
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
    """Where a walk may begin: `seeds`, heaviest first, and what the question names that the graph has not."""

    seeds: tuple[Seed, ...]
    unknown: tuple[str, ...] = ()
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
    """A list that was searched for; the hits stand on the span.

    `texts` is what it was searched with in words: one text, or () for a vector, whose step the link names.
    `keys`: by passage the text that stood for it in the index. `expansion`: the heaviest of `terms` weighed
    terms it was searched with, `matched`: what they add to the first hits. `unfound`: why its words found
    nothing, "" where they did. `walk`: where it was found by a walk over a graph, that. `codes`: the kind of
    codes that stood for the vectors in a first pass. `alone`: where `keys` are summaries that bring passages,
    the first passages by their own vectors, best first. `where`: what passages had to meet to be found.
    """

    texts: tuple[str, ...] = ()
    model: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    terms: int = 0
    expansion: Terms = ()
    matched: Mapping[str, Terms] = field(default_factory=dict)
    tokens: TokenMatches | None = None
    recalled: tuple[Recalled, ...] = ()
    unfound: str = ""
    walk: Walk | None = None
    where: tuple[Filter, ...] = ()
    codes: str = ""
    alone: tuple[str, ...] = ()
    type: Literal["search"] = "search"


@dataclass(frozen=True, slots=True)
class FilterRead:
    """A condition read from `words` of the question ("" where a model read it), and how many `passages` meet
    it alone. `dropped`: why it is not used, "" where it is.
    """

    filter: Filter
    words: str
    passages: int
    dropped: str = ""


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
class Spread:
    """How far unit vectors are apart: mean cosine distance of two, and 1 - the length of their mean."""

    pairwise: float
    from_mean: float


@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector (or one for each token) of `texts`, and of `question` where that was averaged in; drawn to
    `recalled` turns (passage ids) where there are any, or to `feedback`, the first passages found. `spread`
    is that of `texts` alone.
    """

    texts: tuple[str, ...]
    question: str | None = None
    recalled: tuple[str, ...] = ()
    spread: Spread | None = None
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
        """Whether it stands for the question, and is not one of several texts."""
        return self.role in ("question", "keywords", "context")

    @property
    def changed(self) -> bool:
        """Whether it wrote anything but the text it was given."""
        return self.texts != (self.before,)


Method = Literal["rrf", "linear", "fitted", "union", "best", "append", "collect", "concat", "reported"]


@dataclass(frozen=True, slots=True)
class Fusion:
    """Several lists made one; the settings are the span's arguments, the lists its links, in their order.

    "append", "collect" and "concat" put one list behind another: the first keeps its places. "reported" is a
    pipeline's that is not ours: how it fused is not told. `names`: what
    the lists are called. `only`: by text, what no other text found. `ranks`: by passage its rank in each
    list. `shares`: by passage what each list gives to its score. `new`: what a collection gained. `features`:
    what each fitted weight is of.
    """

    method: Method
    names: tuple[str, ...] = ()
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranks: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    new: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    type: Literal["fusion"] = "fusion"

    @property
    def in_turn(self) -> bool:
        """Whether one list was put behind the other, instead of ranking all of them anew."""
        return self.method in ("append", "collect", "concat")


@dataclass(frozen=True, slots=True)
class Reranked:
    """One passage in its new place: its rank (from 1) and score before, and the reranker's score, None where
    there is none (`state` and `why` say so). `parts`: by signal its value and what that gives to the score.
    """

    id: str
    was: int
    before: float
    score: float | None
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    state: State = "scored"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rerank:
    """What was given, in another order. `words`: of the question, with their weights. `unmoved`: why all of
    it stays where it was, "" where it was reordered.
    """

    reranker: str = ""
    order: tuple[Reranked, ...] = ()
    words: Mapping[str, float] = field(default_factory=dict)
    scored: int = 0
    tokens: TokenMatches | None = None
    unmoved: str = ""
    type: Literal["rerank"] = "rerank"


@dataclass(frozen=True, slots=True)
class PassageGrade:
    """A passage's grade from 0 to 1, None where it could not be had; `value` is that on the grader's own
    scale, `by` how it was told.
    """

    id: str
    grade: float | None
    state: State
    why: str = ""
    value: float | None = None
    by: str | None = None
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
    """A branch that was taken: one of `ways`, and the sentence that says why.

    Where one `score` was held against a `threshold`, the first of `ways` is taken from there on and the
    second below it. `scores`: of each way. `text`: what was written to go on with. `weighed`: the features it
    was computed from, those that count most first, and `between`, the two likeliest ways, which they part.
    `details` are plain JSON, for people.
    """

    decision: str
    ways: tuple[str, ...]
    why: str
    score: float | None = None
    threshold: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    weighed: tuple[Weighed, ...] = ()
    between: tuple[str, str] | None = None
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
    """What a dropped passage was too much like."""

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
    """Passages cut into pieces, of which some are kept: by their score from `floor` on, or, where that is
    None, by a model's choice.
    """

    sentences: tuple[Sentence, ...]
    floor: float | None = None
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
        """How many pieces were kept."""
        return sum(sentence.kept for sentence in self.sentences)


@dataclass(frozen=True, slots=True)
class Excerpts:
    """What is left of each passage to answer from, by passage id, and what that saved."""

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
    """Which passages are read whole, as more than `share` of their pieces were found."""

    passages: tuple[Merged, ...]
    share: float
    type: Literal["merging"] = "merging"

    @property
    def excerpts(self) -> dict[str, str]:
        """What is read in place of each passage that is not read whole."""
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
    """A few words copied from passages that answer `question`, and the passage they stand in; "" where there
    are none. They go into a later search.
    """

    question: str
    text: str
    source: str = ""
    type: Literal["short_answer"] = "short_answer"


@dataclass(frozen=True, slots=True)
class Criticised:
    """One claim of a draft; `supported` and `passage` (a number from 1) are None where that was not told.

    `probability` is P(Yes) that `evidence`, the sentences it was held against, states it.
    """

    claim: str
    supported: bool | None
    passage: int | None = None
    probability: float | None = None
    evidence: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ClaimChanges:
    """What became of the claims of the draft before."""

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
    """Which of the drafts, from 1, became the answer; `shares` are those of the drafts that were judged."""

    kept: int
    drafts: int
    decision: str
    reason: str
    why: str
    shares: tuple[float | None, ...] = ()
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
    """Segments with how they were judged; other weights rank them anew. `unjudged` were not judged in full,
    `why` on each, and never chosen.
    """

    decision: str
    why: str
    branches: tuple[Segment, ...]
    weights: Mapping[str, float]
    beam: int = 1
    segments: int = 1
    unjudged: tuple[Segment, ...] = ()
    type: Literal["segment_tree"] = "segment_tree"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One query of a model, what was wrong with it, or "", and what it was to mend: "" for the first."""

    sql: str
    error: str = ""
    repairs: str = ""


@dataclass(frozen=True, slots=True)
class TableResult:
    """What came of asking a database. `links` are the stored values that the question names, `joins` the
    conditions that tie its tables, `bounded` says that a grammar of the schema bounded what could be written.
    """

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
    links: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    bounded: bool = False
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
    """A call of a pipeline that is not ours: what it gave, and how much of that the corpus has.

    `stages` names what it told about its inside, in order; () where it told of its last list alone. `hits` it
    returned, of which `matched` are passages of the corpus, by `rules`; `unmatched` are ids of those that are
    not. `matching` says it in a sentence. `inside_ms`: what its own code took, by its own clock. `made`: when
    the reply was made, ISO 8601, if that was before this run. `ignored`: what it gave that nothing reads.
    """

    pipeline: str
    door: str
    hits: int = 0
    matched: int = 0
    rules: Mapping[str, int] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    matching: str = ""
    matching_ms: float | None = None
    stages: tuple[str, ...] = ()
    scored: bool = True
    inside_ms: float | None = None
    made: str = ""
    ignored: tuple[str, ...] = ()
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
    """The output as JSON values with its type, without the fields that are at their default."""
    return {"type": output.type, **_adapter().dump_python(output, exclude_defaults=True)}


def from_document(given: Any) -> Output:
    """The output of a document; BadInput says what in it is not as it should be."""
    try:
        output: Output = _validate()(given)
    except ValueError as error:  # pydantic's ValidationError
        raise BadInput(f"a step's output: {_fault(error)}") from None
    return output


def _fault(error: Any) -> str:
    """The place of the first fault that was found, and what it is."""
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
