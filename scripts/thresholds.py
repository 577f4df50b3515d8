"""Choose one threshold on dev questions, and tell what it is worth on others.

`python -m scripts.thresholds WHAT SET [DEV [TEST]]`: WHAT is `evidence` (P(Yes) that the passages hold the
answer) or `confidence` (of an answer without a search). The threshold is that of the highest balanced
accuracy on DEV questions, of split dev or outside split test. A set without splits is cut in halves by a
seed, and one of test questions alone only with `--test`. That of `evidence` stands in
`core.domain.types.EVIDENCE`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from core.corpus import catalogue
from core.domain import settings
from core.domain.errors import ModelFailed, RouteScopeError
from core.domain.types import Ranking
from core.engine.engine import Engine
from core.evaluation import sets
from core.evaluation.answers import Given, correct
from core.evaluation.calibration import choose
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.tuning.sweep_split import split
from core.steps import Steps
from core.steps.generate import DEFAULT_SHOWN_PASSAGES
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
        do = engine.steps(corpus, trace=trace)
        text = question.query.text
        try:
            if what == "confidence":
                said = do.answer_unsearched(text)
                given = Given(said.text)
                score = 0.0 if said.unknown else said.mean
                good = correct(given, question.answers, True) if question.answers else None
            else:
                hits = do.rrf((do.sparse(text), do.dense(text)))[:DEFAULT_SHOWN_PASSAGES]
                score = SCORES[what](do, question, hits)
                relevant = labelled.qrels.get(question.id, {})
                good = any(relevant.get(hit.passage.id, 0) >= labelled.relevant_from for hit in hits)
        except ModelFailed as error:
            sys.stderr.write(f"{question.id}: {error}\n")
            continue
        if score is not None and good is not None:
            sys.stderr.write(f"{question.id} {question.mode or ''} {score:.3f} {good}\n")
            yield score, good


def halves(engine: Engine, target: str, *, test: bool) -> tuple[LabelledSet, LabelledSet]:
    """The questions of a set to choose on and those held out; with `test` halves of one of test questions
    alone, which is BadInput without.
    """
    source = catalogue.source(target, settings=engine.settings)
    whole, _ = sets.tie(sets.read(source.name, source.path, split="all"), engine.corpus(source.name))
    of = {question.split for question in whole.questions}
    parts = split(whole, on="test" if test and of == {"test"} else None)

    def some(ids: Sequence[str]) -> LabelledSet:
        wanted = set(ids)
        return replace(whole, questions=tuple(one for one in whole.questions if one.id in wanted))

    return some(parts.chosen_on), some(parts.held_out)


def main() -> None:
    """Print the threshold, and what it is worth on the questions it was not chosen on."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=(*SCORES, "confidence"))
    parser.add_argument("target", metavar="SET")
    parser.add_argument("dev", nargs="?", type=int, default=40)
    parser.add_argument("held", metavar="test", nargs="?", type=int, default=40)
    parser.add_argument("--test", action="store_true", help="choose on half of a set of test questions alone")
    given = parser.parse_args()
    engine = Engine(settings.load(route_timeout_s=600, llm_timeout_s=300))
    dev, test = halves(engine, given.target, test=given.test)
    told = {}
    chosen: float | None = None
    for name, part, count in (("dev", dev, given.dev), ("test", test, given.held)):
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
    try:
        main()
    except RouteScopeError as error:
        raise SystemExit(str(error)) from None
