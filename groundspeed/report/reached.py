"""The last paragraph of an implementation's header: what it reaches, generated from records, so that none was typed."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from groundspeed.analysis.speedup import BASELINE, Row
from groundspeed.records import Record
from groundspeed.report.largest import work_of
from groundspeed.report.standing import Standing
from groundspeed.report.units import duration, percent, rate, significant

WORD = "Reached on "
_WIDTH = 120
_COMMENT = "//"


def sentences(parts: Sequence[Standing]) -> dict[str, str]:
    """implementation → what it reaches on the largest case that it was measured on, of what stands of an operator."""
    largest: dict[str, tuple[int, str]] = {}
    for part in parts:
        for entry, row in part.rows():
            size = work_of(parts[0].record, entry)
            if row.time is not None and size > largest.get(row.implementation, (-1, ""))[0]:
                largest[row.implementation] = size, sentence(row, part.record)
    return {name: said for name, (_, said) in largest.items()}


def sentence(row: Row, record: Record) -> str:
    """One sentence: where, on what, how long, how fast, of which ceiling, against the baseline."""
    assert row.time is not None
    parts = [f"{duration(row.time.value)} for {row.dtype} {row.shape_label}"]
    if row.bound == "compute" and row.flops_per_second is not None:
        parts.append(rate(row.flops_per_second, "FLOP/s"))
    elif row.bytes_per_second is not None:
        parts.append(rate(row.bytes_per_second, "B/s"))
    if row.ceiling_share is not None:
        parts.append(f"{percent(row.ceiling_share)} of the {row.bound} ceiling")
    if row.speedup is not None and row.implementation != BASELINE:
        parts.append(f"{significant(row.speedup.value)} times as fast as {BASELINE}")
    header = record.header
    doubt = " (unstable)" if row.unstable else ""
    return f"{WORD}{header.machine} at {header.commit[:8]}: {', '.join(parts)}{doubt}."


def with_sentence(text: str, suffix: str, said: str) -> str:
    """A file's text with what it reaches at the end of its header, in place of what was said there before.

    A header is the docstring of a .py file, and the comment that a .cu file begins with. A file without one is
    returned as it is.
    """
    return _in_docstring(text, said) if suffix == ".py" else _in_comment(text, said)


def written(tree: Path, operators: Mapping[str, Sequence[Standing]]) -> dict[Path, str]:
    """The headers that are not what stands of each operator's records: file → its text as it has to be.

    ``tree`` is the folder of operators. Implementations that were never measured are left alone.
    """
    changed = {}
    for operator, parts in operators.items():
        for name, said in sentences(parts).items():
            stem = tree / operator / name
            path = next((file for file in (stem.with_suffix(".cu"), stem.with_suffix(".py")) if file.is_file()), None)
            if path is None:
                continue
            before = path.read_text(encoding="utf-8")
            after = with_sentence(before, path.suffix, said)
            if after != before:
                changed[path] = after
    return changed


def _in_comment(text: str, said: str) -> str:
    lines = text.splitlines(keepends=True)
    length = next((n for n, line in enumerate(lines) if not line.startswith(_COMMENT)), len(lines))
    if not length:
        return text
    header = [line[len(_COMMENT) :].strip() for line in lines[:length]]
    kept = lines[: len(_without_last(header))]
    new = textwrap.wrap(said, _WIDTH - len(_COMMENT) - 1)
    return "".join([*kept, f"{_COMMENT}\n", *(f"{_COMMENT} {line}\n" for line in new), *lines[length:]])


def _in_docstring(text: str, said: str) -> str:
    first = ast.parse(text).body[:1]
    if not (first and isinstance(first[0], ast.Expr) and isinstance(first[0].value, ast.Constant)):
        return text
    node = first[0]
    lines = text.splitlines(keepends=True)
    opening, closing = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    body = "".join(lines[opening : closing + 1]).rstrip()
    if not (body.startswith('"""') and body.endswith('"""')):
        return text
    inside = _without_last(body[3:-3].rstrip().splitlines())
    new = ["", *textwrap.wrap(said, _WIDTH)]
    return "".join([*lines[:opening], '"""', "\n".join([*inside, *new]), '\n"""\n', *lines[closing + 1 :]])


def _without_last(header: list[str]) -> list[str]:
    """A header's lines without the paragraph that was generated, and without the empty line before it."""
    at = next((n for n, line in enumerate(header) if line.startswith(WORD)), len(header))
    while at and not header[at - 1].strip():
        at -= 1
    return header[:at]
