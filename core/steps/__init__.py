"""The traced verbs that routes are made of, one module a family."""

from core.steps.base import Context
from core.steps.fuse import Fuse
from core.steps.generate import Generate
from core.steps.grade import Judge
from core.steps.memo import Memo
from core.steps.refine import Refine
from core.steps.retrieve import POOL
from core.steps.select import Select
from core.steps.transform import Transform

__all__ = ["POOL", "Context", "Memo", "Steps"]


class Steps(Transform, Refine, Select, Fuse, Judge, Generate):
    """What a route is given as `do`."""
