"""Where child processes of tests find modules."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def python_path(*folders: Path) -> str:
    """For PYTHONPATH: ``folders`` or the checkout, then what this process was given: packages may lie there alone."""
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([*map(str, folders or (ROOT,)), *([given] if given else [])])
