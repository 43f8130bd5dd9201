"""Which run is newest: the shell and the overview both say so."""

from __future__ import annotations

from typing import Any

import polars as pl

from dashboard.view import View


def newest_run(view: View) -> dict[str, Any] | None:
    """The run of the machine that started last."""

    def make() -> dict[str, Any] | None:
        runs = view.frames.snapshot.runs.filter(
            (pl.col("machine") == view.machine) & (pl.col("project") == view.project)
        ).sort("started", descending=True, nulls_last=True)
        return runs.row(0, named=True) if runs.height else None

    return view.frames.once(("newest run", view.machine, view.project), make)


def newest_run_of(view: View, operator: str) -> dict[str, Any] | None:
    """The run of one operator on the machine that started last."""
    runs = view.frames.snapshot.runs.filter(
        (pl.col("machine") == view.machine) & (pl.col("project") == view.project) & (pl.col("operator") == operator)
    ).sort("started", descending=True, nulls_last=True)
    return runs.row(0, named=True) if runs.height else None
