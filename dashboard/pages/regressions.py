"""Changes for the worse (and the better), and what people have decided about them."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from dashboard import triage
from dashboard.components import numbers, table
from dashboard.components.controls import tabs
from dashboard.components.parts import definitions, empty, moment, panel, short
from dashboard.pages.page import Page, simple
from dashboard.regressions import PROVISIONAL, SMALLEST, Change, changes_of
from dashboard.view import View

SHOWN = (("open", "open"), ("muted", "expected, fixed, noise"), ("better", "improvements"), ("all", "all"))


def draw(view: View) -> list[Any]:
    results = view.frames.snapshot.results
    events, problems = triage.read(results)
    states = {event.key: event for event in events}
    found = [
        c for c in changes_of(view)
        if (not view.dtype or c.dtype == view.dtype) and c.operator == view.state.get("operator", c.operator)
    ]
    kind = view.state.get("list", "open")
    listed = [change for change in found if _belongs(change, states, kind)]
    selected = next((change for change in found if change.key == view.state.get("change")), None)
    return [
        html.Div([html.H1("Regressions"), html.P(view.metric.label, className="note")], className="title"),
        *(html.P(problem, className="notice", role="alert") for problem in problems),
        tabs(view.state, "list", list(SHOWN), kind, "open"),
        _triage(view, selected, [e for e in events if e.key == selected.key]) if selected else None,
        _list(view, listed, states) if listed else _none(view, found, kind),
    ]


def _belongs(change: Change, states: dict[str, triage.Event], kind: str) -> bool:
    state = triage.state_of(states, change.key)
    opened = change.worse > 0 and state in triage.OPEN and not change.recovered
    return {"open": opened, "muted": change.worse > 0 and not opened, "better": change.worse <= 0}.get(kind, True)


def _none(view: View, found: list[Change], kind: str) -> html.Section:
    commits = view.everything().get_column("commit").n_unique()
    return empty(
        "Nothing to triage" if kind == "open" else "None",
        f"{len(found)} changes of level were found in {commits} commits of {view.machine}.",
        f"A change is told when both levels last three commits and differ by {SMALLEST:.0%} or more; with fewer than six "
        "commits there can be none. The gate judges a merge in pairs, without history.",
    )


def _list(view: View, listed: list[Change], states: dict[str, triage.Event]) -> html.Section:
    columns = [
        table.link("Change", "label", lambda r: view.state.here(change=r["key"])),
        table.number("Worse by", "worse", lambda v: numbers.percent(v, signed=True), large=True,
                     hint="relative change of the median, above 0: worse"),
        table.number("Before", "before", lambda v: numbers.quantity(v, _unit(view, listed))),
        table.number("After", "after", lambda v: numbers.quantity(v, _unit(view, listed))),
        table.text("State", "state"), table.text("Certain", "certain"), table.text("When", "when"),
        table.link("Commits", "range", lambda r: r["compare"]), table.link("History", "open", lambda r: r["history"]),
        table.text("Cause", "cause"), table.text("Note", "note"),
    ]
    rows = [_row(view, change, states) for change in listed]
    return panel(
        f"{len(rows)} changes of level", table.table("regressions", columns, rows),
        note=f"A change younger than {PROVISIONAL} commits is provisional. Pick one to set its state.",
    )


def _unit(view: View, listed: list[Change]) -> str:
    units = {change.unit for change in listed}
    return units.pop() if len(units) == 1 and view.metric.name == "value" else view.unit


def _row(view: View, change: Change, states: dict[str, triage.Event]) -> dict[str, Any]:
    event = states.get(change.key)
    return {
        "key": change.key, "label": change.label, "worse": change.worse, "before": change.before, "after": change.after,
        "state": triage.state_of(states, change.key) + (", recovered" if change.recovered else ""),
        "certain": "provisional" if change.provisional else "settled", "when": moment(change.when),
        "range": f"{short(change.last_good)} → {short(change.commit)}", "open": "history",
        "cause": "implementation changed" if change.implementation_changed else "same sources: environment or harness",
        "note": event.note if event else "", "compare": _compare(view, change), "history": _history(view, change),
    }


def _compare(view: View, change: Change) -> str:
    return view.state.to("compare", axis="commit", left=change.last_good, right=change.commit, operator=change.operator)


def _history(view: View, change: Change) -> str:
    return view.state.to(
        "history", operator=change.operator, dtype=change.dtype, shape=change.shape,
        show=change.implementation or change.environment,
    )


def _triage(view: View, change: Change, events: list[triage.Event]) -> html.Section:
    state = events[-1].state if events else "new"
    log = [
        html.Li(f"{event.when[:16].replace('T', ' ')} · {event.who or 'somebody'}: {event.state}"
                + (f" — {event.note}" if event.note else ""))
        for event in events
    ]
    form = html.Div(
        [
            html.Fieldset([
                html.Legend("State"),
                dcc.RadioItems([*triage.STATES], state, id="triage-state", inline=True),
            ]),
            html.Label([html.Span("Note (expected and noise need one)"),
                        dcc.Textarea(id="triage-note", value="", maxLength=triage.LONGEST_NOTE, rows=2)]),
            html.Label([html.Span("Your name"), dcc.Input(id="triage-who", type="text", persistence=True, maxLength=80)]),
            dcc.Store(id="triage-key", data={"key": change.key, "about": change.label}),
            html.Button("Save", id="triage-save", type="button", className="primary"),
            html.P(id="triage-answer", role="status"),
        ],
        className="triage",
    )
    facts = definitions([
        ("Change", f"{numbers.percent(change.worse, signed=True)} ({'worse' if change.worse > 0 else 'better'})"),
        ("From", numbers.quantity(change.before, view.unit or change.unit)),
        ("To", numbers.quantity(change.after, view.unit or change.unit)),
        ("First commit of the new level", html.Code(change.commit)), ("Last of the old", html.Code(change.last_good)),
        ("Links", html.Span([html.A("history", href=_history(view, change)), " · ",
                             html.A("compare the commits", href=_compare(view, change))])),
    ])
    return panel(change.label, facts, form, html.Ol(log, className="log") if log else html.P("No decision yet."))


PAGE = Page("regressions", "Regressions", simple(draw), ("machine", "project", "metric", "dtype"))
