"""Markdown tables out of evaluations: `python -m scripts.tables results/scifact results/support ...`.

Each argument is a folder that `python -m core eval ... --out DIR` wrote. One table a set, and one of
answers where routes wrote them; a star marks what differs from the baseline after Holm's correction.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from core.evaluation.statistics import ALPHA

_WORTH = ("supported_accuracy", "correct", "f1")
COLUMNS = ("ndcg@10", "recall@10", "recall@100")


def table(figures: dict[str, Any]) -> str:
    """The routes that ended, best nDCG@10 first."""
    rows = {name: row for name, row in figures["routes"].items() if row["ndcg@10"] is not None}
    drawn = (
        f", a sample of {figures['sample']['of']} (seed {figures['sample']['seed']})"
        if figures["sample"]
        else ""
    )
    asked = f"{figures['labelled']} labelled questions{drawn}"
    head = f"`{figures['dataset']}`, {asked}, against `{figures['baseline']}`:"
    lines = [
        head,
        "",
        "| route | nDCG@10 | recall@10 | recall@100 | p50 alone | model calls | tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["ndcg@10"]):
        cells = [f"{row[metric]:.3f}".lstrip("0") + _star(row, metric) for metric in COLUMNS]
        tokens = row["prompt_tokens"] + row["completion_tokens"]
        lines.append(
            f"| `{name}` | {' | '.join(cells)} | {_time(row['p50_ms'])} | {row['llm_calls']} | {tokens:,} |"
        )
    return "\n".join(lines)


def answers(figures: dict[str, Any]) -> str:
    """What the routes' answers are worth, best supported first; nothing if none were written."""
    rows = {name: row for name, row in figures["routes"].items() if row.get("answers", {}).get("n")}
    if not rows:
        return ""
    asked = f"{figures['queries']} questions, against `{figures['baseline']}`"
    lines = [
        f"Answers on `{figures['dataset']}`, {asked}:",
        "",
        "| route | correct | supported accuracy | contains | F1 | citation P / R | abstention P / R "
        "| model calls | tokens a question | p50 alone |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    worth = sorted(rows.items(), key=lambda item: [-(item[1]["answers"][key] or 0) for key in _WORTH])
    for name, row in worth:
        one = row["answers"]
        tokens = (row["prompt_tokens"] + row["completion_tokens"]) / max(1, figures["queries"])
        cells = [
            *(_share(one, key) + _star(one, key) + _ends(one, key) for key in _WORTH[1::-1]),
            *(_share(one, key) + _star(one, key) for key in ("contains", "f1")),
            f"{_share(one, 'citation_precision')} / {_share(one, 'citation_recall')}",
            f"{_share(one, 'abstention_precision')} / {_share(one, 'abstention_recall')}",
            f"{row['llm_calls']}",
            f"{tokens:,.0f}",
            _time(row["p50_ms"]),
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _share(row: dict[str, Any], key: str) -> str:
    return "-" if row[key] is None else f"{row[key]:.2f}"


def _ends(row: dict[str, Any], key: str) -> str:
    ends = row["ci95"][key]
    return f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""


def _star(row: dict[str, Any], metric: str) -> str:
    compared = (row.get("vs_baseline") or {}).get(metric) or {}
    return "*" if compared.get("p_holm", 1.0) < ALPHA else ""


def _time(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def main() -> None:
    """Print a table for each folder."""
    found = [
        json.loads((Path(folder) / "metrics.json").read_text(encoding="utf-8")) for folder in sys.argv[1:]
    ]
    tables = [written for one in found for written in (table(one), answers(one)) if written]
    sys.stdout.write("\n\n".join(tables) + "\n")


if __name__ == "__main__":
    main()
