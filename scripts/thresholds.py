"""Choose one threshold on dev questions, and tell what it is worth on others.

`python -m scripts.thresholds WHAT SET [DEV [TEST]]`: WHAT is `evidence` (P(Yes) that the passages hold the
answer) or `confidence` (of an answer without a search). The threshold is that of the highest balanced
accuracy on DEV questions. A set without a dev split is cut in halves by a seed. That of `evidence` stands in
`core.domain.types.EVIDENCE`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from core.corpus import catalogue
from core.domain import settings
from core.domain.errors import ModelFailed
from core.domain.types import Ranking
from core.engine.engine import Engine
from core.evaluation import sets
from core.evaluation.answers import Given, correct
from core.evaluation.calibration import choose
from core.evaluation.dataset import LabelledSet, Question
from core.steps import Memo, Steps
from core.steps.generate import SHOWN
from core.steps.trace import Trace

SEED = 1  # not that of the samples that are evaluated


def evidence(do: Steps, question: Question, hits: Ranking) -> float | None:
    """P(Yes) that the passages hold the answer."""
    return do.evidence(question.query.text, hits, None, 0.5).score


SCORES: Mapping[str, Callable[[Steps, Question, Ranking], float | None]] = {
    "evidence": evidence,
}


def cases(engine: Engine, labelled: LabelledSet, what: str) -> Iterator[tuple[float, bool]]:
    """(score, whether it should be high) of each question that has both."""
    corpus = engine.corpus(labelled.name)
    for question in labelled.questions:
        trace = Trace(what)
        do = Steps(engine.context(corpus, None, trace, Memo(), threading.Event()))
        text = question.query.text
        try:
            if what == "confidence":
                said = do.answer_unsearched(text)
                given = Given(said.text)
                score = 0.0 if said.unknown else said.mean
                good = correct(given, question.answers, True) if question.answers else None
            else:
                hits = do.rrf((do.sparse(text), do.dense(text)))[:SHOWN]
                score = SCORES[what](do, question, hits)
                relevant = labelled.qrels.get(question.id, {})
                good = any(relevant.get(hit.passage.id, 0) >= labelled.relevant_from for hit in hits)
        except ModelFailed as error:
            sys.stderr.write(f"{question.id}: {error}\n")
            continue
        if score is not None and good is not None:
            sys.stderr.write(f"{question.id} {question.mode or ''} {score:.3f} {good}\n")
            yield score, good


def halves(engine: Engine, target: str) -> tuple[LabelledSet, LabelledSet]:
    """The dev and test questions of a set, or two halves of the only split it has."""
    source = catalogue.source(target, settings=engine.settings)
    corpus = engine.corpus(source.name)

    def read(split: str) -> LabelledSet:
        return sets.tie(sets.read(source.name, source.path, split=split), corpus)[0]

    if source.name in sets.BUILT_IN:
        return read("dev"), read("test")
    whole = read("test")
    ids = sorted(question.id for question in whole.questions)
    random.Random(SEED).shuffle(ids)
    first = set(ids[: len(ids) // 2])
    dev = tuple(question for question in whole.questions if question.id in first)
    test = tuple(question for question in whole.questions if question.id not in first)
    return replace(whole, questions=dev), replace(whole, questions=test)


def main() -> None:
    """Print the threshold, and what it is worth on the questions it was not chosen on."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=(*SCORES, "confidence"))
    parser.add_argument("target", metavar="SET")
    parser.add_argument("dev", nargs="?", type=int, default=40)
    parser.add_argument("test", nargs="?", type=int, default=40)
    given = parser.parse_args()
    engine = Engine(settings.load(route_timeout_s=600, llm_timeout_s=300))
    dev, test = halves(engine, given.target)
    told = {}
    chosen: float | None = None
    for name, part, count in (("dev", dev, given.dev), ("test", test, given.test)):
        found = list(cases(engine, part.sample(count, SEED), given.what))
        scores, good = [score for score, _ in found], [label for _, label in found]
        both = any(good) and not all(good)
        chosen = choose(scores, good, objective="balanced accuracy") if chosen is None else chosen
        acted = [score >= chosen for score in scores]
        told[name] = {
            "questions": len(found),
            "positive": sum(good),
            "auc": float(roc_auc_score(good, scores)) if both else None,
            "threshold": chosen,
            "balanced accuracy": float(balanced_accuracy_score(good, acted)) if both else None,
        }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
