"""The names that most routes import: the declaration, the steps, and the types of the domain."""

from core.domain.needs import Need
from core.domain.types import EVIDENCE, Answer, Query, Ranking
from core.routes import shared
from core.routes.declare import Parameter, Share, route
from core.steps import POOL, Steps
from core.steps.generate import DEFAULT_SHOWN_PASSAGES

NO_GAIN = "No gain shown with a 1.5B model."

__all__ = [
    "DEFAULT_SHOWN_PASSAGES",
    "EVIDENCE",
    "NO_GAIN",
    "POOL",
    "Answer",
    "Need",
    "Parameter",
    "Query",
    "Ranking",
    "Share",
    "Steps",
    "route",
    "shared",
]
