"""Text and title of HTML pages, however they are written."""

import pytest

from core.corpus import html
from core.corpus.html import text_of
from core.domain.errors import BadInput


def said(page: str) -> tuple[str, str]:
    return text_of(page.encode())


def test_blocks_are_lines_and_what_is_not_shown_is_left_out() -> None:
    page = (
        "<head><title> The\n page </title><style>p {}</style></head><body><h1>Head</h1><p>One"
        " <b>bold</b> word<p>Next<br>line<script>evil('</p>')</script><!-- remark --><noscript>no</noscript>"
        "<table><tr><td>a<td>b<tr><th>c</table>"
        "<svg><text>drawn</text></svg><ruby>漢<rt>kan</rt></ruby> &amp; &lt;p&gt;"
    )
    assert said(page) == ("The\n page", "Head\n\nOne bold word\n\nNext\nline\n\na b\n\nc\n\n漢 & <p>")


def test_a_heading_is_the_title_of_a_page_without_one() -> None:
    assert said("<h1>Big <i>words</i><script>x</script></h1><p>Text")[0] == "Big words"
    assert said("<title></title><h1>Big</h1>x")[0] == ""
    assert said("x<h1>First</h1><h1>Second</h1>")[0] == "First"


def test_space_is_kept_in_lines_only() -> None:
    assert said("<b>a</b>\n\n\n<b>b</b>  <i>c</i>")[1] == "a\nb c"
    assert said("<pre>a\n\n\n\nb   c</pre>")[1] == "a\n\nb c"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("größe".encode(), "größe"),
        (b"\xef\xbb\xbf" + "größe".encode(), "größe"),
        ("größe".encode("utf-16"), "größe"),
        ("größe".encode("cp1252"), "größe"),
        (b'<meta charset="shift_jis">' + "日本".encode("shift_jis"), "日本"),
        (b"<?xml version='1.0' encoding='koi8-r'?><p>" + "дом".encode("koi8-r"), "дом"),
        (b"<meta http-equiv=x content='text/html; charset=iso-8859-1'>" + "€".encode("cp1252"), "€"),
        (b"<meta charset=punycode>" + "größe".encode(), "größe"),  # takes the square of the time
        (b"<meta charset=utf-16>" + "größe".encode(), "größe"),
        (b"<meta charset=nonsense>" + "größe".encode(), "größe"),
        (b"<meta charset=zlib>" + "größe".encode(), "größe"),
    ],
)
def test_every_encoding_of_pages_is_read(raw: bytes, text: str) -> None:
    assert text_of(raw)[1] == text


def test_what_is_nested_too_deep_is_read_without_its_tree() -> None:
    deep = "<div>" * (html.DEEPEST + 1)
    page = f"<title>T</title>{deep}a &lt; b<script>x</script><b>c</b><br>d<table><tr><td>e<td>f</table>"
    assert said(page) == ("T", "a < bc\nd\n\ne f")
    with pytest.raises(BadInput, match="deeper than 512"):
        said("<svg>" * 600)
