"""Dataset folders of the Hugging Face Hub, whose README.md names the files of each configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from core.domain.errors import BadInput

Part = Literal["corpus", "queries", "qrels", ""]  # of a retrieval dataset; "" for another configuration
PARTS: Mapping[str, Part] = {
    **dict.fromkeys(("corpus", "documents", "passages"), "corpus"),
    **dict.fromkeys(("queries", "query", "questions"), "queries"),
    **dict.fromkeys(("qrels", "default", "judgements"), "qrels"),  # MTEB's judgements are the default
}
MAX_HEADER = 1 << 20  # bytes of README.md
MAX_FILES = 1_000


def parts_of(folder: Path) -> dict[Path, tuple[Part, str]]:
    """Return the part and the split of each file that the header names; {} without configurations of a corpus
    and of queries. Raises BadInput for a header that is not YAML.
    """
    file = folder / "README.md"
    if not file.is_file() or file.stat().st_size > MAX_HEADER:
        return {}
    before, mark, rest = file.read_text(encoding="utf-8-sig", errors="replace").partition("---\n")
    if not mark or before.strip():
        return {}
    import yaml

    try:
        header = yaml.safe_load(rest.partition("\n---")[0])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{file}: its header is not valid YAML: {' '.join(str(error).split())}") from None
    given = header.get("configs") if isinstance(header, dict) else None
    configs = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    parts = {str(one.get("config_name", "default")): one.get("data_files") for one in configs}
    if not {"corpus", "queries"} <= {PARTS.get(name, "") for name in parts}:
        return {}
    found: dict[Path, tuple[Part, str]] = {}
    for name, files in parts.items():
        for split, pattern in _patterns(files):
            for one in _matching(folder, pattern):
                found[one] = (PARTS.get(name, ""), split)
    return found


def _patterns(files: Any, split: str = "") -> Iterator[tuple[str, str]]:
    """Yield the patterns of data files with their splits."""
    if isinstance(files, str):
        yield split, files
    elif isinstance(files, dict):
        yield from _patterns(files.get("path"), str(files.get("split", "")))
    elif isinstance(files, list):
        for one in files:
            yield from _patterns(one, split)


def _matching(folder: Path, pattern: str) -> list[Path]:
    """Return the files of `folder` that a pattern matches, none outside of it."""
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise BadInput(f"{folder / 'README.md'}: {pattern[:80]!r} is no path within the folder")
    found = sorted(one for one in folder.glob(pattern) if one.is_file())
    if len(found) > MAX_FILES:
        raise BadInput(f"{folder}: {pattern[:80]!r} matches more than {MAX_FILES:,} files")
    return [one for one in found if one.resolve().is_relative_to(folder.resolve())]
