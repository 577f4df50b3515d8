"""What a table of a page holds once a spreadsheet opens its CSV."""

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.components import tables


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("  @SUM(A1)", "'  @SUM(A1)"),
        ("\t=cmd|' /C calc'!A0", "' =cmd|' /C calc'!A0"),
        ("\r=cmd", "' =cmd"),
        ("x\r=cmd", "x =cmd"),
        ("+HYPERLINK(1)", "'+HYPERLINK(1)"),
        ("-2+cmd", "'-2+cmd"),
        ("=1", "'=1"),
        ("＝1+1", "'＝1+1"),
        ("a;=1+1", "a;'=1+1"),
        ("'=1", "''=1"),
        ("plain - text + more", "plain - text + more"),
        ("+0.120", "+0.120"),
        ("-3", "-3"),
        ("-0.100 to +0.200", "-0.100 to +0.200"),
        ("-12 ms", "-12 ms"),
        ("", ""),
    ],
)
def test_a_cell_is_text_and_a_number_stays_one(given, shown):
    assert tables.cell(given) == shown


def test_every_text_of_a_table_is_shielded_and_nothing_else():
    table = pd.DataFrame(
        {
            "=name": ["=1", "a"],
            "number": [-1.5, 2],
            "tags": [["=x", "y"], []],
            "kind": pd.Categorical(["@a", "b"]),
            "text": pd.array(["+a", None], dtype="string"),
            "mixed": [-1, "-a"],
            "when": pd.to_datetime(["2026-01-01", "2026-01-02"]),
        }
    )
    made = tables.safe(table)
    assert made.to_dict("list") == {
        "'=name": ["'=1", "a"],
        "number": [-1.5, 2.0],
        "tags": [["'=x", "y"], []],
        "kind": ["'@a", "b"],
        "text": ["'+a", None],
        "mixed": [-1, "'-a"],
        "when": list(table["when"]),
    }
    assert table["=name"][0] == "=1"  # what was given is as it was
    assert list(made.dtypes)[1] == table.dtypes.iloc[1]


@pytest.mark.trust
@given(st.lists(st.text(alphabet="=+-@;,\t\r\n'\" a1|!", max_size=12), min_size=1, max_size=4))
def test_no_cell_of_the_file_begins_a_formula_however_it_is_parted(row):
    cells = [tables.cell(one) for one in row]
    quoted = [f'"{one.replace(chr(34), chr(34) * 2)}"' if set(one) & set(',"\n') else one for one in cells]
    for delimiter in ",;":
        for line in csv.reader(io.StringIO(",".join(quoted), newline=""), delimiter=delimiter):
            if delimiter == ",":
                assert line == cells
            elif not set(',"\n') & set("".join(cells)):
                assert not [one for one in line if one.strip()[:1] in ("=", "@")]
