"""Tells asv what this machine is called, so that ``asv run`` asks nothing, on a fresh runner either."""

from __future__ import annotations

import json
from pathlib import Path

from asv.machine import Machine, MachineCollection

from groundspeed.machine import machine_fields, machine_name


def introduce(results: Path) -> str:
    """Make this machine's name asv's default and describe it in ~/.asv-machine.json. Returns the name.

    Where ``results/<machine>/machine.json`` already describes a machine of this name, that description holds: asv
    splits a series wherever a field differs, and a second runner of the same kind with another CPU beside its GPU
    must add to the history, not begin one. What each run really ran on is in its records.
    """
    name = machine_name()
    fields = _published(results, name) or machine_fields()
    Machine.hardcoded_machine_name = name
    Machine.generate_machine_file = staticmethod(lambda use_defaults=False: dict(fields))  # asv machine --yes
    if _known(name) != fields:
        MachineCollection.save(name, fields)
    return name


def describe(results: Path) -> list[Path]:
    """Write what this machine is now, for asv and beside its results. Returns the files written.

    This replaces an earlier description: asv begins a new series where a field changed.
    """
    fields = machine_fields()
    MachineCollection.save(fields["machine"], fields)
    machine = Machine()
    machine.__dict__.update(fields)
    machine.save(str(results))
    return [Path(MachineCollection.get_machine_file_path()), results / fields["machine"] / "machine.json"]


def _published(results: Path, name: str) -> dict[str, str]:
    path = results / name / "machine.json"
    if not path.is_file():
        return {}
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields.pop("version", None)
    return dict(fields)


def _known(name: str) -> dict[str, str]:
    path = Path(MachineCollection.get_machine_file_path())
    if not path.is_file():
        return {}
    return dict(json.loads(path.read_text(encoding="utf-8")).get(name, {}))
