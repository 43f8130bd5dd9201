"""Links that several pages draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.view import View


def samples_link(view: View, row: Mapping[str, Any]) -> str:
    """The samples of one measurement."""
    return view.state.to(
        "samples",
        operator=row["operator"],
        implementation=row["implementation"],
        dtype=row["dtype"],
        shape=row["shape"],
        run=row["run_id"],
        environment=row["environment"],
    )
