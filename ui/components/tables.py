"""Tables: the only use of `st.dataframe`, since each can be saved as CSV and opened in a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.evaluation.labels.csv_format import shielded

if TYPE_CHECKING:
    import pandas as pd

# Numbers with a sign, also intervals and with a unit, compute nothing.
_NUMBERS = re.compile(r"[+-]?[\d.,\s%]*( to [+-]?[\d.,\s%]+| m?s)?")
# The browser puts no quotes around a cell for these. Tabs part the cells of what is copied, semicolons those
# of a file where a comma is the decimal mark: what stands behind one may begin a cell.
_BREAKS = re.compile(r"[\t\r]+")
_NEXT = re.compile(r"(;\s*)([=+\-@＝＋－＠])")


def show(data: Any, *, place: Any = st, column_config: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Draw `data` with the options of `st.dataframe`, at `place`.

    Text that a spreadsheet would read as a formula gets a leading apostrophe, also in column names.
    """
    import pandas as pd

    table = data if isinstance(data, pd.DataFrame) else pd.DataFrame(data)
    config = {cell(name): one for name, one in column_config.items()} if column_config else None
    return place.dataframe(safe(table), column_config=config, **more)


def safe(table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` with all text shielded, also in lists; other values are unchanged."""
    import pandas as pd

    made = table.rename(columns={name: cell(name) for name in table.columns if isinstance(name, str)})
    for at, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            made.isetitem(at, table.iloc[:, at].map(_any))
    return made


def cell(text: str) -> str:
    """Return one text, shielded and on one line."""
    line = _NEXT.sub(r"\1'\2", _BREAKS.sub(" ", text))
    return line if _NUMBERS.fullmatch(line) else shielded(line)


def _any(value: Any) -> Any:
    if isinstance(value, str):
        return cell(value)
    return [_any(one) for one in value] if isinstance(value, list | tuple) else value
