"""Saving a decision: the one thing the dashboard writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dash
from dash import Input, Output, no_update
from dash import State as Argument

from dashboard import triage
from groundspeed.errors import UserError


def register(app: dash.Dash, results: Path) -> None:
    """Let the Save button of the regressions page append to the triage file, then draw the page anew."""

    @app.callback(
        Output("triage-answer", "children"),
        Output("triage-note", "value"),
        Output("revision", "data"),
        Input("triage-save", "n_clicks"),
        Argument("triage-state", "value"),
        Argument("triage-note", "value"),
        Argument("triage-who", "value"),
        Argument("triage-key", "data"),
        prevent_initial_call=True,
    )
    def save(clicks: int | None, state: str, note: str | None, who: str | None, change: dict[str, str]) -> Any:
        if not clicks:
            return no_update, no_update, no_update
        try:
            event = triage.append(results, change["key"], state, note or "", who or "", change["about"])
        except (UserError, OSError) as error:
            return f"Not saved: {error}", no_update, no_update
        return f"Saved: {event.state}.", "", f"triage {event.when}"
