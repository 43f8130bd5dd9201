"""The Dash application: one shell, one callback that draws the view of a link, and what keeps it safe to serve."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import dash
import flask
from dash import ALL, ClientsideFunction, Input, Output, dcc, html, no_update
from flask_compress import Compress

from dashboard.components.parts import empty
from dashboard.frames import Library
from dashboard.pages import PAGES, Page
from dashboard.shell import filters, footer, header
from dashboard.state import State, parse_state
from dashboard.store import Store
from dashboard.triage_callbacks import register as register_triage
from dashboard.view import View, resolve, unknown_operator
from groundspeed.errors import UserError

log = logging.getLogger("groundspeed.dashboard")
ASSETS = Path(__file__).with_name("assets")
PLOTLY = "vendor/plotly-cartesian-4.1.1.min.js"


def make_app(store: Store, base: str = "/", repository: Path | None = None) -> dash.Dash:
    """The application over a store, below the path ``base`` (which begins and ends with a slash).

    ``repository`` is the project whose claims are shown; the folder above the results when None.
    """
    app = dash.Dash(
        __name__,
        title="groundspeed",
        update_title="",
        url_base_pathname=base,
        assets_folder=str(ASSETS),
        assets_ignore=r"views\.js|plotly-.*",
        serve_locally=True,
        suppress_callback_exceptions=True,
        compress=False,
        add_log_handler=False,
    )
    app.index_string = _INDEX
    library = Library(store)
    app.layout = _layout(base)
    _register(app, library, base, repository or store.results.resolve().parent)
    register_triage(app, store.results)
    Compress(app.server)
    _serve_extras(app.server, library, base)
    _protect(app)
    _mark_unknown(app.server, base)
    return app


_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{%title%}</title>{%favicon%}{%css%}</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""


def _layout(base: str) -> html.Div:
    parts = [
        html.A("Skip to the content", href="#main", className="skip"),
        *(dcc.Store(id=name) for name in ("query", "revision", "view", "sink")),
        html.Header(id="header"),
        html.Div(id="filters"),
        html.Main(html.P("Reading results …", className="note"), id="main", tabIndex="-1"),
        html.Footer(id="footer"),
        html.Div(id="say", role="status", **{"aria-live": "polite"}),
    ]
    return html.Div(parts, **{"data-base": base})


def _register(app: dash.Dash, library: Library, base: str, repository: Path) -> None:
    app.clientside_callback(ClientsideFunction("gs", "start"), Output("query", "data"), Input("query", "id"))
    app.clientside_callback(
        ClientsideFunction("gs", "show"), Output("sink", "data"), Input("view", "data"), prevent_initial_call=True
    )
    app.clientside_callback(
        ClientsideFunction("gs", "follow"),
        Output("sink", "data", allow_duplicate=True),
        Input({"chart": ALL}, "clickData"),
        prevent_initial_call=True,
    )

    @app.callback(Output("view", "data"), Input("query", "data"), Input("revision", "data"))
    def draw(query: dict[str, str] | None, _revision: str | None) -> Any:
        if query is None:
            return no_update
        return draw_view(library, parse_state(query["path"], query["search"], base), repository)


def draw_view(library: Library, state: State, repository: Path) -> dict[str, Any]:
    """The title, the revision shown, and what stands in each place of the layout.

    A page that fails says so and leaves the shell usable.
    """
    frames = library.current()
    revision = frames.revision  # before drawing: what gets ready meanwhile is news to the page
    page = PAGES.get(state.page)
    view = resolve(state, frames)
    if page is None:
        content: Any = empty("No such page", f"There is no page “{state.page}”.", html.A("Overview", href=state.to("")))
    elif view is None and page.needs_results:
        content = _no_results(frames.snapshot.results, frames.snapshot.problems.height, state)
    else:
        content = _content(page, state, view, frames, repository)
    notes = [html.P(note, className="notice", role="alert") for note in _notes(page, view)]
    subject = state.get("operator") or (view.machine if view else "")
    title = " · ".join(part for part in (page.title if page else "", subject, "groundspeed") if part)
    places = {
        "header": header(state, view, page),
        "filters": filters(page, view),
        "main": [*notes, content],
        "footer": footer(frames, view),
    }
    return {"title": title, "places": places, "revision": revision}


def _notes(page: Page | None, view: View | None) -> list[str]:
    """What the link asks for and the results lack."""
    if page is None or view is None:
        return []
    unknown = unknown_operator(view, view.operator() if "operator" in page.controls else "")
    return [*view.notes, *([unknown] if unknown else [])]


def _content(page: Page, state: State, view: Any, frames: Any, repository: Path) -> Any:
    try:
        return html.Div(page.draw(state, view, frames, repository), className=f"page {page.name}")
    except UserError as error:
        return empty("This cannot be shown", str(error))
    except Exception as error:
        log.exception("page %r failed for %s", page.name, dict(state.params))
        return empty("This page failed", f"{type(error).__name__}: {error}", "The server's log has the traceback.")


def _no_results(results: Path, problems: int, state: State) -> Any:
    lines: list[Any] = [f"No results were found in {results}.", "Measure something first: groundspeed run"]
    if problems:
        lines.append(html.A(f"{problems} files could not be read", href=state.to("data")))
    return empty("No results yet", *lines)


def _serve_extras(server: flask.Flask, library: Library, base: str) -> None:
    @server.get(f"{base}api/revision")
    def revision() -> flask.Response:
        return _json({"revision": library.refresh()})

    @server.get(f"{base}health")
    def health() -> flask.Response:
        snapshot = library.current().snapshot
        return _json(
            {
                "status": "ok",
                "rows": snapshot.rows,
                "runs": snapshot.runs.height,
                "machines": snapshot.machines.height,
                "problems": snapshot.problems.height,
            }
        )

    @server.get(f"{base}_dash-component-suites/plotly/package_data/plotly.min.js")
    def plotly() -> flask.Response:
        # the same plotly.js cut to cartesian charts: a third of the bytes to send and to parse
        return flask.send_file(ASSETS / PLOTLY, mimetype="text/javascript", max_age=86400)


def _mark_unknown(server: flask.Flask, base: str) -> None:
    """Dash answers every path below the base with its page; one that names no page is 404, and the page says so."""
    any_path = f"{base}<path:path>"

    @server.after_request
    def status(answer: flask.Response) -> flask.Response:
        rule = flask.request.url_rule
        if rule is not None and rule.rule == any_path and parse_state(flask.request.path, "", base).page not in PAGES:
            answer.status_code = 404
        return answer


def _json(value: dict[str, Any]) -> flask.Response:
    answer = flask.Response(json.dumps(value), mimetype="application/json")
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _protect(app: dash.Dash) -> None:
    """Headers of every answer. Scripts run from this server alone; Dash's one inline script is let in by its hash."""
    scripts = " ".join(["'self'", *app.csp_hashes()])
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {scripts}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "font-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )

    @app.server.after_request
    def headers(answer: flask.Response) -> flask.Response:
        answer.headers["Content-Security-Policy"] = policy
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        return answer
