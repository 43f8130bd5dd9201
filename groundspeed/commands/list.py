"""List what there is to measure.

groundspeed list            operators, and their implementations by back end
groundspeed list softmax    one operator: its implementations and cases
groundspeed list softmax/triton_row   one implementation, or a pattern of them
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import textwrap
from collections import Counter
from pathlib import Path

from groundspeed.operator import Operator
from groundspeed.project import find_project, parse_target, shown
from groundspeed.report.columns import LIBRARIES, TITLES, column_of
from groundspeed.report.style import Style
from groundspeed.tree import SpecError, Tree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("operator", nargs="?", metavar="OPERATOR[/IMPL]", help="show this one in full")


def run(arguments: argparse.Namespace) -> int:
    tree = find_project(arguments.project).tree()
    style = Style.of()
    if arguments.operator is None:
        lines = _overview(tree, style)
    else:
        target = parse_target(arguments.operator, tree)
        if target.implementation is None:
            lines = _one(tree, target.operator, style)
        else:
            lines = _some(tree, target.operator, target.implementation, style)
    print("\n".join(lines))
    return 0


def _overview(tree: Tree, style: Style) -> list[str]:
    counts = {name: Counter(column_of(i.backend) for i in tree.implementations(name)) for name in tree.operators()}
    backends = [*TITLES, *([LIBRARIES] if any(count[LIBRARIES] for count in counts.values()) else [])]
    wide = max((len(name) for name in counts), default=0)
    cells = "".join(f"{backend:>{_wide(backend)}}" for backend in backends)
    lines = [style.dim(f"{'operator':<{wide}}{cells}   cases small/core/full")]
    for name, count in counts.items():
        numbers = "".join(f"{count[backend] or '–':>{_wide(backend)}}" for backend in backends)
        lines.append(f"{style.bold(name.ljust(wide))}{numbers}   {_sizes(tree, name)}")
    total = sum(sum(count.values()) for count in counts.values())
    return [*lines, "", f"{len(counts)} operators, {total} implementations. One in full: groundspeed list OPERATOR"]


def _wide(column: str) -> int:
    return max(8, len(column) + 2)


def _sizes(tree: Tree, operator: str) -> str:
    try:
        spec = tree.spec(operator)
    except SpecError as error:
        return f"broken spec: {error}"
    return "/".join(str(len(spec.tier_cases(tier))) for tier in ("small", "core", "full"))


def _one(tree: Tree, operator: str, style: Style) -> list[str]:
    spec = tree.spec(operator)
    lines = [style.bold(operator)]
    lines += textwrap.wrap(_summary(tree.spec_file(operator)), style.width, initial_indent="  ", subsequent_indent="  ")
    lines += [f"  {spec.bound}-bound; {', '.join(spec.dtypes)}", ""]
    lines += _implementations(tree, operator, spec, style)
    for name, rungs in spec.ladders.items():
        lines += [style.bold(f"ladder {name}")]
        lines += textwrap.wrap(" → ".join(rungs), style.width, initial_indent="  ", subsequent_indent="  ")
        lines.append("")
    lines += _cases(spec, style)
    return lines


def _some(tree: Tree, operator: str, pattern: str, style: Style) -> list[str]:
    """The implementations of an operator that a pattern matches: idea and files of each."""
    lines: list[str] = []
    for one in tree.implementations(operator):
        if fnmatch.fnmatch(one.name, pattern):
            lines.append(style.backend(f"{operator}/{one.name}", one.name))
            idea = one.idea or "(its header names no idea)"
            lines += textwrap.wrap(idea, style.width, initial_indent="  ", subsequent_indent="  ")
            lines += [f"  {shown(file)}" for file in one.files]
            lines.append("")
    return [*lines, f"The operator and its cases: groundspeed list {operator}"]


def _implementations(tree: Tree, operator: str, spec: Operator, style: Style) -> list[str]:
    lines = [style.bold("implementations")]
    found = tree.implementations(operator)
    wide = max((len(implementation.name) for implementation in found), default=0)
    for implementation in found:
        name = style.backend(implementation.name.ljust(wide), implementation.name)
        room = style.width - wide - 4
        idea = textwrap.wrap(implementation.idea or "(its header names no idea)", room)
        lines.append(f"  {name}  {idea[0]}")
        lines += [" " * (wide + 4) + more for more in idea[1:]]
    for backend, reason in spec.missing.items():
        lines += textwrap.wrap(f"no {backend}: {reason}", style.width, initial_indent="  ", subsequent_indent="    ")
    return [*lines, ""]


def _cases(spec: Operator, style: Style) -> list[str]:
    """One line a bench shape, with the tiers that each dtype of it is in."""
    lines = [style.bold("bench cases") + style.dim("  (s: in tier small, c: in tier core; all are in full)")]
    small, core = set(spec.tier_cases("small")), set(spec.tier_cases("core"))
    shapes: dict[str, list[str]] = {}
    for case in spec.bench_cases:
        tiers = ("s" if case in small else "") + ("c" if case in core else "")
        shapes.setdefault(case.shape_label, []).append(f"{case.dtype}{f' ({tiers})' if tiers else ''}")
    wide = max(map(len, shapes))
    lines += [f"  {label.ljust(wide)}  {'  '.join(dtypes)}" for label, dtypes in shapes.items()]
    return [*lines, f"{style.bold('check cases')}  {len(spec.check_cases)}"]


def _summary(spec_file: Path) -> str:
    """The first paragraph of the spec's docstring."""
    text = ast.get_docstring(ast.parse(spec_file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())
