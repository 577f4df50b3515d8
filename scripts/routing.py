"""How well the model-free classifiers tell kinds of questions apart: `python -m scripts.routing support`.

Rules and examples were written by somebody who had read the questions of both splits, and tuned on dev: the
figures on test are those of questions not tuned on, but not of unseen ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from core.backends.embedder import load_embedder
from core.domain import settings
from core.domain.types import Query
from core.evaluation import sets
from core.evaluation.routing import confusion, matrix
from core.steps.classes import EXAMPLES, by_examples, by_rules
from core.steps.classify import NEAREST, decide


def classifiers() -> dict[str, Callable[[Query], str]]:
    """The class of a question, by classifier."""
    embedder = load_embedder(settings.current().embedder, settings=settings.current())
    pairs = [(name, example) for name, examples in EXAMPLES.items() for example in examples]
    vectors, classes = embedder.embed([example for _, example in pairs]), [name for name, _ in pairs]

    def prototypes(query: Query) -> str:
        scores = by_examples(embedder.embed_query(query.text), vectors, classes, NEAREST)
        return decide(scores, bool(query.history), "mean cosine").decision

    return {"rules": lambda query: by_rules(query.text, bool(query.history))[0], "prototypes": prototypes}


def main() -> None:
    """Print a confusion matrix for each classifier and split."""
    (corpus,) = sys.argv[1:] or ["support"]
    for name, classify in classifiers().items():
        for split in ("dev", "test"):
            questions = sets.read(corpus, None, split=split).questions
            chosen = {question.id: classify(question.query) for question in questions}
            found = confusion(chosen, {question.id: question.mode for question in questions})
            sys.stdout.write(f"{name}, {split} questions of {corpus}\n{matrix(found)}\n\n")


if __name__ == "__main__":
    main()
