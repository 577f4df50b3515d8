"""Stored JSON that is not of its type is told in one line, with the place."""

import json

import pytest
from pydantic import TypeAdapter

from core.domain.errors import BadInput
from core.evaluation import experiment_store
from core.evaluation.spec import Spec
from core.evaluation.stored import checked


def test_the_first_thing_that_is_wrong_is_told_with_its_place():
    with pytest.raises(ValueError, match=r"^a\.1: Input should be a valid integer") as told:
        checked(TypeAdapter(dict[str, list[int]]), {"a": [1, {}, {}]})
    assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match=r"^Input should be a valid dictionary"):
        checked(TypeAdapter(dict[str, int]), [])


@pytest.mark.parametrize(
    "document", [{}, {"corpus": "tiny", "more": 1}, {"corpus": 3}, {"corpus": "a", "repeats": "x"}, []]
)
def test_what_describes_no_evaluation_is_refused(document):
    with pytest.raises(BadInput, match="this is not a valid description of an evaluation: ") as told:
        Spec.read(document)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "bend",
    [
        lambda set_: set_.pop("name"),
        lambda set_: set_["questions"][0].pop("id"),
        lambda set_: set_["questions"][0].update(query="text"),
        lambda set_: set_["qrels"].update(q1={"d": "high"}),
        lambda set_: set_.update(questions={"q": 1}),
    ],
)
def test_questions_that_are_none_are_told_in_one_line(tmp_path, bend):
    from tests.released import evaluation, outcome

    evaluation(tmp_path / "kept", {"bm25": [outcome(1)] * 3})
    path = tmp_path / "kept" / experiment_store.LABELLED
    document = json.loads(path.read_text())
    bend(document["set"])
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="is damaged: ValueError: ") as told:
        experiment_store.opened(tmp_path / "kept")
    assert "\n" not in str(told.value)
