"""Packages as pip installs them, for tests of what is fetched from an index."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


def wheel(
    folder: Path, package: str, version: str, files: Mapping[str, bytes | str], requires: str = ""
) -> None:
    """Write a wheel of `package` with these files into a folder that pip takes for an index."""
    module = package.replace("-", "_")
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
        info = f"{module}-{version}.dist-info"
        about = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        file.writestr(f"{info}/METADATA", about + (f"Requires-Dist: {requires}\n" if requires else ""))
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
