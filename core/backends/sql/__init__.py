"""Databases that routes query: read-only, with a guard around every query."""

from core.backends.sql.database import Column, Database, DatabaseTable, Result, Value
from core.backends.sql.guard import QueryLimits, SqlError, SqlRejected

__all__ = ["Column", "Database", "DatabaseTable", "QueryLimits", "Result", "SqlError", "SqlRejected", "Value"]
