"""The samples behind one row, read from its one file when a reader asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Samples:
    """Samples of one measurement in the base unit (seconds, or the row's unit), by quantity; the rest of it, raw."""

    quantities: dict[str, list[float]]
    measurement: dict[str, Any] = field(default_factory=dict)  # every stored field but the samples
    run: dict[str, Any] = field(default_factory=dict)  # the file's header: environment, command, ceilings


def samples_of(results: Path, row: Mapping[str, Any]) -> Samples:
    """Samples of one row of ``measurements`` (a dict of it), from the file that it came from.

    Raises groundspeed.errors.UserError when the file is gone, unreadable, outside the results folder or without it.
    """
    raise NotImplementedError
