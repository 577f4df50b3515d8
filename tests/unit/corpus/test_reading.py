"""Documents are read by a process with limits: what it gives, what ends it, and what is said then."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from core.cli import main
from core.corpus import catalogue, uploads
from core.corpus.chunk import WHOLE, Chunking, passages
from core.corpus.reading import Limits, Reader
from core.corpus.types import LoadReport
from core.domain.errors import Cancelled
from core.domain.settings import PROJECT
from tests.loaded import documents

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("readers_begun_anew")]
SLOW = "a" * 8_000_000  # cutting it takes many seconds: nowhere in it is a word's end


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    return source


def read(path, *, chunking=WHOLE, **limits):
    report = LoadReport()
    with Reader(limits=Limits(**limits)) as reader:
        return list(reader.documents(path, chunking, report)), report


def test_it_gives_what_reading_here_gives(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "guide.md").write_text("# The guide\n\nBody.\n\n## More\n\n" + "A sentence. " * 200)
    (folder / "wide.txt").write_bytes("größe 🙂 \u2028 x".encode("utf-16"))
    (folder / "page.html").write_text("<title>P</title><p>One<p>Two")
    (folder / "empty.txt").write_text(" ")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (folder / "table.csv").write_text("Article,Price\nvase,12.5\n")
    rows = [{"id": "j", "text": "x", "by": "\ud800"}, {"body": "no id", "n": {"a": [1]}}, {"text": "x"}]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    expected, chunking = LoadReport(), Chunking(300, 20)
    here = list(documents(folder, expected))
    found, report = read(folder, chunking=chunking)
    assert [cut.document for cut in found] == here
    assert asdict(report) == asdict(expected)
    assert [list(map(tuple, cut.spans)) for cut in found] == [
        [(p.start, p.end) for p in passages(document, chunking)] for document in here
    ]
    assert all(cut.read_ms >= 0 for cut in found)


def test_one_process_reads_one_source_after_another(folder):
    (folder / "a.txt").write_text("x")
    (folder / "b.jsonl").write_text("[1]\n")
    with Reader() as reader:
        for _ in range(2):
            report = LoadReport()
            assert len(list(reader.documents(folder, WHOLE, report))) == 1
            assert report.skipped[0].names[0].startswith("b.jsonl")
            assert len(list(reader.documents(folder / "a.txt", WHOLE, LoadReport()))) == 1
            first = next(iter(reader.documents(folder / "a.txt", WHOLE, LoadReport())))
            assert first.document.text == "x"  # the rest is never asked for


@pytest.mark.trust
def test_a_file_that_takes_too_long_is_left_out(folder):
    (folder / "a.txt").write_text("before")
    (folder / "b.txt").write_text(SLOW)
    (folder / "c.txt").write_text("after")
    found, report = read(folder, chunking=Chunking(100), seconds=1)
    assert [cut.document.id for cut in found] == ["a.txt", "c.txt"]
    assert report.notes() == ("b.txt: reading took longer than 1 s",)
    (folder / "a.txt").unlink()
    told = read(folder, chunking=Chunking(100), silent=1.5)[1].notes()
    assert told == ("b.txt: reading took longer than 1.5 s",), "it says nothing for too long"


@pytest.mark.trust
def test_a_file_that_takes_too_much_memory_is_left_out(folder):
    (folder / "a.txt").write_text("é" * 20_000_000)
    (folder / "b.txt").write_text("after")
    found, report = read(folder, memory=150 * 1024**2)
    assert [cut.document.id for cut in found] == ["b.txt"]
    assert report.notes() == ("a.txt: it needs more memory than the reader may use",)


@pytest.mark.usefixtures("readers_begun_anew")
def test_a_file_for_which_others_left_no_memory_is_read_by_a_new_process(folder):
    for n in range(12):  # with a PDF file among them, the words of all others are remembered
        letters = ("".join(chr(97 + int(digit)) for digit in f"{n:02}{word:05}") for word in range(40_000))
        (folder / f"{n:02}.txt").write_text(" ".join(letters))
    (folder / "z.pdf").write_bytes(b"%PDF-1.4 nothing")
    begun = []
    with Reader(limits=Limits(memory=190 * 1024**2)) as reader:
        start = reader._start
        reader._start = lambda: begun.append(reader._pipes) or start()
        found = list(reader.documents(folder, WHOLE, LoadReport()))
    assert [cut.document.id for cut in found] == [f"{n:02}.txt" for n in range(12)]
    assert begun.count(None) > 1


def test_after_many_such_files_others_of_their_ending_are_left_out_and_named(folder):
    for n in range(4):
        (folder / f"{n}.txt").write_text(SLOW)
    (folder / "0.md").write_text("words")
    (folder / "z.md").write_text("other words")
    found, report = read(folder, chunking=Chunking(100), seconds=1, files=2)
    assert [cut.document.id for cut in found] == ["0.md", "z.md"]
    assert [one.names for one in report.skipped] == [("0.txt", "1.txt"), ("2.txt", "3.txt")]
    assert "several .txt files before" in report.skipped[1].reason


def test_a_folder_is_given_less_time_a_file_once_two_took_all_of_theirs(folder):
    for n in range(3):
        (folder / f"{n}.txt").write_text(SLOW)
    _, report = read(folder, chunking=Chunking(100), seconds=2, hurried=1)
    assert [one.names for one in report.skipped] == [("0.txt", "1.txt"), ("2.txt",)]
    assert "longer than 1 s" in report.skipped[1].reason


@pytest.mark.trust
def test_archives_that_unpack_to_hundreds_of_times_their_size_are_named_at_once(folder):
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.txt", b"\0" * 20_000_000)
        archive.writestr("good.txt", "words")
    (folder / "after.txt").write_text("other words")
    found, report = read(folder, seconds=5)
    assert [cut.document.id for cut in found] == ["after.txt", "bomb.zip/good.txt"]
    assert [one.names for one in report.skipped] == [("bomb.zip/zeros.txt",)]


def test_the_rows_before_one_that_takes_too_long_are_kept(folder):
    rows = [{"id": n, "text": "word " * 2_000} for n in range(20)]  # more than waits to be handed on
    lines = [json.dumps(row) for row in (*rows, {"text": SLOW})]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    found, report = read(folder, chunking=Chunking(100), seconds=1)
    assert len(found) == 20
    assert report.skipped[0].reason.endswith("its first 20 documents were read")


def at_work(reader):
    """Its process, where that is in the midst of the slow document: to begin takes it a fraction of this."""
    pid = reader._pipes.process.pid if reader._pipes else 0
    return pid if pid and psutil.Process(pid).cpu_times().user > 0.6 else 0


@pytest.mark.trust
def test_stop_ends_the_process_in_the_midst_of_a_document(folder):
    (folder / "b.txt").write_text(SLOW)
    children = []

    def stop():
        if at_work(reader):
            assert reader._pipes is not None
            children.append(reader._pipes.process)
            raise Cancelled("stopped")

    reader = Reader(stop)
    with pytest.raises(Cancelled), reader:
        list(reader.documents(folder, Chunking(100), LoadReport()))
    assert children[0].poll() == -signal.SIGKILL


def test_a_process_that_is_killed_costs_its_file_only(folder):
    (folder / "a.txt").write_text(SLOW)
    (folder / "b.txt").write_text("after")
    killed = []

    def kill():
        if not killed and at_work(reader):
            killed.append(os.kill(at_work(reader), signal.SIGKILL))

    report = LoadReport()
    with Reader(kill) as reader:
        found = [cut.document.id for cut in reader.documents(folder, Chunking(100), report)]
    assert found == ["b.txt"]
    assert report.notes() == ("a.txt: the system stopped the reader, probably because of its memory use",)


def test_it_is_given_no_key(folder, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_LLM_API_KEY", "canary")
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    (folder / "a.txt").write_text("x")
    with Reader() as reader:
        list(reader.documents(folder, WHOLE, LoadReport()))
        assert reader._pipes is not None
        environment = Path(f"/proc/{reader._pipes.process.pid}/environ").read_bytes()
    assert b"PYTHONPATH" in environment
    assert b"canary" not in environment


def test_files_that_hold_no_text_are_named_and_give_no_corpus(folder, settings, monkeypatch, capsys):
    (folder / "empty.txt").write_text("")
    (folder / "blank.md").write_text(" \n")
    (folder / "photo.txt").write_bytes(bytes(range(128, 256)) * 50)
    (folder / "broken.pdf").write_bytes(b"%PDF")
    monkeypatch.setenv("ROUTESCOPE_HOME", str(settings.home))
    assert main(["index", str(folder)]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "nothing readable is left: 2 empty documents left out: blank.md, empty.txt" in said
    assert "photo.txt: it is not text, or of an encoding that is not known" in said
    assert "broken.pdf: " in said
    assert catalogue.names(settings) == []


NOBODY = """
import os
import sys
from pathlib import Path
from tests.loaded import documents
from core.corpus.types import LoadReport
from core.domain.errors import BadInput
"".encode("utf-8-sig")
os.setgroups([])
os.setegid(65534)
os.seteuid(65534)
report = LoadReport()
try:
    print([d.id for d in documents(Path(sys.argv[1]), report)], "; ".join(report.notes()))
