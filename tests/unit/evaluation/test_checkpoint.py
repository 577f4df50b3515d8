"""What outlives a process that is killed: the vectors of a build and the questions of an evaluation."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus.embeddings import KEYS, VECTORS, Checkpoint, Known, Vectors, _vectors_of, keys
from core.domain.errors import BadInput, Cancelled, ModelFailed
from core.evaluation.outcome import JOURNAL, Journal, Outcome, alone, busy
from tests.fakes import HashEmbedder


class Texts:
    """Texts by row."""

    def __init__(self, *texts):
        self.all = texts

    def texts(self):
        return iter(self.all)

    def texts_at(self, rows):
        return [self.all[row] for row in rows]


def some(*names, dim=3):
    """Content keys of texts, and vectors that tell them apart."""
    made = np.array([[ord(name), n, 0.5][:dim] for n, name in enumerate(names)], np.float32)
    return keys(Texts(*names), "m"), made


def read(checkpoint):
    return {
        key.tobytes(): vector.tolist()
        for keys_, vectors_ in checkpoint.sound()
        for key, vector in zip(keys_, vectors_, strict=True)
    }


def wanted(*names):
    found, vectors = some(*names)
    return {key.tobytes(): vector.tolist() for key, vector in zip(found, vectors, strict=True)}


def part(folder):
    (found,) = folder.glob("*.part")
    return found


def torn(path):
    path.write_bytes(path.read_bytes()[:-5])


def test_a_checkpoint_torn_twice_keeps_all_that_was_whole(tmp_path):
    """What is added after a torn record must not stand behind its rest."""
    checkpoint = Checkpoint(tmp_path, "m")
    checkpoint.add(*some("a", "b", "c"))
    torn(part(tmp_path))
    assert read(checkpoint) == wanted("a", "b")
    checkpoint.add(*some("d", "e"))
    torn(part(tmp_path))
    whole = {**wanted("a", "b"), **wanted("d")}
    assert read(checkpoint) == whole
    assert read(Checkpoint(tmp_path, "m")) == whole, "it was cut off, not skipped"
    checkpoint.add(*some("f"))
    assert read(checkpoint) == whole | wanted("f")


@pytest.mark.parametrize("at", [0, 17, 30])  # a byte of the key, of the vector, of the checksum
def test_from_a_damaged_record_on_nothing_is_taken(tmp_path, at):
    checkpoint = Checkpoint(tmp_path, "m")
    checkpoint.add(*some("a", "b", "c"))
    data, size = bytearray(part(tmp_path).read_bytes()), part(tmp_path).stat().st_size // 3
    data[size + at] ^= 1
    part(tmp_path).write_bytes(data)
    assert read(checkpoint) == wanted("a")
    assert part(tmp_path).stat().st_size == size


def test_checkpoints_of_other_models_and_sizes_are_apart_and_each_model_clears_its_own(tmp_path):
    one, other = Checkpoint(tmp_path, "m"), Checkpoint(tmp_path, "n")
    one.add(*some("a"))
    one.add(*some("b", dim=2))
    other.add(*some("c"))
    assert sorted(len(vector) for vector in read(one).values()) == [2, 3]
    assert read(other) == wanted("c")
    one.clear()
    assert read(one) == {}
    assert read(other) == wanted("c")
    other.clear()
    assert list(tmp_path.iterdir()) == []


class Counting(HashEmbedder):
    def __init__(self):
        super().__init__()
        self.asked = []

    def embed(self, texts):
        self.asked.append(list(texts))
        return super().embed(texts)


def vectors(folder, model, former=()):
    return Vectors("hash", "hash", lambda: model, former, Checkpoint(folder, "hash"))


def test_equal_texts_are_embedded_once_in_steps_and_each_row_gets_its_own(tmp_path):
    texts = [f"text {n % 100}" for n in range(150)]
    model, ticks = Counting(), []
    made = vectors(tmp_path, model).write(Texts(*texts), tmp_path, lambda *at: ticks.append(at))
    assert made == (64, 0)
    assert [len(one) for one in model.asked] == [64, 36]
    assert ticks == [(0, 100), (64, 100), (100, 100)]
    assert len(read(Checkpoint(tmp_path, "hash"))) == 100
    stored = np.load(tmp_path / VECTORS)
    np.testing.assert_array_equal(stored, HashEmbedder().embed(texts))
    np.testing.assert_array_equal(np.load(tmp_path / KEYS), keys(Texts(*texts), "hash"))


def test_a_build_that_was_stopped_and_one_before_it_give_what_they_have(tmp_path):
    former, new = tmp_path / "former", tmp_path / "new"
    former.mkdir(), new.mkdir()
    vectors(former, HashEmbedder()).write(Texts("old", "older"), former, lambda *_: None)
    texts = Texts("old", *(f"new {n}" for n in range(70)), "old")

    def stop(done, of):
        if done:
            raise Cancelled("stopped")

    model = Counting()
    with pytest.raises(Cancelled):
        vectors(new, model, [former]).write(texts, new, stop)
    assert sum(map(len, model.asked)) == 64
    assert vectors(new, model, [former]).write(texts, new, lambda *_: None) == (64, 66)
    assert [len(one) for one in model.asked] == [64, 6]
    np.testing.assert_array_equal(np.load(new / VECTORS), HashEmbedder().embed(texts.all))


def test_vectors_of_an_index_stay_in_their_file_until_they_are_used(tmp_path):
    vectors(tmp_path, HashEmbedder()).write(Texts("a", "b"), tmp_path, lambda *_: None)
    found, held = _vectors_of(tmp_path)
    np.testing.assert_array_equal(found, keys(Texts("a", "b"), "hash"))
    while isinstance(held.base, np.ndarray):
        held = held.base
    assert isinstance(held, np.memmap)


KEY = st.lists(st.sampled_from([0, 1, 255]), min_size=3, max_size=3).map(lambda end: bytes(13) + bytes(end))


@given(st.lists(st.lists(KEY, max_size=8, unique=True), max_size=3), st.lists(KEY, max_size=9))
def test_what_is_known_is_what_a_dict_would_know(sources, asked):
    """Keys that end in zeros are keys like others."""

    def array(found):
        return np.frombuffer(b"".join(found), np.uint8).reshape(-1, 16)

    made = [
        (array(found), np.arange(2 * len(found), dtype=np.float32).reshape(-1, 2) + 100 * at)
        for at, found in enumerate(sources)
    ]
    expected = {}
    for found, vectors_ in reversed(made):
        expected |= {key.tobytes(): vector.tolist() for key, vector in zip(found, vectors_, strict=True)}
    known, there = Known(made), [key for key in asked if key in expected]
    assert known.has(array(asked)).tolist() == [key in expected for key in asked]
    assert known.take(array(there), 2).tolist() == [expected[key] for key in there]
    assert known.dim(array(there)) == (2 if there else 0)


@pytest.mark.parametrize("name", [VECTORS, KEYS])
def test_an_index_that_holds_objects_is_not_read(tmp_path, name):
    """Reading them would run what they say."""
    vectors(tmp_path, HashEmbedder()).write(Texts("a", "b"), tmp_path, lambda *_: None)
    np.save(tmp_path / name, np.array([{"a": 1}, None], object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        _vectors_of(tmp_path)


def test_without_a_text_no_model_is_loaded_and_both_files_are_there(tmp_path):
    made = Vectors("m", "m", lambda: pytest.fail("loaded"), (), Checkpoint(tmp_path, "m"))
    assert made.write(Texts(), tmp_path, lambda *_: None) == (0, 0)
    assert (np.load(tmp_path / VECTORS).shape, np.load(tmp_path / KEYS).shape) == ((0, 0), (0, 16))


@pytest.mark.parametrize(
    "given", [np.ones((1, 64)), np.ones((2, 63)), np.full((2, 64), np.nan), np.full((2, 64), np.inf)]
)
def test_vectors_of_another_shape_or_that_are_no_numbers_are_refused_and_not_kept(tmp_path, given):
    model = HashEmbedder()
    model.embed = lambda _: given
    with pytest.raises(ModelFailed, match="gave no usable vectors"):
        vectors(tmp_path, model).write(Texts("a", "b"), tmp_path, lambda *_: None)
    assert list(tmp_path.glob("*.part")) == []


# --- the journal of an evaluation

CONDITIONS = {"corpus": "c", "routes": ["bm25"]}
OUTCOME = Outcome("ok", 1.5, (("p", 0.25),), 1, 9, 2, citations=("p",), wrong=(3,), shown=("p", "q"))


def add(folder, *questions, conditions=CONDITIONS, outcome=OUTCOME, **more):
    with Journal.open(folder, conditions, **more) as journal:
        before = list(journal.done)
        for question in questions:
            journal.add(question, {"bm25": outcome})
    return before


def lines(folder):
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def test_a_journal_torn_twice_keeps_all_that_was_whole(tmp_path):
    add(tmp_path, "q1", "q2")
    torn(tmp_path / JOURNAL)
    assert add(tmp_path, "q3", "q4") == ["q1"]
    torn(tmp_path / JOURNAL)
    assert add(tmp_path, "q5") == ["q1", "q3"]
    assert [one.get("question") for one in lines(tmp_path)] == [None, "q1", "q3", "q5"]
    assert Journal.saved(tmp_path) == {q: {"bm25": OUTCOME} for q in ("q1", "q3", "q5")}
    assert not list(tmp_path.glob("*.tmp"))


def test_a_question_is_on_the_disk_before_the_next_is_asked_and_one_process_alone_writes(tmp_path):
    with Journal.open(tmp_path, CONDITIONS) as journal:
        assert lines(tmp_path) == [{"conditions": CONDITIONS}]
        journal.add("q1", {"bm25": OUTCOME})
        assert Journal.saved(tmp_path) == {"q1": {"bm25": OUTCOME}}
        assert busy(tmp_path)
        with pytest.raises(BadInput, match="another evaluation is writing"):
            add(tmp_path)
    assert not busy(tmp_path)
    assert not busy(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists(), "a look makes nothing"


def test_a_process_that_died_while_it_wrote_the_journal_again_took_nothing_with_it(tmp_path):
    add(tmp_path, "q1")
    (tmp_path / f"{JOURNAL}.tmp").write_text('{"conditions": {}}\n{"question": "x", "rou')
    assert add(tmp_path) == ["q1"]
    (tmp_path / JOURNAL).write_text('{"condi')  # cut off within its first line
    assert add(tmp_path) == []


def test_only_questions_at_which_all_routes_ended_well_are_not_asked_again(tmp_path):
    add(tmp_path, "q1")
    with Journal.open(tmp_path, CONDITIONS) as journal:
        journal.add("q2", {"bm25": OUTCOME, "dense": Outcome("failed", 0.0)})
    assert add(tmp_path) == ["q1", "q2"]
    assert add(tmp_path, retry=True) == ["q1"]
    assert add(tmp_path) == ["q1"]
    assert add(tmp_path, fresh=True) == []


def test_other_conditions_are_another_evaluation(tmp_path):
    add(tmp_path, "q1", conditions={**CONDITIONS, "draw": 0})
    with pytest.raises(BadInput, match=r"another evaluation \(draw: 0 there, 1 now\).*--fresh"):
        add(tmp_path, conditions={**CONDITIONS, "draw": 1})
    with pytest.raises(BadInput, match=r"another evaluation \(of another kind\)"):
        add(tmp_path)
    assert add(tmp_path, fresh=True) == []


@pytest.mark.parametrize(
    "text",
    ["[]\n", '{"conditions": 3}\n', '{"other": {}}\n', "{\n", '{"conditions": {}}\n[]\n'],
)
def test_a_journal_that_is_none_is_damaged(tmp_path, text):
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(BadInput, match="is damaged; give another --out, or --fresh"):
        add(tmp_path, conditions={})
    assert (tmp_path / JOURNAL).read_text() == text


def test_a_place_that_is_no_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"--out .*file.* cannot be written"), alone(tmp_path / "file"):
        pass
