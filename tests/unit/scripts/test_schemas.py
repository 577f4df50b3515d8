"""docs/schemas: current, true of what the program writes, and no wider than what it reads."""

import copy
import csv
import io
import json
import tomllib

import pytest
from jsonschema import Draft202012Validator, ValidationError

from core.cli import cli, main
from core.domain.errors import BadInput
from core.domain.external import read_reply
from core.domain.settings import PROJECT
from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange
from core.store import Store
from core.store.labels import Judgement, Pooled
from scripts import schemas
from tests.released import evaluation, outcome
from ui.app import agents

HIT = {"doc_id": "faq.md", "text": "Returns take 30 days.", "score": 0.8}
STAGES = [
    {"name": "bm25", "kind": "RETRIEVER", "ms": 3, "hits": [HIT]},
    {"name": "cross-encoder", "kind": "rerank", "hits": [HIT], "from": ["bm25"]},
]
REPLIES = (
    [HIT],
    [{"doc_id": 7, "text": None, "start": 0, "end": 21, "metadata": {"lang": "en"}, "further": 1}],
    {"hits": [], "answer": None, "stages": None},
    {
        "hits": [HIT],
        "answer": "30 days.",
        "citations": ["faq.md", 7],
        "rewritten": ["return period"],
        "stages": STAGES,
        "usage": {"prompt": 100, "completion": 20, "calls": 1},
    },
)
BROKEN_REPLIES = (
    HIT,
    {"hits": None},
    [{"text": "no document"}],
    [{"doc_id": ""}],
    [HIT | {"score": "0.8"}],
    [HIT | {"start": -1, "end": 4}],
    [HIT] * 1001,
    {"hits": [HIT], "answer": ["30 days."]},
    {"hits": [HIT], "stages": [{"kind": "rerank"}]},
    {"hits": [HIT], "stages": [{"name": "a", "kind": "teleport"}]},
    {"hits": [HIT], "stages": [{"name": "a", "from": "bm25"}]},
    {"hits": [HIT], "usage": {"prompt": 1.5}},
)


