"""Tables: the only use of `st.dataframe`, since each can be saved as CSV and opened in a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from core.evaluation.labels.exchange import shielded
from ui.app import address
from ui.app import data as declared
from ui.app.glossary import TERMS
from ui.app.help_mark import term

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
MAX_HEIGHT = 420  # pixels of a table; the rest scrolls

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


def table(
    rows: Sequence[Mapping[str, Any]],
    key: str,
    alt: str,
    *,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    pinned: str = "",
    place: Any = st,
    **options: Any,
) -> Any:
    """Draw `rows` as a table as high as its rows, at most MAX_HEIGHT pixels.

    ui/data/columns.toml, or `columns` before it, has a printf format, a Glossary term or a sentence as help,
    and the pixels of a column. Other fractions have three decimals, whole numbers a mark at the thousands.
    `pinned` stays at the left.
    """
    import pandas as pd

    frame = pd.DataFrame(rows)
    config: dict[str, Any] = {}
    for name, kind in frame.dtypes.items():
        known = (columns or {}).get(str(name)) or declared.table("columns").get(str(name), {})
        about: str | None = known.get("help")
        given: dict[str, Any] = {
            "help": term(about) if about and about in TERMS else about,
            "width": known.get("width"),
            "pinned": True if name == pinned else None,
        }
        if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            usual = "%.3f" if pd.api.types.is_float_dtype(kind) else "localized"
            config[name] = st.column_config.NumberColumn(format=known.get("format", usual), **given)
        elif any(given.values()):
            config[name] = st.column_config.Column(**given)
    look = {"hide_index": True, "width": "stretch", "height": min(MAX_HEIGHT, 38 + 35 * max(1, len(rows)))}
    return show(frame, place=place, column_config=config, key=key, alt=alt, **{**look, **options})


def interval(ends: Sequence[float] | None) -> dict[str, float | None]:
    """Return the cells of a 95% interval, empty for None."""
    low, high = ends or (None, None)
    return {"95% from": low, "to": high}


def pick(
    rows: Sequence[Mapping[str, Any]], items: Sequence[T], key: str, alt: str, **options: Any
) -> T | None:
    """Draw `rows` as `table` does, and return the one of `items` whose row is selected."""
    event = table(rows, key, alt, on_select="rerun", selection_mode="single-row", **options)
    return next((items[n] for n in event["selection"]["rows"] if n < len(items)), None)


def keep_pick(
    picked: str | None, name: str, key: str, ids: Sequence[str], usual: str | None = None
) -> str | None:
    """Store the id picked under `key` and in the address as `name`; return it, or `usual` if not in `ids`."""
    if picked:
        st.session_state[key] = picked
    address.take(name, key, address.one_of(list(ids)))
    chosen = st.session_state.get(key)
    chosen = chosen if chosen in ids else usual
    address.keep(name, None if chosen == usual else chosen)
    return chosen
