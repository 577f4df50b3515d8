"""The traced operations that routes are built from, one module per family; `Steps` combines them. May import
the domain, backends and corpus.
"""

from core.steps.agent import Agent
from core.steps.analyse import Analyse
from core.steps.base import Context
from core.steps.calibrated import Calibrated
from core.steps.claims import CheckClaims
from core.steps.classify import Classify
from core.steps.compress import Compress
from core.steps.conditions import Conditions
from core.steps.confidence import AskConfidence
from core.steps.controls import Controls
from core.steps.correct import Correct
from core.steps.decompose import Decompose
from core.steps.external import AskExternal
from core.steps.feedback import Feedback
from core.steps.fitted_fusion import FuseFitted
from core.steps.full_context import FullContext
from core.steps.fusion_in_decoder import ReadTogether
from core.steps.gate import Gatekeeper
from core.steps.generate import Generate
from core.steps.grade import Judge
from core.steps.graph import WalkGraph
from core.steps.grep import Grep
from core.steps.iterate import Iterate
from core.steps.late_interaction import LateInteraction
from core.steps.learned_sparse import LearnedTerms
from core.steps.memo import Memo
from core.steps.merge import Merge
from core.steps.order_by_model import OrderByModel
from core.steps.prompted_reflection import PromptedReflection
from core.steps.proximity import Proximity
from core.steps.quantised import Quantised
from core.steps.reflect import Reflect
from core.steps.remember import Remember
from core.steps.retrieve import POOL
from core.steps.samples import Samples
from core.steps.select import Select
from core.steps.self_rag import SelfRag
from core.steps.tables import AskTables
from core.steps.windows import Windows

__all__ = ["POOL", "Context", "Memo", "Steps"]


class Steps(
    Correct,
    Agent,
    Analyse,
    Decompose,
    Gatekeeper,
    Samples,
    Feedback,
    Quantised,
    Proximity,
    WalkGraph,
    Grep,
    Conditions,
    Controls,
    FuseFitted,
    Windows,
    Compress,
    Select,
    Merge,
    OrderByModel,
    LateInteraction,
    LearnedTerms,
    Iterate,
    Judge,
    Remember,
    PromptedReflection,
    Reflect,
    AskConfidence,
    Calibrated,
    CheckClaims,
    SelfRag,
    ReadTogether,
    FullContext,
    Classify,
    AskTables,
    AskExternal,
    Generate,
):
    """All steps, as one class."""
