"""The share tables of a transformer layer, for a terminal: published shares beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from groundspeed.analysis.shares import Operation, Share, busy, by_kind, by_part, kind, least_ns
from groundspeed.records import Ceilings
from groundspeed.report import units
from groundspeed.report.style import Style, clip, pad

# The sources' own figures: 004, shares of a layer's compute; 003, what an unfused layer's time goes to.
PUBLISHED = {
    "attention": "30–40 %",
    "FFN": "50–60 %",
    "norms": "5–10 %",
    "memory": "65 %",
    "launch": "15 %",
    "compute": "20 %",
}
PARTS = ("attention", "FFN", "norms")
_MOST_OPERATIONS = 8


def share_tables(
    dtype: str, shape: str, call_ns: float, operations: Sequence[Operation], ceilings: Ceilings, style: Style
) -> list[str]:
    """The lines of one case: its parts, what its time goes to, and the operations that take most of it."""
    call = units.duration(call_ns)
    lines = [style.bold(f"{dtype} {shape}"), _title("part", "of the device's time")]
    lines += [_share(share) for share in by_part(operations, PARTS)]
    hidden = call_ns < busy(operations)
    of = f"of operations summing to {units.duration(busy(operations))}" if hidden else "of a call of " + call
    lines.append(_title("goes to", of))
    kinds = by_kind(operations, call_ns, ceilings, dtype)
    lines += [_unseen(one.label) if hidden and one.label == "launch" else _share(one) for one in kinds]
    if hidden:
        lines.append(f"  a call takes {call}, less than its operations apart: launch cannot be seen")
    lines.append(style.dim(f"  the longest of {len(operations)} operations"))
    whole = busy(operations) or 1.0
    longest = sorted(operations, key=lambda one: one.ns, reverse=True)[:_MOST_OPERATIONS]
    for one in longest:
        reached = f"{units.percent(least_ns(one, ceilings, dtype) / one.ns)} of ceiling" if one.ns else ""
        words = (pad(clip(one.name, 19), 19), pad(one.part, 10), pad(units.duration(one.ns), 9, ">"))
        share = pad(units.percent(one.ns / whole), 7, ">")
        lines.append(f"    {' '.join(words)} {share}  {pad(kind(one, ceilings, dtype), 8)} {reached}".rstrip())
    return lines


def _title(what: str, whole: str) -> str:
    return f"  {pad(what, 12)}{pad('time', 10, '>')}{pad('share', 9, '>')}{pad('published', 12, '>')}   {whole}"


def _share(share: Share) -> str:
    return _row(share.label, units.duration(share.ns), units.percent(share.fraction))


def _unseen(label: str) -> str:
    return _row(label, "–", "–")


def _row(label: str, time: str, fraction: str) -> str:
    published = PUBLISHED.get(label, "–")
    return f"  {pad(label, 12)}{pad(time, 10, '>')}{pad(fraction, 9, '>')}{pad(published, 12, '>')}"
