"""Parameters and numbers that several routes have, declared once."""

from typing import Annotated, Literal

from core.domain.types import EVIDENCE
from core.routes.declare import Parameter, Share
from core.steps import POOL
from core.steps.generate import DEFAULT_SHOWN_PASSAGES

__all__ = ["DEFAULT_SHOWN_PASSAGES", "EVIDENCE", "POOL"]

NO_GAIN = "No gain shown with a 1.5B model."

Alpha = Annotated[float, Parameter(0, 1, "weight of the dense scores; BM25 has 1 minus it", tunes="alpha")]
FusedBy = Annotated[Literal["auto", "z", "min_max", "rrf"], "fusion of BM25 and dense; auto: as measured"]
_FLATTER = "RRF constant, added to each rank; larger values flatten the top ranks"
RrfConstant = Annotated[int, Parameter(1, 1000, _FLATTER, tunes="k")]
Candidates = Annotated[int, Parameter(5, 100, "number of top hybrid hits to rerank")]
FewCandidates = Annotated[int, Parameter(2, 100, "number of top hybrid hits to rerank")]
CheckOrder = Annotated[bool, "also rerank the reversed order and measure the agreement: twice the calls"]
Collected = Annotated[int, Parameter(1, 15, "passages collected in total")]
Variants = Annotated[int, Parameter(1, 8, "number of query variants besides the question")]
Imagined = Annotated[int, Parameter(1, 8, "number of hypothetical passages, whose embeddings are averaged")]
WithQuestion = Annotated[bool, "include the question's embedding in the average"]
Tables = Annotated[int, Parameter(1, 20, "maximum number of tables shown to the model")]
Repairs = Annotated[int, Parameter(0, 2, "retries for a query that fails")]
Rows = Annotated[int, Parameter(1, 200, "maximum number of result rows")]
Turns = Annotated[int, Parameter(1, 20, "number of turns recalled")]
Decay = Annotated[float, Parameter(0.5, 1, "factor by which recency decays with each later turn")]
Similarity = Annotated[Share, "weight of similarity in a turn's score; recency has 1 minus it"]
_ALONE = "question searched alone from this best cosine"
Enough = Annotated[float, Parameter(-1, 1.01, _ALONE, tunes="threshold", cosine=True)]
_BEST = "minimum cosine of a sentence with the question; the best one of a passage always passes"
SentenceFloor = Annotated[float, Parameter(-1, 1, _BEST, tunes="floor", cosine=True)]
Relevance = Annotated[float, Parameter(0, 5, "weight of the critique that the passage is relevant")]
Support = Annotated[float, Parameter(0, 5, "weight of the critique that the passage supports the segment")]
