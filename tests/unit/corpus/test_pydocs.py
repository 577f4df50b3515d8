"""The corpus of docstrings, on two small modules of the standard library."""

import inspect
import json
import textwrap

import pytest

from core.corpus import pydocs
from core.corpus.pydocs import Plan
from core.domain.errors import Unavailable

MODULES = ("json", "textwrap")


@pytest.fixture(scope="module")
def documents():
    return {document.id: document for document in pydocs.documents(MODULES)}


@pytest.mark.process
def test_a_document_is_a_public_name_with_its_signature_and_cleaned_docstring(documents):
    shorten = documents["textwrap.shorten"]
    assert shorten.title == "textwrap.shorten(text, width, **kwargs)"
    assert shorten.text == inspect.cleandoc(textwrap.shorten.__doc__)
    assert shorten.meta == {"package": "textwrap", "kind": "function"}
    assert {"json", "json.dumps", "json.JSONDecoder", "textwrap.TextWrapper.wrap"} <= set(documents)
    assert not [name for name in documents if any(part.startswith("_") for part in name.split("."))]


@pytest.mark.slow
def test_texts_are_neither_short_nor_long_nor_told_twice(documents):
    assert list(pydocs.documents(MODULES)) == list(documents.values())
    assert list(documents) == sorted(documents)
    texts = [document.text for document in documents.values()]
    assert all(pydocs.SHORTEST <= len(text) <= pydocs.LONGEST for text in texts)
    assert len(set(texts)) == len(texts)


def test_an_object_with_two_names_has_the_one_with_fewer_dots():
    names = {document.id for document in pydocs.extract(("json", "json.decoder"))}
    assert "json.JSONDecoder" in names
    found = pydocs._of_plan("json", Plan(("json", "json.decoder")), [])
    assert "json.JSONDecoder" in found
    assert "json.decoder.JSONDecoder" not in found
    kept = pydocs._of_plan("json", Plan(("json",), leave_out=r"json\.(load|dump)s?$"), [])
    assert "json.JSONDecoder" in kept
    assert "json.dumps" not in kept


def test_a_long_docstring_ends_at_a_paragraph():
    def long():
        pass

    long.__doc__ = "First line of it.\n\n" + "word " * 200 + "\n\n" + "more " * 400
    text = pydocs._text(long)
    assert text is not None
    assert text.endswith("word")


def test_what_does_not_import_is_skipped_and_counted(caplog):
    assert pydocs.extract(("no_such_module_here",)) == []
    assert "1 modules or classes could not be imported: no_such_module_here" in caplog.text


def test_a_child_process_that_fails_is_told(monkeypatch):
    monkeypatch.setattr(pydocs.sys, "executable", "/bin/false")
    with pytest.raises(Unavailable, match="reading docstrings failed with code 1"):
        list(pydocs.documents(("json",)))


def test_the_command_writes_only_json_lines(capsys):
    pydocs.main(("textwrap",))
    lines = capsys.readouterr().out.splitlines()
    assert {"id", "title", "text", "meta"} == set(json.loads(lines[0]))
    assert len(lines) == len(pydocs.extract(("textwrap",)))
