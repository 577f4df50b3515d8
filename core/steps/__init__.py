"""The traced operations that routes are built from, one module per family; `Steps` combines them. May import
the domain, backends and corpus.
"""

from core.steps.agent import Agent
from core.steps.base import Context
from core.steps.claims import CheckClaims
from core.steps.classify import Classify
from core.steps.conditions import Conditions
from core.steps.confidence import AskConfidence
from core.steps.evaluate import Correct
from core.steps.external import AskExternal
from core.steps.feedback import Feedback
from core.steps.fitted_fusion import FuseFitted
from core.steps.full_context import FullContext
from core.steps.fuse import Hybrid
from core.steps.gate import Gatekeeper
from core.steps.graph import WalkGraph
from core.steps.grep import Grep
from core.steps.iterate import Iterate
from core.steps.memo import Memo
from core.steps.order_by_model import OrderByModel
from core.steps.prompted_reflection import PromptedReflection
from core.steps.reflect import Reflect
from core.steps.retrieve import POOL
from core.steps.select import Select
from core.steps.self_rag import SelfRag

__all__ = ["POOL", "Context", "Memo", "Steps"]


class Steps(
    Correct,
    Agent,
    CheckClaims,
    Classify,
    Conditions,
    AskConfidence,
    AskExternal,
    Feedback,
    FuseFitted,
    FullContext,
    Gatekeeper,
    WalkGraph,
    Grep,
    Hybrid,
    Iterate,
    OrderByModel,
    PromptedReflection,
    Reflect,
    Select,
    SelfRag,
):
    """All steps, as one class."""