def schema(name):
    return json.loads((schemas.FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def validator(name):
    return Draft202012Validator(schema(name))


def closed(name):
    """The validator of a format in which a field that the schema does not name is an error."""
    whole = copy.deepcopy(schema(name))
    for one in (whole, *whole["$defs"].values()):
        if "properties" in one:
            one.setdefault("additionalProperties", False)
    return Draft202012Validator(whole)


def test_schemas_are_current_and_valid():
    assert {file.stem for file in schemas.FOLDER.iterdir()} == schemas.FORMATS.keys()
    for name in schemas.FORMATS:
        written = (schemas.FOLDER / f"{name}.json").read_text(encoding="utf-8")
        assert written == schemas.document(name), "run: python -m scripts.schemas"
        found = json.loads(written)
        Draft202012Validator.check_schema(found)
        assert found["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
        assert found["$id"] == f"urn:routescope:schema:{name}"
        assert found["title"]
        assert found["description"]
        for definition in found.get("$defs", ()):
            assert f'"#/$defs/{definition}"' in written


def test_schemas_are_linked_where_their_formats_are_described():
    pages = "".join((PROJECT / "docs" / page).read_text() for page in ("your-pipeline.md", "deciding.md"))
    for name in schemas.FORMATS:
        assert f"(schemas/{name}.json)" in pages
        assert f"(docs/schemas/{name}.json)" in (PROJECT / "llms.txt").read_text()


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_that_is_read_is_valid(reply):
    read_reply(copy.deepcopy(reply), "mine")
    validator("reply").validate(reply)


@pytest.mark.parametrize("reply", BROKEN_REPLIES)
def test_a_reply_that_is_not_read_is_invalid(reply):
    with pytest.raises(BadInput):
        read_reply(copy.deepcopy(reply), "mine")
    with pytest.raises(ValidationError):
        validator("reply").validate(reply)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What an evaluation of two routes and a gate against an earlier one write, by format."""
    home = tmp_path_factory.mktemp("written")
    ranks = [1, 2, None, 1] * 8
    before = {"bm25": [outcome(1)] * 32, "dense": [outcome(2)] * 32}
    after = {"bm25": [outcome(rank) for rank in ranks], "dense": [outcome(2)] * 32}
    for name, by_route in (("before", before), ("after", after)):
        evaluation(home / name, by_route, alike=name == "before")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROUTESCOPE_HOME", str(home))
        main(["gate", str(home / "before"), "--snapshot", str(home / "snapshot.json"), "--json"])
    return home


def gate(home, capsys, *more):
    main(["gate", str(home / "after"), "--json", *more])
    return json.loads(capsys.readouterr().out)


def test_files_are_valid(written):
    closed("snapshot").validate(json.loads((written / "snapshot.json").read_text()))
    closed("labelled").validate(json.loads((written / "after" / "labelled.json").read_text()))
    # it has more figures than are read back
    validator("metrics").validate(json.loads((written / "after" / "metrics.json").read_text()))


def test_decisions_are_valid(written, capsys):
    plain = gate(written, capsys)
    closed("gate").validate(plain)
    guarded = gate(written, capsys, "--against", str(written / "snapshot.json"))
    assert guarded["against"]["questions"]
    assert any(one["passage"] for one in guarded["against"]["questions"])
    closed("gate").validate(guarded)
    undecided = gate(written, capsys, "--min-questions", "1000")
    assert undecided["label_next"]
    closed("gate").validate(undecided)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("metrics", "routes", {}),
        ("metrics", "routes", {"bm25": {"failed": 0}}),
        ("metrics", "queries", "32"),
        ("metrics", "by_mode", {"plain": {"bm25": {"ndcg@10": "high"}}}),
        ("labelled", "set", {"name": "tiny"}),
        ("gate", "decision", "perhaps"),
        ("gate", "candidates", [{"route": "bm25"}]),
        ("gate", "label_next", None),
        ("snapshot", "schema", 2),
        ("snapshot", "values", {"bm25": {"ndcg@10": {"q0": None}}}),
    ],
)
def test_broken_documents_are_invalid(written, capsys, name, field, value):
    files = {"metrics": "after/metrics.json", "labelled": "after/labelled.json", "snapshot": "snapshot.json"}
    found = gate(written, capsys) if name == "gate" else json.loads((written / files[name]).read_text())
    check = validator(name)
    check.validate(found)
    with pytest.raises(ValidationError):
        check.validate(found | {field: value})
    with pytest.raises(ValidationError):
        check.validate({key: one for key, one in found.items() if key != field})


def test_rows_of_label_files_are_valid(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    desks.create(store, "set", "tiny", [Question("q1", Query("How?")), Question("q2", Query("=Why?"))])
    pool = {id: [Pooled(Passage(id, "d", "D", "Text.", 0, 5))] for id in ("q1", "q2")}
    store.change_labels(lambda labels: labels.add_to_pool("set", pool))
    desks.judge_all(store, "set", [Judgement("q1", "q1", "Ann", "person", "grade", 3)])
    table = exchange.table(desks.load(store, "set"), unjudged=True).decode()
    store.close()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["grade"] for row in rows] == ["3", ""]
    for row in rows:
        validator("labels").validate(row)
        assert row.keys() == schema("labels")["properties"].keys()
        with pytest.raises(ValidationError):
            validator("labels").validate(row | {"grade": "4"})


def test_server_json_agrees_with_the_package_and_the_command():
    server = json.loads((PROJECT / "server.json").read_text())
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    (package,) = server["packages"]
    assert server["name"].split("/")[1] == package["identifier"] == project["name"]
    assert server["version"] == package["version"] == project["version"]
    assert f"<!-- mcp-name: {server['name']} -->" in (PROJECT / "README.md").read_text()
    assert len(server["description"]) <= 100  # the registry's limit
    assert package["runtimeHint"] == "uvx"  # runs the script named like the package
    assert package["identifier"] in project["scripts"]
    assert package["transport"] == {"type": "stdio"}
    (argument,) = package["packageArguments"]
    assert (argument["type"], argument["value"]) == ("positional", "mcp")
    assert argument["value"] in cli.list_commands(None)
    (remote,) = server["remotes"]
    assert (remote["type"], remote["url"]) == ("streamable-http", f"https://{{host}}{agents.PATH}")
    assert set(remote["variables"]) == {"host"}
