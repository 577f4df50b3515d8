"""The names that most routes import: the declaration, the steps, and the types of the domain."""

from typing import Annotated, Literal

from core.domain.needs import Need
from core.domain.types import Answer, Query, Ranking
from core.routes import shared
from core.routes.declare import Parameter, Share, route
from core.steps import Steps

__all__ = [
    "Annotated",
    "Answer",
    "Literal",
    "Need",
    "Parameter",
    "Query",
    "Ranking",
    "Share",
    "Steps",
    "route",
    "shared",
]
