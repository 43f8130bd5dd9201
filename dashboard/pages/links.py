"""Links that several pages draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.store.profiles import Profile
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


def profile_link(view: View, profile: Profile, run: str = "", environment: str = "") -> str:
    """The page of a profile; ``run`` and ``environment`` tell the measurement that it is opened from."""
    return view.state.to(
        "profile",
        operator=profile.operator,
        implementation=profile.implementation,
        dtype=profile.dtype,
        shape=profile.shape,
        commit=profile.state,
        tool=profile.tool,
        run=run,
        environment=environment,
    )
