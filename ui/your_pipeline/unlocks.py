"""Which field of a reply unlocks which page and which fate of a passage: also in docs/your-pipeline.md."""

from __future__ import annotations

HEAD = ("Field", "Unlocks", "Fate of a passage that it makes known")
ROWS: tuple[tuple[str, str, str], ...] = (
    ("doc_id, text", "Compare, Evaluate, Label, Release, ladder; matching by text", "found, never retrieved"),
    (
        "id, or start and end",
        "matching by id or offsets, which is exact and quick",
        "the same, for more hits",
    ),
    ("score", "the score beside each hit; without scores, 1/rank stands there", "–"),
    ("title", "names of passages that are not in the corpus", "–"),
    ("stages[].hits", "Why: each stage's list, followed passage by passage", "dropped, and by which stage"),
    ("stages[].kind", "Why: what a stage does", "fused away (fuse), reranked away (rerank)"),
    ("stages[].ms", "Latency: time inside the call, as you report it", "–"),
    ("stages[].from", "Why: which lists a stage was given, where they branch", "list not used"),
    ("rewritten", "Transform, and the query on Compare", "–"),
    ("answer", "Compare, Answers; Evaluate measures it", "–"),
    ("citations", "citations on Compare; Evaluate measures them", "found and cited"),
    ("usage", "Cost on Compare; tokens on Latency", "–"),
    ("metadata", "kept with the reply; no page shows it", "–"),
)


def markdown() -> str:
    """The table for the documentation."""
    lines = [
        HEAD,
        ("---",) * 3,
        *((f"`{field}`" if " " not in field else _code(field), *rest) for field, *rest in ROWS),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(field: str) -> str:
    """Field names as code, the words between them as they are."""
    words = ("or", "and")
    return " ".join(
        word if word in words else f"`{word.rstrip(',')}`" + ("," if word.endswith(",") else "")
        for word in field.split()
    )
