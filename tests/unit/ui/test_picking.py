"""The style that lights a passage up."""

from tests.runs import HOSTILE, make_run
from ui.components.grid import View, grid, lit, numbered

RUN = make_run(mishaps=False)


def test_a_passage_is_lit_by_its_number_whatever_is_shown():
    for view in (View("bm25", 10, "M"), View("dense", 20, "S")):
        page = grid(RUN, view)
        for hit in RUN.results[0].hits[:10]:
            assert f'data-p="{numbered(RUN)[hit.passage.id]}"' in page
    id = RUN.results[0].hits[0].passage.id
    assert f'.rs :is(.rs-grid,.rs-matrix) [data-p="{numbered(RUN)[id]}"]{{background' in lit(RUN, id)
    for other in (None, HOSTILE[0]):
        assert lit(RUN, other) == "<style>.rs-none{}</style>"


def test_relevant_passages_are_counted_where_there_are_some():
    first, second = (hit.passage.id for hit in RUN.results[0].hits[:2])
    assert "1 of 1 relevant passages" in grid(RUN, View("bm25", 10, "M", gold={first: 3, second: 0}))
    assert "relevant passages" not in grid(RUN, View("bm25", 10, "M", gold={first: 0}))
