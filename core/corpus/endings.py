"""The file endings that are read, and the reasons for ignoring others."""

from __future__ import annotations

from core.domain.program import table

MARKDOWN = (".md", ".markdown", ".mdx")
PLAIN = (".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".tex")
HTML = (".html", ".htm", ".xhtml")
PDF = (".pdf",)
CONVERTED = (".docx", ".pptx", ".odt", ".epub", ".rtf", ".eml")  # to Markdown, by kreuzberg
ROWS = (".jsonl", ".ndjson", ".csv", ".tsv", ".xlsx", ".parquet")  # and .json that is a list of objects
DATA = (".json", ".ipynb", ".xml")
LISTS = (".json", ".yaml", ".yml")  # which may be a list of tools
ARCHIVES = (".zip",)
_TABLE = table(__file__)
CODE = tuple(_TABLE["code"].split())
GRAMMARS: dict[str, str] = _TABLE["grammars"]  # of tree-sitter: the function that gives one, by ending
READ = (*MARKDOWN, *PLAIN, *HTML, *PDF, *CONVERTED, *ROWS, *DATA, *ARCHIVES, *CODE)
MARKED = (*MARKDOWN, *HTML, *PDF, *CONVERTED, ".ipynb")  # what becomes Markdown
_PICTURE = "pictures are not read (they hold no text)"
_UNPACK = "archives are not opened; unpack it into the folder"
_INSTEAD = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".tiff", ".ico"), _PICTURE),
    **dict.fromkeys((".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst"), _UNPACK),
    **dict.fromkeys((".doc", ".docm"), "save it as .docx"),
    **dict.fromkeys((".ppt", ".odp"), "save it as .pptx"),
    **dict.fromkeys((".xls", ".ods", ".xlsm"), "save it as .xlsx"),
    ".msg": "save it as .eml",
}
IN_WORDS = (
    ".md, .txt, .rst, .html, .pdf, .docx, .pptx, .odt, .epub, .rtf, .eml, .ipynb, .xml, .json, .jsonl, .csv,"
    " .tsv, .xlsx, .parquet, .zip, or of source code (.py, .js, …)"
)


def unread(ending: str) -> str:
    """Why a file of this ending (in small letters) is not read, and what to do if there is something."""
    if not ending:
        return "a name without an ending is not read; call it .txt if it is text"
    known = _INSTEAD.get(ending)
    if known is None:
        return f"{ending[:20]} files are not read"
    return known if known in (_PICTURE, _UNPACK) else f"{ending} files are not read; {known}"
