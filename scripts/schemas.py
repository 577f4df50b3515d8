"""Writes docs/schemas from the types that check each format; a test fails if the two differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, get_args, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from core.domain.external import MAX_ALL_HITS, MAX_METADATA, Hits, PipelineReply
from core.domain.settings import PROJECT
from core.domain.types import SpanKind
from core.evaluation.dataset import LabelledSet
from core.evaluation.figures import Figures
from core.evaluation.labels import exchange
from core.evaluation.labels.label_next import Next
from core.evaluation.release import snapshot
from core.evaluation.release.gate import Decision
from core.evaluation.release.snapshot import Against
from core.evaluation.spec import Spec
from core.store.labels import GRADES, PREFERENCES, Judgement

FOLDER = PROJECT / "docs" / "schemas"
Schema = dict[str, Any]
NULL, TEXT, WHOLE, TRUTH = ({"type": name} for name in ("null", "string", "integer", "boolean"))


class AsWritten(GenerateJsonSchema):
    """The program writes every field, those with defaults too."""

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002 - pydantic's signature
        """Require each."""
        return True


class LabelledFile(TypedDict):
    """What `experiment_store.write_labelled` writes."""

    spec: Spec
    set: LabelledSet


def reply() -> Schema:
    """Describe what `read_reply` reads."""
    schema = TypeAdapter(Hits | PipelineReply).json_schema()
    for name in ("ForeignHit", "PipelineStage", "PipelineReply"):
        one = schema["$defs"][name]
        for field, value in one["properties"].items():
            if field not in one["required"] and NULL not in value.get("anyOf", ()):
                one["properties"][field] = {"anyOf": [value, NULL]}  # read as a missing field
    return schema


def labelled() -> Schema:
    """Describe labelled.json."""
    return TypeAdapter(LabelledFile).json_schema(schema_generator=AsWritten)


def decision() -> Schema:
    """Describe what `gate --json` writes: the documents of a Decision, of Next and of Against."""
    adapters = [(one.__name__, "serialization", TypeAdapter(one)) for one in (Decision, Next, Against)]
    definitions = TypeAdapter.json_schemas(adapters, schema_generator=AsWritten)[1]["$defs"]
    schema, against = definitions.pop("Decision"), definitions["Against"]
    verdict, questions = definitions.pop("Verdict"), definitions.pop("QuestionsDiff")["properties"]
    label_next = {"type": "array", "items": {"$ref": "#/$defs/Next"}}
    _replace(schema, "verdict", **verdict["properties"], label_next=label_next)
    _replace(definitions["Candidate"], passes=TRUTH)
    _replace(definitions["Next"], "query", question=TEXT)
    del definitions["Query"], definitions["Turn"]
    one = definitions["QuestionDiff"]
    decisive = dict.fromkeys(("passage", "step", "why", "told"), TEXT)
    decisive |= dict.fromkeys(("rank_before", "rank_after"), WHOLE)
    _replace(
        one,
        *("id", "status", "relabelled", "displaced"),
        question=TEXT,
        status_before=TEXT,
        status_after=TEXT,
        labels_changed=TRUTH,
        displaced_by=one["properties"]["displaced"],
        **{name: {"anyOf": [value, NULL]} for name, value in decisive.items()},
    )
    # not required: `left_out` is there if questions were compared, the others with --against
    against["properties"] |= {
        "questions": {"anyOf": [questions["questions"], NULL]},
        "left_out": questions["left_out"],
    }
    schema["properties"] |= {
        "regression": against["properties"]["regression"],
        "against": {"$ref": "#/$defs/Against"},
    }
    return {"$defs": definitions, **schema}


def _replace(schema: Schema, *without: str, **fields: Schema) -> None:
    """Put required `fields` into an object, in place of those named."""
    for name in without:
        del schema["properties"][name]
    schema["properties"] |= fields
    schema["required"] = [*schema["properties"]]


def release() -> Schema:
    """Describe what `snapshot.read` reads."""
    schema = TypeAdapter(snapshot.Snapshot).json_schema()
    own = {"kind": {"const": snapshot.KIND}, "schema": {"const": snapshot.SCHEMA}}
    schema["properties"] = own | schema["properties"]
    schema["required"] = [*own, *schema["required"]]
    return schema


def labels() -> Schema:
    """Describe a row of `labels export --format csv`, and of what `labels import` reads."""
    one_of = {
        "source": ("", *get_args(get_type_hints(Judgement)["source"])),
        "kind": ("", "grade", "cannot", "later", *PREFERENCES),
        "grade": ("", *map(str, GRADES)),
    }
    fields = {name: Literal[one_of[name]] if name in one_of else str for name in exchange.COLUMNS}
    schema = TypeAdapter(TypedDict("LabelRow", fields)).json_schema()  # type: ignore[operator]
    return schema | {"required": ["question_id", "passage_id"]}


TOKEN_COUNTS = ("prompt", "completion", "total", "prompt_details.cache_read")
SPAN = {
    "openinference.span.kind": SpanKind,
    **dict.fromkeys(("input.value", "output.value", "metadata", "session.id", "tool.name"), str),
    **dict.fromkeys(("input.mime_type", "output.mime_type"), Literal["text/plain", "application/json"]),
    **dict.fromkeys(("llm.model_name", "llm.invocation_parameters", "embedding.model_name"), str),
    **dict.fromkeys(("reranker.query", "reranker.model_name"), str),
    **{f"llm.token_count.{name}": int for name in TOKEN_COUNTS},
    "gen_ai.operation.name": Literal["chat", "embeddings", "plan", "retrieval", "search_memory"],
    **{f"gen_ai.{name}": str for name in ("data_source.id", "request.model")},
    **{f"gen_ai.retrieval.{name}": str for name in ("documents", "query.text")},
    "gen_ai.retrieval.top_k": int,
    **{f"gen_ai.usage.{name}": int for name in ("input_tokens", "output_tokens")},
}
_DOCUMENT = r"^(retrieval\.documents|reranker\.(in|out)put_documents)\.\d+\.document\."
NUMBERED = {  # lists, by the position in them
    rf"{_DOCUMENT}(id|content|metadata)$": "string",
    rf"{_DOCUMENT}score$": "number",
    r"^embedding\.embeddings\.\d+\.embedding\.text$": "string",
    r"^llm\.output_messages\.\d+\.message\.(role|content)$": "string",
}


def otlp() -> Schema:
    """Describe the attributes of the spans that `export --format otlp` writes."""
    schema = TypeAdapter(TypedDict("SpanAttributes", SPAN, total=False)).json_schema()  # type: ignore[operator]
    schema["required"] = ["openinference.span.kind"]
    return schema | {"patternProperties": {name: {"type": kind} for name, kind in NUMBERED.items()}}


FORMATS: dict[str, tuple[str, str, Callable[[], Schema]]] = {
    "reply": (
        "Reply of a pipeline",
        "The answer of a function or an endpoint to one question: hits, or an object with hits. A line of a "
        "file of replies is such an object with question_id or question, and ms. Further fields are ignored. "
        "A stage's kind is read in any case. Not expressed here: start and end go together, and start is not "
        "after end; `from` names earlier stages with hits; all lists together have at most "
        f"{MAX_ALL_HITS:,} hits, and a hit's metadata at most {MAX_METADATA:,} characters of JSON.",
        reply,
    ),
    "metrics": (
        "Figures of an evaluation",
        "metrics.json, and the output of `eval --json`. Among a route's other keys are the metrics by name, "
        "null if no question has a value. `baseline` is one of the routes.",
        Figures.model_json_schema,
    ),
    "labelled": (
        "Questions of an evaluation with their labels",
        "labelled.json in the folder of an evaluation. `qrels` has the grade of each judged passage by "
        "question. Files that `--questions` reads have another form.",
        labelled,
    ),
    "gate": (
        "Release decision",
        "The output of `gate --json`; `regression` and `against` are there only with --against.",
        decision,
    ),
    "labels": (
        "Row of a label file",
        "A row of the CSV file of `labels export`, by column; it has all of them, and `labels import` needs "
        "those required. A cell that a spreadsheet would run as a formula has an apostrophe before it.",
        labels,
    ),
    "otlp": (
        "Attributes of a span",
        "The attributes of a span of `export --format otlp` by name: OpenInference's and, for generative "
        "AI, OpenTelemetry's. metadata is JSON; input.value and output.value are as their mime_type says.",
        otlp,
    ),
    "snapshot": ("Release snapshot", "The file that `gate --snapshot` writes and --against reads.", release),
}


def document(name: str) -> str:
    """Return the file of a format."""
    title, description, schema = FORMATS[name]
    head = {"$schema": GenerateJsonSchema.schema_dialect, "$id": f"urn:routescope:schema:{name}"}
    own = {"title": title, "description": description}
    return json.dumps(head | own | schema() | own, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in FORMATS:
        (FOLDER / f"{each}.json").write_text(document(each), encoding="utf-8")
