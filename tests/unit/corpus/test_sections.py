"""Headings and sentences: where they are found, and that nothing is lost or crossed."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus import chunk
from core.corpus.chunk import NAMED, WHOLE, Chunking, chunking_of, passages
from core.corpus.markdown import passage_names, titled
from core.corpus.types import Document
from core.domain.errors import BadInput

TEXT = """Before any heading.

# Returns

## When

Send it back within 30 days. Dr. Who may take longer!

```sh
# no heading, code
```

## Refund
It is paid
after five days.

Shipping
--------
By parcel.
"""


def cut(text, key, id="a.md"):
    return [passage.text for passage in passages(Document(id, "T", text), chunking_of(key))]


def test_a_section_is_a_passage_and_a_bare_heading_begins_the_next_one():
    assert cut(TEXT, "headings") == [
        "Before any heading.",
        "# Returns\n\n## When\n\nSend it back within 30 days. Dr. Who may take longer!\n\n"
        "```sh\n# no heading, code\n```",
        "## Refund\nIt is paid\nafter five days.",
        "Shipping\n--------\nBy parcel.",
    ]


@pytest.mark.parametrize(
    "text", ["---\ntitle: x\n---\n\nBody.", "| a | b |\n|---|---|\n| 1 | 2 |", "one line"]
)
def test_front_matter_and_tables_have_no_headings(text):
    assert cut(text, "headings") == [text]
    code = "# a comment\nx = 1\n\nUsage\n=====\n\nCall it."
    assert cut(code, "headings", "a.txt") == ["# a comment\nx = 1", "Usage\n=====\n\nCall it."]


def test_a_long_section_is_cut_at_paragraphs_and_never_joined_to_another():
    text = "# One\n\n" + "A sentence of some words. " * 200 + "\n\n# Two\n\nShort."
    found = cut(text, "headings")
    assert len(found) > 3
    assert max(map(len, found)) <= NAMED["headings"] * 1.25
    assert found[-1] == "# Two\n\nShort."


def test_sentences_are_packed_and_never_cut():
    found = cut(TEXT, "sentences")
    assert "## Refund\nIt is paid\nafter five days." in found
    long = "word " * 100 + "end."
    assert cut(f"Short one. {long} Another.", "sentences") == ["Short one.", long, "Another."]
    assert cut("Dr. Who came. He left.", "sentences") == ["Dr. Who came. He left."]
    assert chunk.sentences("Dr. Who came. He left.", 0, 22) == [(0, 13), (14, 22)]


@given(
    st.lists(
        st.sampled_from(["# H\n", "word ", "End. ", "\n\n", "Title\n---\n", "```\n", "- item\n", "é…! "]),
        max_size=40,
    ),
    st.sampled_from(["headings", "sentences"]),
    st.sampled_from(["a.md", "a.txt"]),
)
def test_no_character_but_white_space_is_lost_or_comes_twice(parts, key, id):
    document = Document(id, "", "".join(parts))
    found = passages(document, chunking_of(key))
    assert "".join("".join(p.text.split()) for p in found) == "".join(document.text.split())
    assert all(p.text == document.text[p.start : p.end] for p in found)
    if key == "sentences":
        edges = {start for start, _ in chunk.sections(document.text, markdown=id == "a.md")}
        assert edges <= {p.start for p in found}, "no passage goes over the edge of a section"


@pytest.mark.parametrize(
    ("key", "size", "overlap", "by"),
    [
        ("256", 256, 0, "size"),
        (" 512/64 ", 512, 64, "size"),
        ("512-64", 512, 64, "size"),
        ("whole", 0, 0, "size"),
        ("Headings", 2000, 0, "headings"),
        ("sentences", 300, 0, "sentences"),
    ],
)
def test_a_chunking_has_a_name(key, size, overlap, by):
    found = chunking_of(key)
    assert (found.size, found.overlap, found.by) == (size, overlap, by)
    assert chunking_of(found.key) == found
    assert Chunking(**asdict(found)) == found
    for wrong in ("", "tiny", "40", "512/400", "256t", "../x", "512//64"):
        with pytest.raises(BadInput, match=r"chunking"):
            chunking_of(wrong)


def test_passages_are_named_by_their_headings():
    text = "Before.\n\n# Rules\n\nOne.\n\n## Dogs\n\nTwo.\n\n```\n# no heading\n```\n\n## Cats\n\nThree."
    document = Document("rules.md", "Harbour", text)
    found = passages(document, Chunking(2000, by="headings"))
    names = list(passage_names(document, found).values())
    assert names[0] == "Harbour"
    assert "Harbour › Rules › Dogs" in names
    assert len(set(names)) == len(names)
    assert not any("no heading" in name for name in names)
    plain = Document("rules.txt", "Harbour", text)
    assert list(passage_names(plain, passages(plain, WHOLE)).values()) == ["Harbour"]


def test_front_matter_nested_too_deeply_loses_its_fields_alone():
    text = "+++\ntags = " + "[" * 5_000 + "\n+++\n\n# Returns\n\nSend it back."
    title, body, fields = titled(text)
    assert (title, fields) == ("Returns", {})
    assert body.endswith("Send it back.")
