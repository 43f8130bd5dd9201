"""Controls of the filter bar: native elements, so that keyboards, phones and screen readers need nothing of ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from dash import html

from dashboard.components.palette import sign
from dashboard.state import State

Option = tuple[str, str]  # value, label


def select(
    name: str, label: str, options: Sequence[Option], chosen: str, default: str = "", clears: str = ""
) -> html.Div:
    """A labelled choice that sets the parameter ``name``; choosing ``default`` leaves it out of the link.

    ``clears`` names parameters that lose their meaning when this one changes, separated by spaces.
    """
    known = chosen in [value for value, _ in options] or not chosen
    data = {
        "name": name,
        "label": label,
        "options": list(options) if known else [(chosen, f"{chosen} (not in these results)"), *options],
        "chosen": chosen,
        "default": default,
        "clears": clears,
    }
    return html.Div(
        id=f"select-{name}", className="control-host", **{"data-select": json.dumps(data, ensure_ascii=False)}
    )


def implementation_chips(state: State, implementations: Iterable[str]) -> html.Div:
    """A legend that is a filter: a click shows one implementation or hides it again."""
    chosen = state.many("show")
    return html.Div(
        [
            html.A(
                [html.Span("●", style={"color": sign(name).colour}, **{"aria-hidden": "true"}), name],
                href=state.toggled("show", name),
                className="chip" if not chosen or name in chosen else "chip off",
                **({"aria-current": "true"} if name in chosen else {}),
            )
            for name in implementations
        ]
        + ([html.A("all", href=state.here(show=None), className="chip")] if chosen else []),
        className="chips",
        role="group",
        **{"aria-label": "Implementations shown"},
    )


def choices(state: State, name: str, options: Sequence[Option], chosen: str, default: str) -> html.Div:
    """A few exclusive choices side by side, each a link."""
    return html.Div(
        [
            html.A(
                label,
                href=state.here(**{name: None if value == default else value}),
                className="choice on" if value == chosen else "choice",
                **({"aria-current": "true"} if value == chosen else {}),
            )
            for value, label in options
        ],
        className="choices",
    )
