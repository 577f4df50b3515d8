"""Messages: one line, of a bounded length, whatever they quote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cli import main
from core.corpus import uploads
from core.corpus.types import SHOWN, TOLD, LoadReport
from core.domain.errors import (
    MAX_MESSAGE_CHARS,
    BadInput,
    Cancelled,
    ModelFailed,
    Stopped,
    describe,
    shortened,
)
from core.domain.settings import Settings
from tests.loaded import documents


@given(st.text(max_size=200), st.integers(20, 100))
def test_long_texts_keep_their_beginning_and_their_end(text, most):
    short = shortened(text, most)
    assert len(short) <= most
    if len(text) <= most:
        assert short == text
    else:
        head, tail = short.split(" … ", 1) if text.count(" … ") == 0 else (text[:5], text[-5:])
        assert text.startswith(head)
        assert text.endswith(tail)


@pytest.mark.parametrize("kind", [BadInput, ModelFailed, Stopped])
def test_every_error_of_the_project_is_cut(kind):
    error = kind("begin " + "x" * 1_000_000 + " end")
    assert len(str(error)) == MAX_MESSAGE_CHARS
    assert str(error).startswith("begin ")
    assert str(error).endswith(" end")


def test_errors_of_others_are_cut_and_named_where_they_are_told():
    assert describe(ValueError("a\n b")) == "ValueError: a b"
    assert describe(Cancelled()) == "Cancelled"
    assert len(describe(ValueError("x" * 1_000_000))) == MAX_MESSAGE_CHARS


@pytest.mark.slow
def test_a_table_of_a_hundred_thousand_columns_is_refused_in_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path / "home"))
    wide = ",".join(f"column{n}" for n in range(100_000))
    (tmp_path / "wide.csv").write_text(f"{wide}\n{','.join('1' * 100_000)}\n")
    report = LoadReport()
    assert list(documents(tmp_path / "wide.csv", report)) == []
    assert "columns; a table may have" in report.skipped[0].reason
    assert len(report.skipped[0].line()) <= MAX_MESSAGE_CHARS
    with pytest.raises(BadInput, match="columns; a table may have") as caught:
        uploads.read("wide.csv", (tmp_path / "wide.csv").read_bytes())
    assert len(str(caught.value)) <= MAX_MESSAGE_CHARS
    with pytest.raises(BadInput) as caught:
        uploads.add("mine", {"wide.csv": (tmp_path / "wide.csv").read_bytes()}, Settings(home=tmp_path))
    assert len(str(caught.value)) <= MAX_MESSAGE_CHARS
    assert main(["index", str(tmp_path / "wide.csv")]) == 2
    assert main(["x" * 500_000]) == 2
    assert len(capsys.readouterr().err) < 3 * MAX_MESSAGE_CHARS


def test_what_was_left_out_is_told_in_a_bounded_number_of_lines():
    report = LoadReport()
    for n in range(1_000):
        report.skip(f"{n}.pdf", f"{n}" + "x" * 5_000)
        report.empty.add(f"{n}.txt")
    notes = report.notes()
    assert len(notes) == 1 + TOLD + 1
    assert notes[0].startswith("1000 empty documents left out: 0.txt, 1.txt")
    assert notes[0].count(".txt") == SHOWN
    assert notes[-1] == f"{1_000 - TOLD} more were left out"
    assert max(map(len, notes)) <= MAX_MESSAGE_CHARS
