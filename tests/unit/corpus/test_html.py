"""Text and title of HTML pages, however they are written."""

import pytest

from core.corpus import html
from core.domain.errors import BadInput


def said(page):
    found = html.read(page.encode())
    return found.title, found.text


def test_blocks_are_lines_and_what_is_not_shown_is_left_out():
    page = (
        "<head><title> The\n page </title><style>p {}</style></head><body><h1>Head</h1><p>One"
        " <b>bold</b> word<p>Next<br>line<script>evil('</p>')</script><!-- remark --><noscript>no</noscript>"
        "<table><tr><td>a<td>b<tr><th>c</table>"
        "<svg><text>drawn</text></svg><ruby>漢<rt>kan</rt></ruby> &amp; &lt;p&gt;"
    )
    assert said(page) == ("The\n page", "# Head\n\nOne bold word\n\nNext\nline\n\n| a | b |\n\nc\n\n漢 & <p>")


def test_a_heading_is_the_title_of_a_page_without_one():
    assert said("<h1>Big <i>words</i><script>x</script></h1><p>Text")[0] == "Big words"
    assert said("<title></title><h1>Big</h1>x")[0] == ""
    assert said("x<h1>First</h1><h1>Second</h1>")[0] == "First"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("größe".encode(), "größe"),
        ("größe".encode("utf-16"), "größe"),
        ("größe".encode("cp1252"), "größe"),
        (b'<meta charset="shift_jis">' + "日本".encode("shift_jis"), "日本"),
        (b"<?xml version='1.0' encoding='koi8-r'?><p>" + "дом".encode("koi8-r"), "дом"),
        (b"<meta http-equiv=x content='text/html; charset=iso-8859-1'>" + "€".encode("cp1252"), "€"),
        (b"<meta charset=punycode>" + "größe".encode(), "größe"),  # takes the square of the time
        (b"<meta charset=zlib>" + "größe".encode(), "größe"),
    ],
)
def test_every_encoding_of_pages_is_read(raw, text):
    assert html.read(raw).text == text


def test_what_is_nested_too_deep_is_read_without_its_tree():
    deep = "<div>" * (html.DEEPEST + 1)
    page = f"<title>T</title>{deep}a &lt; b<script>x</script><b>c</b><br>d<table><tr><td>e<td>f</table>"
    assert said(page) == ("T", "a < bc\nd\n\ne f")
    with pytest.raises(BadInput, match="deeper than 512"):
        said("<svg>" * 600)


AROUND = (
    "<title>T</title><header>Logo <nav>Home</nav></header><div role='navigation'>Menu</div>"
    "<form role=search>Find</form><main><article><header><h1>Head</h1><p>By Ann</header><p>Words."
    "<aside>Remark</aside><footer>Filed under x</footer></article><nav>In this article</nav></main>"
    "<footer><p>Imprint</footer><div role=' ContentInfo '>Cookies</div>"
)


def test_what_stands_around_the_content_is_left_out_by_choice():
    page = html.read(AROUND.encode(), main=True)
    assert (page.title, list(page.dropped)) == ("T", [html.AROUND])
    assert page.dropped[html.AROUND].startswith("Logo Home Menu Find")
    assert page.text.split() == ["#", "Head", "By", "Ann", "Words.", "Remark", "Filed", "under", "x"]
    whole = html.read(AROUND.encode())
    assert not whole.dropped
    for word in ("Logo", "Home", "Menu", "Find", "In this article", "Imprint", "Cookies"):
        assert word in whole.text
        assert word not in page.text


def test_a_page_that_is_nothing_else_keeps_what_stands_around():
    page = html.read(b"<title>T</title><nav>Home</nav><footer>Imprint</footer>", main=True)
    assert (page.text, page.dropped) == ("Home\n\nImprint", {})
    assert html.read(b"<p>Words", main=True) == html.Page("", "Words", "utf-8", {})


def test_an_encoding_that_is_not_declared_is_told():
    raw = "<p>Die Küche ist groß.".encode("latin-1")
    assert (html.read(raw).text, html.read(raw).guessed) == ("Die Küche ist groß.", "cp1252")
    assert html.read(b"<meta charset=latin1>" + raw).guessed is None
    with pytest.raises(BadInput, match="not text but a PNG picture"):
        html.read(b"\x89PNG\r\n")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<html><body><p>One</p></body></html><p>Two", "One\n\nTwo"),  # it goes on after its end
        ("<p>One<textarea>Two", "OneTwo"),  # an element that nothing ends
        ("<head><title>T</title><meta charset=utf-8><header>A</header><p>B</p>", "A\n\nB"),
        ("<title>T</title><section>A</section>", "A"),
        ("<b>a</b>\n\n\n<b>b</b>  <i>c</i>", "a\nb c"),
        ("<pre>a\n\n\n\nb   c</pre>", "a\n\nb c"),
        ("One<!-- a -- b ---><p>Two", "One\nTwo"),
        ("<div>" * (html.DEEPEST - 5) + "Two", "Two"),
        ("<table><tr><td>" * ((html.DEEPEST - 5) // 3) + "Two", "Two"),
        (
            "<table><tr><th>a<th>b<tr><td rowspan=2>c<td>d<tr><td>e</table>",
            "| a | b |\n| --- | --- |\n| c | d |\n| c | e |",
        ),
    ],
)
def test_pages_that_are_not_as_they_should_be_are_read(page, text):
    assert said(page)[1] == text
