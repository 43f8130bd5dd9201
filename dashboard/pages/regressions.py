"""Changes for the worse (and the better), and what people have decided about them."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from dashboard import triage
from dashboard.components import numbers, table
from dashboard.components.controls import choices
from dashboard.components.parts import definitions, empty, moment, panel, short
from dashboard.pages.page import Page, simple
from dashboard.regressions import Change, Group, groups_of, is_open
from dashboard.view import View
from groundspeed.analysis.history import PROVISIONAL, SMALLEST

SHOWN = (
    ("open", "open"),
    ("muted", "expected, fixed, noise"),
    ("better", "improvements"),
    ("around", "environment"),
    ("all", "all"),
)


def draw(view: View) -> list[Any]:
    events, problems = triage.read(view.frames.snapshot.results)
    states = {event.key: event for event in events}
    groups = groups_of(view)
    if groups is None:
        return [html.H1("Regressions"), empty("Looking for changes", "The page shows them as soon as they are known.")]
    found = [group for group in groups if view.state.get("operator") in ("", group.first.operator)]
    kind = view.state.get("list", "open")
    listed = [group for group in found if _belongs(group, states, kind)]
    selected = next((group for group in found if group.key == view.state.get("change")), None)
    return [
        html.Div([html.H1("Regressions"), html.P(view.metric.label, className="note")], className="title"),
        *(html.P(problem, className="notice", role="alert") for problem in problems),
        choices(view.state, "list", list(SHOWN), kind, "open"),
        _triage(view, selected, [e for e in events if e.key == selected.key]) if selected else None,
        _list(view, listed, states) if listed else _none(view, found, kind),
    ]


def _belongs(group: Group, states: dict[str, triage.Event], kind: str) -> bool:
    opened = is_open(group, states)
    return {
        "open": opened,
        "muted": group.worse > 0 and not opened,
        "better": group.worse <= 0,
        "around": bool(group.environment),
    }.get(kind, True)


def _none(view: View, found: list[Group], kind: str) -> html.Section:
    commits = len(view.frames.commits(view.machine, view.project))
    return empty(
        "Nothing to triage" if kind == "open" else "None",
        f"{len(found)} changes of level were found in {commits} commits of {view.machine}.",
        f"A change is told when both levels last three commits and differ by {SMALLEST:.0%} or more; with fewer than "
        "six commits there can be none. The gate judges a merge in pairs, without history.",
    )


def _list(view: View, listed: list[Group], states: dict[str, triage.Event]) -> html.Section:
    columns = [
        table.link("Change", "label", lambda r: view.state.here(change=r["key"])),
        table.number("Cases", "cases", str, hint="series that changed at this commit"),
        table.number(
            "Worse by",
            "worse",
            lambda v: numbers.percent(v, signed=True),
            large=True,
            hint="geometric mean over the cases of the relative change of the median; above 0: worse",
        ),
        table.number("Worst", "worst", lambda v: numbers.percent(v, signed=True), large=True),
        table.text("State", "state"),
        table.text("Certain", "certain"),
        table.text("When", "when"),
        table.link("Commits", "range", lambda r: r["compare"]),
        table.text("Cause", "cause"),
        table.text("Note", "note"),
    ]
    rows = [_row(view, group, states) for group in listed]
    return panel(
        f"{len(rows)} {'change' if len(rows) == 1 else 'changes'} of level",
        table.table("regressions", columns, rows),
        note=f"A change younger than {PROVISIONAL} commits is provisional. Pick one to see its cases "
        "and to decide about it.",
    )


def _row(view: View, group: Group, states: dict[str, triage.Event]) -> dict[str, Any]:
    event, first = states.get(group.key), group.first
    return {
        "key": group.key,
        "label": group.label,
        "cases": len(group.changes),
        "worse": group.worse,
        "worst": max(change.worse for change in group.changes),
        "state": triage.state_of(states, group.key) + (", recovered" if group.recovered and group.worse > 0 else ""),
        "certain": ("drift, " if first.kind == "drift" else "") + ("provisional" if group.provisional else "settled"),
        "when": moment(first.when),
        "range": f"{short(first.last_good)} → {short(first.by)}",
        "cause": _cause(group),
        "note": event.note if event else "",
        "compare": _compare(view, first),
    }


def _cause(group: Group) -> str:
    if not group.first.implementation:
        return "not recorded"
    if any(change.implementation_changed for change in group.changes):
        return "its sources changed"
    return f"same sources; changed: {group.environment}" if group.environment else "same sources: the harness or chance"


def _compare(view: View, change: Change) -> str:
    return view.state.to("compare", axis="commit", left=change.last_good, right=change.by, operator=change.operator)


def _history(view: View, change: Change) -> str:
    return view.state.to(
        "history",
        operator=change.operator,
        dtype=change.dtype,
        shape=change.shape,
        show=change.implementation or change.environment,
    )


def _triage(view: View, group: Group, events: list[triage.Event]) -> html.Section:
    first = group.first
    facts = definitions(
        [
            ("First commit of the new level", html.Code(first.commit)),
            ("Last of the old", html.Code(first.last_good)),
            ("Cause", _cause(group)),
            (
                "Commits",
                html.Span(
                    [
                        html.A("compare them", href=_compare(view, first)),
                        " · ",
                        html.Code(f"git log {short(first.last_good)}..{short(first.commit)}"),
                    ]
                ),
            ),
        ]
    )
    unit = first.unit if view.metric.name == "value" else view.unit
    columns = [
        table.text("Dtype", "dtype"),
        table.text("Shape", "shape"),
        table.number("Worse by", "worse", lambda v: numbers.percent(v, signed=True), large=True),
        table.number("Before", "before", lambda v: numbers.quantity(v, unit)),
        table.number("After", "after", lambda v: numbers.quantity(v, unit)),
        table.link("History", "open", lambda r: r["href"]),
    ]
    rows = [
        {
            "dtype": c.dtype,
            "shape": c.shape,
            "worse": c.worse,
            "before": c.before,
            "after": c.after,
            "open": "history",
            "href": _history(view, c),
        }
        for c in group.changes
    ]
    return panel(
        group.label,
        facts,
        table.table("cases-of-the-change", columns, rows, (2, -1)),
        _form(group, events),
        _log(events),
    )


def _form(group: Group, events: list[triage.Event]) -> html.Div:
    about = f"{group.label}, {len(group.changes)} cases, {numbers.percent(group.worse, signed=True)}"
    return html.Div(
        [
            html.Fieldset(
                [
                    html.Legend("State"),
                    dcc.RadioItems(
                        [*triage.STATES], events[-1].state if events else "new", id="triage-state", inline=True
                    ),
                ]
            ),
            html.Label(
                [
                    html.Span("Note (expected and noise need one)"),
                    dcc.Textarea(id="triage-note", value="", maxLength=triage.LONGEST_NOTE, rows=2),
                ]
            ),
            html.Label(
                [html.Span("Your name"), dcc.Input(id="triage-who", type="text", persistence=True, maxLength=80)]
            ),
            dcc.Store(id="triage-key", data={"key": group.key, "about": about}),
            html.Button("Save", id="triage-save", type="button", className="primary"),
            html.P(id="triage-answer", role="status"),
        ],
        className="triage",
    )


def _log(events: list[triage.Event]) -> Any:
    if not events:
        return html.P("No decision yet.")
    return html.Ol(
        [
            html.Li(
                f"{event.when[:16].replace('T', ' ')} · {event.who or 'somebody'}: {event.state}"
                + (f" — {event.note}" if event.note else "")
            )
            for event in events
        ],
        className="log",
    )


PAGE = Page("regressions", "Regressions", simple(draw), ("machine", "project", "metric", "dtype"))
