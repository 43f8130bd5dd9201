"""Which policy is in force: base's, so that a change cannot loosen the gate that it has to pass."""

from __future__ import annotations

from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.gate.config import Config, read_config
from groundspeed.gate.versions import Revisions, read_at

FILE = "pyproject.toml"


def policy_in_force(project: Path, revisions: Revisions, file: Path | None) -> tuple[Config, tuple[str, ...]]:
    """The policy of ``file``, or else of base's pyproject.toml, and a remark where head's differs.

    Raises UserError for a policy that cannot be read.
    """
    if file is not None:
        if not file.is_file():
            raise UserError(f"--config {file}: no such file")
        return read_config(file.read_text(encoding="utf-8"), str(file)), ()
    config = read_config(read_at(project, revisions.base, FILE) or "", f"{FILE} of base")
    try:
        same = read_config(read_at(project, revisions.head, FILE) or "") == config
    except UserError as error:
        return config, (f"head's policy cannot be read: {error}",)
    if same:
        return config, ()
    return config, ("head changes the policy ([tool.groundspeed.gate]); base's was applied",)
