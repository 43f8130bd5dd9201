"""What the reader is looking at, as a link.

The whole state of a view is its path and its query string: every view can be sent, bookmarked, reloaded and gone back
to. Values that are defaults are left out of links, so that links stay short.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote_plus

SHARED = ("machine", "metric", "baseline", "dtype")  # kept when a link leads to another page
LONGEST_VALUE = 400


@dataclass(frozen=True)
class State:
    """One view: ``page`` is the path below the base path ("" is the overview), ``params`` the query string."""

    page: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    base: str = "/"

    def get(self, name: str, default: str = "") -> str:
        return self.params.get(name) or default

    def many(self, name: str) -> tuple[str, ...]:
        """A parameter that holds several values, separated by ``~`` (a character in no name asv allows)."""
        return tuple(value for value in self.get(name).split("~") if value)

    def here(self, **changes: str | None) -> str:
        """Link to this page with some parameters changed; None or "" removes one."""
        return _link(self.base, self.page, {**self.params, **{k: v or "" for k, v in changes.items()}})

    def to(self, page: str, **params: str | None) -> str:
        """Link to another page, which keeps the shared parameters (machine, metric, baseline, dtype)."""
        kept = {name: self.params[name] for name in SHARED if name in self.params}
        return _link(self.base, page, {**kept, **{k: v or "" for k, v in params.items()}})

    def toggled(self, name: str, value: str) -> str:
        """Link that adds a value to a parameter of several, or takes it away."""
        values = self.many(name)
        after = tuple(v for v in values if v != value) if value in values else (*values, value)
        return self.here(**{name: "~".join(after)})


def parse_state(path: str, search: str, base: str = "/") -> State:
    """State of a URL. Anything may stand in a URL: over-long values are cut, unknown names kept and ignored."""
    page = path[len(base) :] if path.startswith(base) else path.lstrip("/")
    pairs = parse_qsl(search.lstrip("?"), keep_blank_values=False, max_num_fields=64) if search.count("&") < 64 else []
    return State(page.strip("/"), {name: value[:LONGEST_VALUE] for name, value in pairs}, base)


@functools.lru_cache(maxsize=8192)
def _quoted(text: str) -> str:
    """A page holds thousands of links made of few words."""
    return quote_plus(text)


def _link(base: str, page: str, params: Mapping[str, str]) -> str:
    query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in params.items() if value)
    return f"{base}{page}{'?' if query else ''}{query}"
