"""Where pages of profiles are kept, beside the records of the same machine.

    results/<machine>/profiles/<operator>/<implementation>/<case>-<commit>-<tool>.md

A page of the same case, commit and tool replaces the one before: it is a view for people, and no record.
"""

from __future__ import annotations

from pathlib import Path

from groundspeed.whole_files import replace_whole

FOLDER, SUFFIX = "profiles", ".md"


def profile_path(
    results: Path, machine: str, operator: str, implementation: str, case: str, commit: str, dirty: bool, tool: str
) -> Path:
    """``case`` is a label such as ``float16 M=4096,N=1024``; ``commit`` a full hash, empty outside git."""
    state = (commit[:8] or "nocommit") + ("-dirty" if dirty else "")
    name = f"{case.replace(' ', '-')}-{state}-{tool}{SUFFIX}"
    return results / machine / FOLDER / operator / implementation / name


def write_profile(path: Path, text: str) -> None:
    """Write a page so that a reader sees the old one or the new one. Raises OSError, and leaves nothing torn."""
    replace_whole(path, text.encode())
