"""Where other pages offer profiles: those of one measurement, and those of an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import html

from dashboard.components import table
from dashboard.components.parts import moment, panel
from dashboard.pages.links import profile_link
from dashboard.store.profiles import Profile, profiles_of
from dashboard.view import View

NEWEST = 5  # shown at once of one case


def of_measurement(view: View, row: Mapping[str, Any]) -> html.Section | None:
    """Profiles of the implementation and the case that a row measures; None where there are none."""
    if not view.ours:
        return None
    every = profiles_of(view.frames.snapshot.results, view.machine, row["operator"], row["implementation"])
    found = [one for one in every if (one.dtype, one.shape) == (row["dtype"], row["shape"])]
    if not found:
        return None
    return panel("Profile" if len(found) == 1 else "Profiles", *entries(view, found, row))


def of_operator(view: View, operator: str) -> html.Div | None:
    """Every profile of an operator under the page's filters; None where there are none.

    An exported file, which has no pages of profiles, leaves it out.
    """
    chosen = view.state.many("show")
    rows = [
        {
            "implementation": one.implementation,
            "dtype": one.dtype,
            "shape": one.shape,
            "said": one.said,
            "tool": one.tool,
            "commit": (one.commit or "none") + (" with changes" if one.dirty else ""),
            "taken": moment(one.taken),
            "href": profile_link(view, one),
        }
        for one in profiles_of(view.frames.snapshot.results, view.machine, operator)
        if (not view.dtype or one.dtype == view.dtype) and (not chosen or one.implementation in chosen)
    ]
    if not rows:
        return None
    columns = [
        table.link("Profile of", "implementation", lambda row: str(row["href"])),
        table.text("Dtype", "dtype"),
        table.text("Shape", "shape"),
        table.text("Tool", "tool"),
        table.text("Commit", "commit"),
        table.text("Taken", "taken"),
        table.text("What bounds it", "said"),
    ]
    note = "Pages that groundspeed profile wrote on this machine, the newest first."
    return html.Div(
        panel("Profiles", table.table(f"profiles-{operator}", columns, rows), note=note),
        className="profiles",
    )


def entries(view: View, profiles: Sequence[Profile], row: Mapping[str, Any]) -> list[Any]:
    """A line each, newest first, older ones folded away; ``row`` is the measurement that they are seen from."""
    lines = [html.Li(_entry(view, one, row)) for one in profiles]
    older = lines[NEWEST:]
    folded = html.Details([html.Summary(f"{len(older)} older"), html.Ul(older, className="offers")]) if older else None
    return [html.Ul(lines[:NEWEST], className="offers"), folded]


def code(profile: Profile) -> str:
    """The code that a profile is of, in words."""
    named = f"commit {profile.commit}" if profile.commit else "outside git"
    return f"{named} with changes" if profile.dirty else named


def _entry(view: View, profile: Profile, row: Mapping[str, Any]) -> list[Any]:
    """The link with tool and commit, what was measured where that is other code, and what the page says first."""
    link = profile_link(view, profile, row.get("run_id") or "", row.get("environment") or "")
    measured = row.get("commit") or ""
    other = f"; this measurement is of {measured[:8]}" if measured and not profile.is_of(measured) else ""
    return [
        html.A("Profile", href=link),
        f" by {profile.tool}, {code(profile)}{other}, {moment(profile.taken)}",
        html.Div(profile.said, className="below") if profile.said else None,
    ]
