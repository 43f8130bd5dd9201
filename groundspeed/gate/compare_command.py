"""Compare stored results: two commits, machines, runs or files, and say how sure that is.

groundspeed compare main HEAD
groundspeed compare nvidia-a100:main nvidia-h200:main
groundspeed compare before.json after.json   asv's or pytest-benchmark's files

Stored results come from different processes: for a verdict on a change, groundspeed gate is far surer.
Exit status: 0 compared, 1 with --fail when something regressed or broke, 2 nothing could be compared.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import msgspec

from groundspeed.analysis.compare import THRESHOLD, Comparison, compare
from groundspeed.analysis.rule import Verdict
from groundspeed.errors import UserError
from groundspeed.gate.plain import plain, wrapped
from groundspeed.gate.sources import HELP, Source, load
from groundspeed.gate.words import MARKS, ORDER, change, interval, value
from groundspeed.locations.mirror import mirrored
from groundspeed.locations.place import READ_HELP, place
from groundspeed.project import find_project
from groundspeed.report.style import Style, clip, pad
from groundspeed.whole_files import replace_output

FAILING = (Verdict.REGRESSED, Verdict.BROKEN)
MEASURED = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.UNCHANGED, Verdict.AMBIGUOUS)
NOTHING = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=HELP)
    parser.add_argument("b", metavar="B", help="the same; ratios are B over A")
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME", help="such as device_cold (default: all)"
    )
    parser.add_argument("--threshold", type=float, default=THRESHOLD, metavar="T", help="default: 0.05, which is 5 %%")
    parser.add_argument("--all", action="store_true", help="list unchanged series too")
    parser.add_argument("--fail", action="store_true", help="exit with 1 when something regressed or broke")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the comparisons as JSON")


def run(args: argparse.Namespace) -> int:
    if not 0 < args.threshold <= 2:
        raise UserError(f"--threshold {args.threshold}: expected a share between 0 and 2; 0.03 is 3 %")
    project = find_project(args.project) if args.results is None or args.project else None
    root = project.root if project else Path.cwd()
    results = mirrored(args.results or root / "results", root)
    base, head = load(args.a, results, root), load(args.b, results, root)
    comparisons = compare(base.stored, head.stored, args.threshold)
    if args.metric:
        comparisons = _of_metrics(comparisons, args.metric)
    if args.json is not None:
        replace_output(args.json, _json(base, head, comparisons))
    print(render(base, head, comparisons, Style.of(), everything=args.all))
    if not any(comparison.verdict in MEASURED for comparison in comparisons):
        return NOTHING
    return 1 if args.fail and any(comparison.verdict in FAILING for comparison in comparisons) else 0


def render(base: Source, head: Source, comparisons: list[Comparison], style: Style, everything: bool) -> str:
    """Changed series first, largest change first, then the counts and what limits the certainty."""
    lines = [style.bold(clip(plain(f"A {base.label}    B {head.label}"), style.width))]
    shown = [c for c in comparisons if everything or c.verdict not in (Verdict.UNCHANGED, Verdict.NEW)]
    for comparison in sorted(shown, key=_importance):
        lines += _lines(comparison, style)
    counts = Counter(comparison.verdict for comparison in comparisons)
    lines += ["", ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict]) or "nothing stored"]
    measured = [comparison for comparison in comparisons if comparison.verdict in MEASURED]
    if measured:
        sure = Counter(comparison.certainty for comparison in measured)
        lines.append(
            "certainty: " + ", ".join(f"{sure[word]} {word}" for word in ("high", "medium", "low") if sure[word])
        )
        common = Counter(reason for comparison in measured for reason in comparison.reasons)
        for reason, count in common.most_common(5):
            lines += wrapped(f"{count} × {reason}", style.width, "  ")
    else:
        lines.append("nothing could be compared: A and B share no series with values on both sides")
    for remark in dict.fromkeys((*base.remarks, *head.remarks)):
        lines += wrapped(remark, style.width, "note: ")
    return "\n".join(lines)


def _lines(comparison: Comparison, style: Style) -> list[str]:
    what = clip(plain(f"{comparison.series.label} · {comparison.series.metric}"), style.width - 15)
    mark = f"{MARKS[comparison.verdict]} {comparison.verdict}"
    lines = [f"{pad(_colour(comparison.verdict, style)(mark), 14)} {what}"]
    second = "; ".join(comparison.reasons) if comparison.base is None else _numbers(comparison)
    return [*lines, *wrapped(second, style.width, " " * 15)]


def _numbers(comparison: Comparison) -> str:
    both = f"{_value(comparison.base, comparison)} → {_value(comparison.head, comparison)}, {change(comparison.ratio)}"
    both = f"{both} {interval(comparison.low, comparison.high)}".strip()
    return f"{both}, {comparison.runs[0]} and {comparison.runs[1]} runs, certainty {comparison.certainty}"


def _colour(verdict: Verdict, style: Style) -> Callable[[str], str]:
    if verdict in FAILING:
        return style.bad
    return style.good if verdict in (Verdict.IMPROVED, Verdict.FIXED) else style.bold


def _value(number: float | None, comparison: Comparison) -> str:
    if comparison.unit == "seconds":
        return value(None if number is None else number * 1e9, "ns")
    return value(number, comparison.unit)


def _importance(comparison: Comparison) -> tuple[int, float]:
    distance = abs(comparison.ratio - 1) if comparison.ratio is not None else 0.0
    return ORDER.index(comparison.verdict), -distance


def _of_metrics(comparisons: list[Comparison], metrics: list[str]) -> list[Comparison]:
    known = {comparison.series.metric for comparison in comparisons}
    for metric in metrics:
        if metric not in known:
            raise UserError(f"--metric {metric}: A and B hold {', '.join(sorted(known)) or 'nothing'}")
    return [comparison for comparison in comparisons if comparison.series.metric in metrics]


def _json(base: Source, head: Source, comparisons: list[Comparison]) -> bytes:
    document = {"a": base.label, "b": head.label, "comparisons": [asdict(comparison) for comparison in comparisons]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
