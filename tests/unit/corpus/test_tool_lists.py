"""Lists of tools become a document each; what is no such list is read as before."""

import json
import time

import pytest

from core.corpus.types import LoadReport
from tests.loaded import documents

OPENAPI = """
openapi: 3.1.0
paths:
  /orders/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}, description: The order's number}
    get: {operationId: getOrder, summary: Look up an order, tags: [orders]}
    delete:
      summary: Cancel an order
      requestBody:
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Reason'}
      responses: {'409': {description: The parcel has left}}
components:
  schemas:
    Reason:
      type: object
      properties:
        why: {type: string, enum: [late, wrong], description: What went wrong}
        next: {$ref: '#/components/schemas/Reason'}
"""
MCP = {
    "result": {
        "tools": [
            {
                "name": "search_flights",
                "description": "Find flights between two airports.",
                "inputSchema": {"type": "object", "properties": {"from": {"type": "string"}}},
            }
        ]
    }
}
FUNCTIONS = [
    {
        "type": "function",
        "function": {"name": "add", "description": "Add numbers.", "parameters": {"type": "object"}},
    }
]


def read(folder):
    report = LoadReport()
    return {one.id: one for one in documents(folder, report)}, report


def test_each_operation_of_an_openapi_file_is_a_document(tmp_path):
    (tmp_path / "shop.yaml").write_text(OPENAPI)
    found, report = read(tmp_path)
    assert list(found) == ["shop.yaml/GET /orders/{id}", "shop.yaml/DELETE /orders/{id}"]
    get, delete = found.values()
    assert get.meta["tags"] == "orders"
    assert "- id (path, required) (string): The order's number" in get.text
    assert "    - why (string; one of late, wrong): What went wrong" in delete.text.replace(
        "  - why", "    - why", 1
    )
    assert "- 409: The parcel has left" in delete.text
    assert not report.notes()


@pytest.mark.parametrize(("listed", "names"), [(MCP, ["search_flights"]), (FUNCTIONS, ["add"])])
def test_each_tool_of_a_list_is_a_document(tmp_path, listed, names):
    (tmp_path / "tools.json").write_text(json.dumps(listed))
    found, _ = read(tmp_path)
    assert [one.title for one in found.values()] == names


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"parameters": {"x": 1}, "tools": "none"}'),
        ("b.yaml", "parameters: [1, 2]\n"),
        ("c.yaml", "parameters: !!python/object/apply:os.system ['true']\n"),
        ("d.yaml", "openapi: [\n"),
    ],
)
def test_what_is_no_list_of_tools_is_one_document(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert list(read(tmp_path)[0]) == [name]


@pytest.mark.slow
@pytest.mark.trust
def test_a_schema_that_names_itself_everywhere_is_described_in_bounded_lines(tmp_path):
    parts = {f"p{n}": {"$ref": "#/s"} for n in range(2_000)}
    api = {
        "openapi": "3",
        "s": {"properties": parts},
        "paths": {"/x": {"post": {"parameters": [{"schema": {"$ref": "#/s"}}]}}},
    }
    (tmp_path / "wide.json").write_text(json.dumps(api))
    began = time.process_time()
    (one,) = read(tmp_path)[0].values()
    assert len(one.text.splitlines()) < 500
    assert time.process_time() - began < 5
