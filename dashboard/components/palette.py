"""Colours, markers and dashes. They belong to an implementation and never change between views.

The seven base colours are Okabe and Ito's, told apart by the colour-blind; marker and dash say the same a second time,
so that colour is never the only sign.
"""

from __future__ import annotations

from dataclasses import dataclass

BASELINE = "torch_eager"
_FIXED = {"torch_eager": "#6B7280", "torch_compile": "#0072B2"}
_BACKEND = {"cuda": "#D55E00", "triton": "#009E73", "cupy": "#CC79A7"}
_OTHERS = ("#E69F00", "#56B4E9", "#8C6D31", "#7B4173", "#3A7D44", "#B5532A")
_MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "pentagon", "cross", "hexagon")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True)
class Sign:
    """How one implementation is drawn everywhere."""

    colour: str
    marker: str
    dash: str


def sign(implementation: str) -> Sign:
    """Colour by back end; marker and dash by name, so that two rungs of one back end differ.

    It depends on the name alone: adding an implementation never repaints another.
    """
    backend, _, idea = implementation.partition("_")
    slot = _slot(implementation)
    colour = _FIXED.get(implementation) or _BACKEND.get(backend) or _OTHERS[_slot(backend) % len(_OTHERS)]
    if implementation in _FIXED:
        return Sign(colour, _MARKERS[0], _DASHES[0])
    del idea
    return Sign(colour, _MARKERS[slot % len(_MARKERS)], _DASHES[slot // len(_MARKERS) % len(_DASHES)])


def _slot(name: str) -> int:
    """A small number that depends on the name alone (FNV-1a; Python's own hash differs between processes)."""
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 % (1 << 32)
    return value


# ColorBrewer's RdBu with white in the middle: red is slower, blue is faster.
# In the dark the middle is dark, so that 1× recedes there too; white text keeps 4.5 : 1 on every step.
_LIGHT = (
    (178, 24, 43),
    (239, 138, 98),
    (253, 219, 199),
    (247, 247, 247),
    (209, 229, 240),
    (103, 169, 207),
    (33, 102, 172),
)
_DARK = ((158, 32, 38), (126, 38, 38), (78, 40, 42), (42, 48, 56), (34, 60, 88), (26, 86, 138), (24, 104, 172))


def speedup_colour(log2_ratio: float, limit: float = 3.0, dark: bool = False) -> tuple[str, str]:
    """Background and text colour of a speedup on a log2 scale clipped at ±limit; 1× is the middle."""
    steps = _DARK if dark else _LIGHT
    position = (max(-limit, min(limit, log2_ratio)) / limit + 1) / 2 * (len(steps) - 1)
    low = min(int(position), len(steps) - 2)
    share = position - low
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(steps[low], steps[low + 1], strict=True))
    return f"rgb({red},{green},{blue})", "#ffffff" if _luminance(red, green, blue) < 0.179 else "#000000"


def _luminance(*channels: int) -> float:
    """Relative luminance of WCAG 2: text turns white where white has the higher contrast (luminance under 0.179)."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
