"""The stress set: each pair of documents answers one question, by a count of the words."""

import json
from itertools import combinations

import pytest

from core.cli import BAD_INPUT, main
from core.evaluation import dataset


def test_every_pair_answers_one_question_and_others_none(tmp_path, capsys):
    folder = tmp_path / "stress"
    assert main(["questions", "stress", str(folder), "--documents", "7", "--others", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(folder), "documents": 12, "questions": 21}
    labelled = dataset.beir(folder)
    texts = {row["_id"]: row["text"] for row in map(json.loads, (folder / "corpus.jsonl").open())}
    pairs = []
    for question in labelled.questions:
        thing = question.query.text.removeprefix("Who likes ").removesuffix("?")
        holders = {id for id, text in texts.items() if thing in text.rstrip(".").replace(",", "").split()}
        assert holders == set(labelled.relevant(question.id))
        pairs.append(tuple(sorted(holders)))
    assert sorted(pairs) == list(combinations([f"m{n}" for n in range(7)], 2))
    assert {len(text.split(",")) for text in texts.values()} == {6}, "no document is told by its length"
    assert main(["questions", "stress", str(folder)]) == BAD_INPUT


@pytest.mark.parametrize("documents", ["2", "91"])
def test_too_few_and_too_many_documents_are_refused(tmp_path, documents, capsys):
    assert main(["questions", "stress", str(tmp_path / "s"), "--documents", documents]) == BAD_INPUT
    assert not (tmp_path / "s").exists()
