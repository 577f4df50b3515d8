"""What metrics of rankings and answers are called where people read them."""

from __future__ import annotations

from core.analysis.metrics import title

ANSWERED = {
    "f1": "F1 of the answer",
    "exact": "exact answer",
    "contains": "gold answer contained",
    "gold_recall": "gold words found",
    "correct": "correct answer",
    "supported_accuracy": "supported accuracy",
    "citation_precision": "citation precision",
    "citation_recall": "citation recall",
    "abstention_precision": "abstention precision",
    "abstention_recall": "abstention recall",
    "false_abstention": "false abstention",
    "execution_accuracy": "execution accuracy",
    "answer_accuracy": "answer accuracy",
}


def named(metric: str) -> str:
    """The metric as people write it: nDCG@10, recall@100, supported accuracy."""
    return ANSWERED.get(metric) or title(metric)
