"""Training examples for a model that is to answer from passages, made from a labelled set.

Source: Zhang et al. 2024, "RAFT: Adapting Language Model to Domain Specific RAG", arXiv:2403.10131, section
3: question, relevant ("oracle") passages and distractors; a share of the examples has distractors only.
There a large model writes the reasoning. Here nothing is written: what stands before the answer is quotes
from the labels.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.backends.prompting.untrusted import GROUNDED, harmless, quoted
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput
from core.domain.types import Hit
from core.evaluation.dataset import Found, LabelledSet, Written

Quotes = Mapping[str, tuple[str, ...]]  # by question
SEEN_FROM = 2  # the grade of a label from which its quote is part of an answer


@dataclass(slots=True)
class Made:
    """The numbers of examples made and questions skipped; `short` examples have fewer distractors, as BM25
    finds no more.
    """

    examples: int = 0
    without_oracle: int = 0
    short: int = 0
    skipped: dict[str, int] = field(default_factory=dict)


def quotes(found: Found) -> Quotes:
    """Return the quotes that the labels of each question stand on, in their order; only some sets have
    them.
    """
    if not isinstance(found, Written):
        return {}
    return {
        id: tuple(dict.fromkeys(e.quote for e in entries if e.quote and e.grade >= SEEN_FROM))
        for id, entries in found.evidence.items()
    }


def examples(
    labelled: LabelledSet,
    corpus: Corpus,
    said: Quotes,
    made: Made,
    *,
    distractors: int,
    p_gold: float,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """One example a question that has a gold answer and a relevant passage; the others are counted in `made`.

    Each question draws from its own generator, so that an example depends on nothing but its question, the
    corpus and `seed`. With probability 1 - `p_gold` all relevant passages are left out: "oracle" is then null
    and nothing is quoted.
    """
    if distractors < 0 or not 0 <= p_gold <= 1:
        raise BadInput(f"distractors={distractors}, p_gold={p_gold:g}; give 0 or more, and 0 to 1")
    for question in labelled.questions:
        graded = labelled.qrels.get(question.id, {})
        gold = list(corpus.by_ids(sorted(labelled.relevant(question.id))).values())
        lacks = "no gold answer" if not question.answers else "no relevant passage" if not gold else ""
        if lacks:
            made.skipped[lacks] = made.skipped.get(lacks, 0) + 1
            continue
        draw = random.Random(f"{seed}:{question.id}")
        kept = draw.random() < p_gold
        # The best of BM25 that carry no label at all: background is neither an answer nor a distraction.
        known = {id for id, grade in graded.items() if grade > 0}
        known |= {question.id} if labelled.drop_self else set()
        near = corpus.search_sparse(question.query.text, distractors + len(known))
        others = [hit.passage for hit in near if hit.passage.id not in known][:distractors]
        shown = [*(gold if kept else ()), *others]
        draw.shuffle(shown)
        made.examples += 1
        made.without_oracle += not kept
        made.short += len(others) < distractors
        whole = " ".join(" ".join(p.text.split()) for p in gold)
        held = [q for q in said.get(question.id, ()) if kept and " ".join(q.split()) in whole]
        passages = quoted(tuple(Hit(passage, 0.0) for passage in shown))
        reason = "".join(f"##begin_quote##{quote}##end_quote##\n" for quote in held)
        answer = question.answers[0]
        yield {
            "id": question.id,
            "question": question.query.text,
            "context": [{"id": p.id, "title": p.title, "text": p.text} for p in shown],
            "oracle": [p.id for p in gold] if kept else None,
            "answer": answer,
            "quotes": held,
            "messages": [
                {"role": "system", "content": GROUNDED},
                *({"role": turn.role, "content": harmless(turn.text)} for turn in question.query.history),
                {"role": "user", "content": harmless(f"{passages}\n\nQuestion: {question.query.text}")},
                {"role": "assistant", "content": harmless(f"{reason}##Answer: {answer}")},
            ],
        }
