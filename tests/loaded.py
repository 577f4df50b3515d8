"""Documents of files, read in this process."""

from collections.abc import Iterator
from pathlib import Path

from core.corpus.load import Distinct, documents_of, is_beir, readable_files
from core.corpus.types import Document, LoadReport, Reading


def documents(
    path: Path, report: LoadReport | None = None, reading: Reading | None = None
) -> Iterator[Document]:
    """Every document below `path`, as a reader's own process yields them."""
    report = LoadReport() if report is None else report
    alone, found = Distinct(report), readable_files(path, report)
    beir = is_beir(path)
    for file in found:
        for document, where in documents_of(file, path, reading or Reading(), report, beir=beir):
            if (kept := alone.kept(document, where)) is not None:
                yield kept
