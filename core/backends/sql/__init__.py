"""Databases that routes query: read-only, with a guard around every query."""

from core.backends.sql.database import Column, Database, Result, Table, Value
from core.backends.sql.guard import Limits, Rejected, SqlError

__all__ = ["Column", "Database", "Limits", "Rejected", "Result", "SqlError", "Table", "Value"]
