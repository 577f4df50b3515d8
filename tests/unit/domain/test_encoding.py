"""The encoding of a file that does not say it, against texts that Python's own codecs encoded."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.sql.csv_tables import load
from core.domain.encoding import decoded, display_name, encoding_of
from core.domain.errors import BadInput

TEXTS = {
    "German": ("Die Küche ist groß und die Gäste kommen später. Öffnung um acht.", ["latin-1", "cp1252"]),
    "French": ("Les élèves ont reçu leur goûter à l’école. Ça coûte 5 €.", ["cp1252"]),
    "Spanish": ("El niño comió una piña mañana en la montaña. ¿Cómo está usted?", ["latin-1"]),
    "Swedish": ("Återlämna varan inom trettio dagar. Kontakta kundtjänst på vår sida.", ["cp1252"]),
    "Polish": ("Zażółć gęślą jaźń, proszę przesłać paczkę. Łódź jest piękna.", ["cp1250", "iso8859-2"]),
    "Russian": ("Возврат товара возможен в течение тридцати дней.", ["cp1251", "koi8-r", "iso8859-5"]),
    "Greek": ("Η επιστροφή προϊόντων γίνεται εντός τριάντα ημερών από την παράδοση.", ["cp1253"]),
    "Turkish": ("İade süresi teslimattan sonra otuz gündür. Şimdi başvurun, çünkü ğ var.", ["cp1254"]),
    "Hebrew": ("החזרת מוצר אפשרית תוך שלושים יום מיום המסירה. פנו לתמיכה.", ["cp1255"]),
    "Arabic": ("يمكن إرجاع المنتج خلال ثلاثين يوما من تاريخ التسليم.", ["cp1256"]),
    "Japanese": ("返品は商品の到着後三十日以内に行ってください。", ["shift_jis", "euc-jp"]),
    "Chinese": ("退货必须在交货后三十天内完成。如有问题请联系客户支持。", ["gb18030", "big5"]),
    "Korean": ("반품은 배송 후 삼십일 이내에 가능합니다. 고객 지원에 문의하세요.", ["euc-kr"]),
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_comes_back_whatever_it_was_encoded_in(language):
    text, encodings = TEXTS[language]
    for encoding in (*encodings, "utf-8", "utf-8-sig", "utf-16", "utf-32"):
        raw = text.encode(encoding, "ignore")
        assert decoded(raw)[0].removeprefix("\ufeff") == raw.decode(encoding).removeprefix("\ufeff"), encoding


def test_a_single_word_of_western_europe_is_read():
    for word in ("Küche", "größe", "élève", "é", "question,answer\nWo ist die Küche?,Im Erdgeschoss.\n"):
        assert decoded(word.encode("latin-1")) == (word, "cp1252")
    assert display_name("cp1252") == "Windows-1252"
    late = b"plain words " * 200_000 + "Die Küche ist groß.".encode("cp1252")
    assert encoding_of(io.BytesIO(late)) == "cp1252"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
def test_utf8_is_never_taken_for_anything_else(text):
    assert decoded(text.encode()) == (text.removeprefix("\ufeff"), decoded(text.encode())[1])
    assert decoded(text.encode())[1] in ("utf-8", "utf-8-sig")


def test_utf16_without_its_mark_is_told_by_its_zero_bytes():
    for encoding in ("utf-16-le", "utf-16-be"):
        assert decoded("Ordinary words, größer.".encode(encoding)) == ("Ordinary words, größer.", encoding)


def test_a_utf8_file_with_a_broken_byte_stays_one():
    whole = "größer und schöner " * 30
    for raw in (whole.encode() + b"\xfc end", whole.encode()[:-1] + b"\xc3"):
        text, encoding = decoded(raw)
        assert encoding == "utf-8"
        assert text.startswith("größer und schöner")
        assert text.count("\ufffd") == 1


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"PK\x03\x04" + b"abc" * 50, "not text but a ZIP archive"),
        (b"%PDF-1.7 words", "not text but a PDF"),
        (b"\xff\xd8\xff\xe0" + b"abc" * 50, "not text but a JPEG picture"),
        (b"\x00" * 100, "binary data"),
        (bytes(range(256)) * 20, "binary data"),
        (bytes(range(128, 256)) * 50, "encoding that is not known; save it as UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_with_the_reason(raw, said):
    with pytest.raises(BadInput, match=said):
        decoded(raw)


def test_tables_that_sql_is_asked_about_are_read_in_their_encoding(tmp_path):
    (tmp_path / "orte.csv").write_bytes("Ort;Größe\nKöln;9\nMünchen;8\n".encode("cp1252"))
    database, _ = load([tmp_path / "orte.csv"], "orte")
    assert database.query("SELECT * FROM orte").rows == (("Köln", 9), ("München", 8))
    (tmp_path / "photo.csv").write_bytes(b"\x89PNG" + bytes(range(256)))
    with pytest.raises(BadInput, match=r"photo\.csv: it is not text but a PNG picture"):
        load([tmp_path / "photo.csv"], "photo")
