"""Why names the documents that came between two runs of one question."""

import json
from dataclasses import replace

from tests.pages.reading import shown


def test_a_new_document_above_the_passage_is_named_with_the_rank_without_it(visit, stored, engine):
    run = stored["good"]
    first, passage = run.results[0].hits[0].passage, run.results[0].hits[1].passage
    without = replace(run.results[0], hits=run.results[0].hits[1:])
    earlier = replace(run, id="earlier", created="2020-01-01T00:00:00.000Z", fingerprint="before")
    engine.store.save(replace(earlier, results=(without, *run.results[1:])))
    assert engine.store.flush()
    now = {one.doc_id: "1" for one in run.passages.values()}
    folder = engine.settings.home / "indexes" / "tiny"
    folder.mkdir(parents=True)
    (folder / f"documents-{run.fingerprint}.json").write_text(json.dumps(now))
    del now[first.doc_id]
    (folder / "documents-before.json").write_text(json.dumps(now))
    app = visit("why.py", run="good", passage=passage.id)
    assert "2020-01-01 00:00 UTC the corpus has changed (documents: 1 new)" in shown(app)
    (table,) = (one.value for one in app.dataframe if "Displaced by" in one.value.columns)
    (row,) = table[table["Route"] == run.results[0].route].to_dict("records")
    assert (row["Rank then"], row["Rank now"], row["Without them"]) == (1, 2, 1)
    assert row["Displaced by"] == f"{first.doc_id} (new, rank 1)"


def test_without_an_earlier_state_nothing_is_said_of_documents(visit, stored):
    assert "the corpus has changed" not in shown(visit("why.py", run="good"))
