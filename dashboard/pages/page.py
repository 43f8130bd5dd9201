"""What a page is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.frames import Frames
from dashboard.state import State
from dashboard.view import View

Draw = Callable[[State, Any, Frames, Path], list[Any]]


@dataclass(frozen=True)
class Page:
    """``name`` is the path below the base path, ``controls`` the shared filters that mean something here.

    ``draw(state, view, frames, repository)`` returns the content; ``view`` is None only where ``needs_results`` is
    False. A page without ``title`` is reached by links, not from the navigation.
    """

    name: str
    title: str
    draw: Draw
    controls: tuple[str, ...] = ("machine", "project", "metric", "baseline", "dtype")
    needs_results: bool = True
    in_navigation: bool = True


def simple(draw: Callable[[View], list[Any]]) -> Draw:
    """A page that needs its view alone."""
    return lambda state, view, frames, repository: draw(view)
