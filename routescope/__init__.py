"""The command of the installed program. In a wheel this folder holds all that a checkout holds."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Where `core` is: in the wheel inside this folder (pyproject.toml says how), in a checkout beside it.
ROOT = HERE if (HERE / "core").is_dir() else HERE.parent


def main() -> int:
    """Run the command line of this program, whatever other package named `core` is installed beside it."""
    sys.path.insert(0, str(ROOT))
    from core.cli import main as run

    return run()