except BadInput as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who may not read a file")
def test_files_and_folders_that_may_not_be_read_are_named(tmp_path):
    here = tmp_path
    while here != Path("/tmp"):  # pytest's own folders are for their owner
        here.chmod(0o755)
        here = here.parent
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed" / "x.txt").write_text("x")
    for name in ("a.txt", "rows.jsonl", "data.csv"):
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(0)

    def seen(path):
        command, environment = [sys.executable, "-c", NOBODY, str(path)], {"PYTHONPATH": str(PROJECT)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "no such file" not in seen(tmp_path)
    (tmp_path / "open.txt").write_text("x")
    said = seen(tmp_path)
    assert said.startswith("['open.txt']")
    assert all(name in said for name in ("a.txt", "rows.jsonl", "data.csv", "closed", ": Permission denied"))
    assert "Permission denied" in seen(tmp_path / "closed" / "x.txt")


def test_an_upload_that_takes_too_long_is_refused_by_name(settings, monkeypatch):
    monkeypatch.setattr(uploads, "Reader", lambda: Reader(limits=Limits(memory=150 * 1024**2)))
    added = uploads.add("mine", {"big.txt": "é".encode() * 20_000_000, "small.txt": b"words"}, settings)
    assert added.names == ("small.txt",)
    assert added.refused[0].startswith("big.txt: it needs more memory")
    assert [one.name for one in uploads.kept("mine", settings)] == ["small.txt"]
    assert [d.text for d in uploads.read("small.txt", b"words").documents] == ["words"]
