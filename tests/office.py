"""Office documents and books as tests need them, written part by part."""

import io
import zipfile
from collections.abc import Mapping, Sequence

_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_KIND = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def docx(paragraphs: Sequence[tuple[str, str]], before: str = "") -> bytes:
    """A Word document of (style, text); the style "Heading1" is a heading. `before`: XML before its root."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    style = f'<w:styles xmlns:w="{_WORD}"><w:style w:type="paragraph" w:styleId="Heading1">'
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{_TYPES}"><Default Extension="xml" ContentType='
            '"application/xml"/><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName='
            f'"/word/document.xml" ContentType="{_KIND}.document.main+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_LINKS}"><Relationship Id="r1" Type='
            f'"{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{_LINKS}"><Relationship Id="r1" Type='
            f'"{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
            "word/styles.xml": f'{style}<w:name w:val="heading 1"/></w:style></w:styles>',
            "word/document.xml": f'{before}<w:document xmlns:w="{_WORD}"><w:body>'
            f"{body}</w:body></w:document>",
        }
    )


def epub(title: str, chapters: Sequence[str]) -> bytes:
    """A book of chapters in HTML."""
    names = [f"c{n}.xhtml" for n in range(len(chapters))]
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/b.opf"/></rootfiles>'
            "</container>",
            "O/b.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine>"
            "</package>",
            **{f"O/{name}": text for name, text in zip(names, chapters, strict=True)},
        }
    )
