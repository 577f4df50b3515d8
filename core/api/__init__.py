"""RouteScope from Python, in a script, a notebook or a test: compare, evaluate, gate and why.

Plain arguments go in, records with tables come out. Wrong arguments raise BadInput, what is missing on this
machine Unavailable. May import all of `core` but `cli`; see docs/using.md.
"""

from core.api.arguments import Progress
from core.api.comparing import Comparison, compare
from core.api.evaluating import Evaluated, evaluate, evaluation, evaluations
from core.api.explaining import Explanation, why
from core.api.gating import GateDecision, gate
from core.domain.errors import BadInput, RouteScopeError, Unavailable

__all__ = [
    "BadInput",
    "Comparison",
    "Evaluated",
    "Explanation",
    "GateDecision",
    "Progress",
    "RouteScopeError",
    "Unavailable",
    "compare",
    "evaluate",
    "evaluation",
    "evaluations",
    "gate",
    "why",
]
