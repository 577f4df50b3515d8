"""What earlier steps wrote or judged: texts to search with, grades, excerpts, drafts, answers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.store.upgrade.decisions import WAYS
from core.store.upgrade.earlier import Alone, Among, Around, Document, Earlier
from core.store.upgrade.read import number, rows, table, texts

_GROUP = re.compile(r"\[\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*\]")


def _rewrite(role: str) -> Alone:
    def made(span: Earlier) -> Document:
        wrote = [span.output] if isinstance(span.output, str) else span.output
        return {"type": "rewrite", "before": span.inputs["text"], "texts": wrote, "role": role}

    return made


def _grade(span: Earlier) -> Document:
    return {"type": "passage_grade", **table(span.output)}


def _grading(span: Earlier) -> Document:
    given = table(span.output)
    document = {name: given[name] for name in ("grades", "low", "high", "decision")}
    document |= {"type": "grading", "why": given.get("why", ""), "ways": WAYS[span.name]}
    return {**document, "evaluator": given.get("evaluator", "")}


def _round(span: Earlier) -> Document:
    given, inputs = table(span.output), span.inputs
    earlier = rows(inputs["earlier"])
    judged = {
        "searched": given["question"],
        "mean": given["mean"],
        "before": earlier[-1] if earlier else None,
        "number": len(earlier) + 1,
        "threshold": inputs["threshold"],
        "gain": inputs["gain"],
        "rounds": inputs["rounds"],
        "reason": given["reason"],
    }
    return {**_grading(span), "evaluator": "llm", "round": judged}


def _sentences(span: Earlier) -> Document:
    return {"type": "sentence_filter", "sentences": span.output, "floor": span.inputs.get("floor")}


def _excerpts(span: Earlier) -> Document:
    inputs = span.inputs
    return {
        "type": "excerpts",
        "excerpts": span.output["excerpts"],
        "tokens_before": inputs.get("tokens before", 0),
        "tokens_after": inputs.get("tokens after", 0),
    }


def _short_answer(span: Earlier) -> Document:
    inputs = span.inputs
    return {
        "type": "short_answer",
        "question": inputs["question"],
        "text": span.output or "",
        "source": inputs.get("found in") or "",
    }


def _written(span: Earlier, around: Around) -> Document:
    """An answer from passages; its markers count those it was shown."""
    inputs, text = span.inputs, span.output
    shown = texts(inputs.get("shown")) or [id for id, _ in around.given(span, "hits")]
    wrong = [one for one in rows(inputs.get("wrong citations")) if isinstance(one, int)]
    right = [n for n in _markers(text) if n not in wrong and 1 <= n <= len(shown)]
    copied = span.name == "copy the best sentences"
    abstained = "scores" not in inputs if copied else bool(inputs.get("abstained"))
    document = {
        "type": "written",
        "text": text,
        "shown": shown,
        "abstained": abstained,
        "wrong": wrong,
        "uncited": texts(inputs.get("sentences without citation")),
        "copied": copied,
        "cited": [] if abstained else list(dict.fromkeys(shown[n - 1] for n in right)),
    }
    if copied:
        document |= {
            name: inputs[name] for name in ("evidence", "floor") if number(inputs.get(name)) is not None
        }
        if "evidence" not in document:
            document.pop("floor", None)
    return document


def _together(span: Earlier, around: Around) -> Document:
    """The text stands in the result with its marker."""
    inputs, text = span.inputs, span.output
    attention = table(inputs.get("attention"))
    most = max(attention, key=lambda id: attention[id]) if attention else None
    if most is None or "note" in inputs:
        return {"type": "written", "text": text, "abstained": True}
    shown = list(attention)
    cited = list(around.result.citations) if around.result.citations else [most]
    return {
        "type": "written",
        "text": f"{text} [{shown.index(cited[0]) + 1}]",
        "cited": cited,
        "shown": shown,
        "attention": attention,
    }


def _unaided(span: Earlier) -> Document:
    text = span.output if isinstance(span.output, str) else table(span.output)["text"]
    return {"type": "written", "text": text, "unaided": True}


def _gap(span: Earlier) -> Document:
    return {"type": "written", "text": span.output, "abstained": True}


def _sentence(span: Earlier, around: Around) -> Document:
    """The result of a query in a sentence, which cites it if there is one."""
    result = around.result
    cited = list(result.citations) if result.answer == span.output else []
    return {"type": "written", "text": span.output, "cited": cited, "abstained": not _markers(span.output)}


def _critique(span: Earlier) -> Document:
    return {"type": "critique", **table(span.output), "ways": WAYS[span.name]}


def _draft_choice(span: Earlier) -> Document:
    given, inputs = table(span.output), span.inputs
    document = {name: given[name] for name in ("kept", "decision", "reason", "why")}
    return {"type": "draft_choice", "drafts": inputs["drafts"], "shares": inputs["weighed"], **document}


def _tree(span: Earlier) -> Document:
    given = table(span.output)
    document = {name: given[name] for name in ("decision", "why", "weights", "beam", "segments")}
    branches = [{name: value for name, value in one.items() if name != "raw"} for one in given["branches"]]
    left = [{**one, "likelihood": 0.0, "ended": "end"} for one in rows(given.get("not judged"))]
    return {"type": "segment_tree", "branches": branches, "unjudged": left, **document}


def _table_result(span: Earlier) -> Document:
    return {"type": "table_result", **table(span.output), "ways": WAYS[span.name]}


def _markers(text: str) -> list[int]:
    """The numbers in square brackets, each once, in order."""
    found = (int(n) for group in _GROUP.findall(text) for n in re.split(r"\s*[,;]\s*", group))
    return list(dict.fromkeys(found))


ALONE: Mapping[str, Alone] = {
    "answer from what the model knows": _unaided,
    "answer without passages": _unaided,
    "answer without searching": _unaided,
    "ask for the sentences that help": _sentences,
    "ask in another way": _rewrite("question"),
    "ask the tables": _table_result,
    "choose the best path": _tree,
    "choose the best segment": _tree,
    "copy words from the passages": _short_answer,
    "criticise the draft and decide": _critique,
    "fill in earlier answers": _rewrite("context"),
    "grade and decide": _grading,
    "grade passage from 1 to 5": _grade,
    "grade passage": _grade,
    "grade the round and decide": _round,
    "keep a draft": _draft_choice,
    "keep the strips that matter": _sentences,
    "look for a short answer": _short_answer,
    "put recalled turns before the question": _rewrite("context"),
    "reply without a search": _unaided,
    "rewrite as a standalone question": _rewrite("question"),
    "say what is missing": _gap,
    "split into simpler questions": _rewrite("parts"),
    "write a more general question": _rewrite("question"),
    "write and run SQL": _table_result,
    "write hypothetical passages": _rewrite("passages"),
    "write query variants": _rewrite("variants"),
    "write the excerpts": _excerpts,
    "write web search keywords": _rewrite("keywords"),
}
AMONG: Mapping[str, Among] = {  # by more than their own span
    "answer from the whole corpus": _written,
    "copy the best sentences": _written,
    "read the passages together": _together,
    "refine the answer": _written,
    "say the result": _sentence,
    "write answer": _written,
}
