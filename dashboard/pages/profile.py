"""The page of one profile: what bounds an implementation on a case, as `groundspeed profile` wrote it."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
from dash import dcc, html

from dashboard.components.parts import empty, moment, panel
from dashboard.pages.links import samples_link
from dashboard.pages.page import Page, simple
from dashboard.pages.profile_offers import code, entries
from dashboard.store.profiles import Profile, profiles_of, text_of
from dashboard.view import View, device_label
from groundspeed.errors import UserError

_LEADS_AWAY = re.compile(r"\\?\[|<|(?<=\w):(?=//)|(?<=mailto):", re.IGNORECASE)


def draw(view: View) -> list[Any]:
    case = {name: view.state.get(name) for name in ("operator", "implementation", "dtype", "shape")}
    results = view.frames.snapshot.results
    known = profiles_of(results, view.machine, case["operator"], case["implementation"]) if view.ours else []
    of_case = [one for one in known if (one.dtype, one.shape) == (case["dtype"], case["shape"])]
    shown = next((one for one in of_case if _is_asked(view, one)), None)
    measured = _measured(view, case)
    others = [one for one in of_case if one is not shown]
    return [
        _title(view, case, shown, measured),
        _missing(view, case) if shown is None else _page(shown),
        panel("Other profiles of this case", *entries(view, others, measured or {})) if others else None,
    ]


def inert(text: str) -> str:
    """Markdown in which nothing leads anywhere: links, pictures and tags are shown as they are written.

    Pages that groundspeed writes have none of these; a file may be anyone's.
    """
    return _LEADS_AWAY.sub(lambda found: f"&#{ord(found.group()[-1])};", text)


def _is_asked(view: View, profile: Profile) -> bool:
    """Whether the link means this one; without commit and tool it means the newest."""
    return view.state.get("commit") in ("", profile.state) and view.state.get("tool") in ("", profile.tool)


def _measured(view: View, case: dict[str, str]) -> dict[str, Any] | None:
    """What names the measurement that the reader came from, else the newest of the case; None where there is none."""
    rows = view.frames.latest(view.machine, view.project)
    for name, value in case.items():
        rows = rows.filter(pl.col(name) == value)
    if rows.is_empty():
        return None
    newest = rows.sort("started", nulls_last=False).tail(1).select(*case, "run_id", "environment").to_dicts()[0]
    run = view.state.get("run")
    return {**newest, "run_id": run, "environment": view.state.get("environment")} if run else newest


def _title(view: View, case: dict[str, str], shown: Profile | None, measured: dict[str, Any] | None) -> html.Div:
    told = [f"{case['dtype']} {case['shape']}".strip(), device_label(view.device)]
    if shown is not None:
        told += [f"{shown.tool}, {code(shown)}", moment(shown.taken)]
    back = []
    if measured is not None:
        back.append(html.A("←\u00a0measurement", href=samples_link(view, measured)))
    if case["operator"] in view.operators():
        up = view.state.to("operator", operator=case["operator"], dtype="")
        back.append(html.A(f"←\u00a0{case['operator']}", href=up))
    return html.Div(
        [
            html.H1(f"Profile of {case['operator']}/{case['implementation']}" if case["operator"] else "Profile"),
            html.P([" · ".join(told), *(part for link in back for part in (" · ", link))], className="note"),
        ],
        className="title",
    )


def _page(profile: Profile) -> html.Section:
    try:
        text = inert(_without_title(text_of(profile), profile))
    except UserError as error:
        return empty("This profile cannot be shown", str(error))
    return html.Section(dcc.Markdown(text, dangerously_allow_html=False, dedent=False), className="panel text")


def _without_title(text: str, profile: Profile) -> str:
    """The page without its heading, which stands above it already."""
    first, _, rest = text.partition("\n")
    title = f"# {profile.operator}/{profile.implementation}, {profile.dtype} {profile.shape}"
    return rest if first.replace("\\", "").strip() == title else text


def _missing(view: View, case: dict[str, str]) -> html.Section:
    asked = (("by", view.state.get("tool")), ("of commit", view.state.get("commit")))
    which = "".join(f" {word} {value}" for word, value in asked if value)
    return empty(
        "No such profile",
        f"The results of {view.machine} hold no profile{which} of {case['operator']}/{case['implementation']} on "
        f"{case['dtype']} {case['shape']}: it was never made, or its file does not exist any more.",
        "groundspeed profile makes one, on that machine.",
    )


PAGE = Page("profile", "Profile", simple(draw), (), in_navigation=False)
