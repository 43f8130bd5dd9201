"""What ``groundspeed table --headers`` does: implementations' headers say what they reach, from the stored records."""

from __future__ import annotations

import sys
from pathlib import Path

from groundspeed.commands.standing import nothing_stands, standing_here
from groundspeed.errors import UserError
from groundspeed.project import Project, shown
from groundspeed.whole_files import replace_output


def write_headers(project: Project, results: Path, machine: str, tiers: tuple[str, ...], check: bool) -> int:
    """Write, or with ``check`` look for, headers that are not what a machine's records of some tiers say."""
    from groundspeed.report.reached import written
    from groundspeed.report.units import counted

    operators = standing_here(project, results, machine, tiers)
    if not operators:
        raise UserError(nothing_stands(results / machine, tiers))
    changed = written(project.root / "impls", operators)
    if check and changed:
        names = f"{shown(min(changed))} and {len(changed) - 1} more" if len(changed) > 1 else shown(min(changed))
        print(f"groundspeed: stale headers: {names}; type: groundspeed table --headers", file=sys.stderr)
        return 1
    for path, text in changed.items():
        replace_output(path, text.encode())
    print(f"{counted(len(changed), 'header')} written" if changed else "the headers are up to date")
    return 0
