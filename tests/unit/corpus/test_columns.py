"""What the columns of a file of rows are taken as, found or chosen."""

import json

import pytest

from core.corpus import columns
from core.corpus.columns import NONE, plan
from core.corpus.types import LONGEST_COLUMN, LoadReport, Reading
from core.domain.errors import BadInput
from tests.loaded import documents

LONG = "It takes about five working days until the parcel has arrived at your door."


@pytest.mark.parametrize(
    ("names", "row", "text", "title"),
    [
        (("question", "answer"), ("Why?", "So."), ("answer",), "question"),
        (("Frage", "Antwort", "Wer"), ("Warum?", "Darum.", "Ann"), ("Antwort",), "Frage"),
        (("id", "text", "title"), ("1", "x", "y"), ("text",), "title"),
        (("content", "body"), ("x", "y"), ("content",), "title"),
        (("name", "price", "notes"), ("vase", "12", LONG), ("notes",), "name"),
        (("name", "description"), ("vase", "made of glass, blue"), ("description",), "name"),
        (("name", "description"), ("vase", "blue"), (), None),
        (("article", "price"), ("vase", "12.5"), (), None),
        (("question",), (LONG,), ("question",), None),
        (("a", "b"), (LONG, LONG), ("a", "b"), None),
        (("用户", "说明"), ("1", "退货必须在交货后三十天内完成如有问题请联系客户支持"), ("说明",), None),
        ((), (), (), None),
    ],
)
def test_columns_are_found_by_name_and_length(names, row, text, title):
    found = plan(names, [dict(zip(names, row, strict=True))], ())
    assert (found.text, found.title) == (text, title)
    assert found.columns == names


def test_chosen_columns_go_first_and_none_makes_no_rows_documents():
    row = [{"Question": "Why?", "Answer": "So.", "by": "Ann"}]
    assert plan(list(row[0]), row, ("question", "answer")).text == ("Question", "Answer")
    assert plan(list(row[0]), row, ("answer",)).title == "Question"
    assert plan(list(row[0]), row, NONE).text == ()
    assert plan(["none", "text"], [{"none": "x", "text": "y"}], NONE).text == ("none",)
    assert plan(["text"], [{"text": "x"}], ("elsewhere",)).usual  # another file has that column


def test_a_csv_of_questions_and_answers_is_a_document_a_row(tmp_path):
    rows = [f'How long does step {n} take?,"Step {n} takes {n} days, weekends excluded."' for n in range(60)]
    (tmp_path / "faq.csv").write_text("question,answer\n" + "\n".join(rows))
    report = LoadReport()
    found = list(documents(tmp_path, report))
    assert len(found) == 60
    assert (found[7].id, found[7].title) == ("faq.csv#9", "How long does step 7 take?")
    assert found[7].text == "Step 7 takes 7 days, weekends excluded."
    assert report.notes() == ("faq.csv (60 rows): each row is a document, text: answer; title: question",)
    both = list(documents(tmp_path, None, Reading(("question", "answer"))))
    assert both[7].text == "How long does step 7 take?\n\nStep 7 takes 7 days, weekends excluded."
    (table,) = documents(tmp_path, None, Reading(NONE))
    assert table.id == "faq.csv/faq"


def test_a_row_with_a_stray_comma_loses_nothing_and_is_told(tmp_path):
    (tmp_path / "faq.csv").write_text("question,answer\nWhy?,So, and more\nHow?\n")
    report = LoadReport()
    first, second = documents(tmp_path, report)
    assert (first.title, first.text) == ("Why?", "So, and more")
    assert (second.title, second.text) == ("How?", "")
    assert report.notes()[0].startswith(
        "faq.csv:2, faq.csv:3: a row with more or fewer cells than the header"
    )


def test_any_field_of_json_lines_is_text_by_choice(tmp_path):
    row = {"id": "a", "text": "usual", "tags": ["red", "blue"], "size": {"cm": 4}, "n": 7, "gone": None}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (usual,) = documents(tmp_path)
    assert (usual.text, usual.meta["n"]) == ("tags: red, blue\nn: 7\n\nusual", "7")
    (chosen,) = documents(tmp_path, None, Reading(("text", "tags", "size", "n", "gone")))
    assert chosen.text == "usual\n\nred\nblue\n\ncm: 4\n\n7"
    assert chosen.meta == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text_columns": ("",)}, "named by 1 to"),
        ({"text_columns": ("x" * (LONGEST_COLUMN + 1),)}, "named by 1 to"),
        ({"text_columns": tuple(map(str, range(101)))}, "101 text columns; at most 100"),
        ({"html": "some"}, "all or main, not as 'some'"),
    ],
)
def test_a_choice_that_cannot_be_says_what_is_allowed(given, said):
    with pytest.raises(BadInput, match=said):
        Reading(**given)


def test_a_sample_bounds_what_is_looked_at(tmp_path):
    rows = [f"{n},{'short' if n < columns.SAMPLED else LONG}" for n in range(columns.SAMPLED + 50)]
    (tmp_path / "t.csv").write_text("number,remark\n" + "\n".join(rows))
    first, *_ = documents(tmp_path)
    assert first.text == "number: 0\nremark: short"
