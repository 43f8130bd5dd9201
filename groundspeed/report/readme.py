"""The speed tables of README and docs/speed.md, generated from records between two marks: no figure was typed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundspeed.analysis.speedup import BASELINE, Row, fastest, speedup_table
from groundspeed.records import Record
from groundspeed.report.columns import LIBRARIES, TITLES, column_of
from groundspeed.report.largest import largest_case
from groundspeed.report.marks import replace_between
from groundspeed.report.units import duration, percent, significant

BEGIN = "<!-- speed table: begin; written by `groundspeed table --readme`, do not edit -->"
END = "<!-- speed table: end -->"

_COLUMNS = TITLES | {"torch": "other PyTorch", LIBRARIES: LIBRARIES}


def replace_table(page: str, table: str, name: str = "README.md") -> str:
    """A page with what stands between the marks replaced. Raises UserError when the marks are not there once."""
    return replace_between(page, BEGIN, END, f"\n{table}", name)


def speed_table(records: Sequence[Record], machine: str, every: bool = True) -> str:
    """The Markdown between the marks: the fastest of each back end against the baseline.

    A row a case, or where not ``every`` case is wanted, a row an operator: its largest.
    """
    if not records:
        return (
            f"\nThere is no result of a core run on `{machine}` yet; `groundspeed run --tier core` there, then\n"
            "`groundspeed table --readme` here, puts the table in this place.\n\n"
        )
    titles = ["operator", "case", f"`{BASELINE}`", *_COLUMNS.values(), "fastest"]
    lines = [_row([*titles, "of ceiling"]), _row(["---", "---", *["---:"] * (len(titles) - 3), "---", "---:"])]
    for record in records:
        shown = None if every else largest_case(record)
        lines += [_row(cells) for case, cells in _cases(record) if shown in (None, case)]
    return "\n".join(["", _caption(records), "", *lines, "", ""])


def _cases(record: Record) -> Iterable[tuple[tuple[str, str], list[str]]]:
    """Dtype and shape, and the cells of its row, of each case that was measured."""
    rows = [row for row in speedup_table(record) if row.time is not None]
    for case in dict.fromkeys(row.case for row in rows):
        own = [row for row in rows if row.case == case]
        baseline = next((row for row in own if row.implementation == BASELINE), None)
        others = [row for row in own if row.implementation != BASELINE]
        best = {_column(row): row for row in fastest(others, by=_column)}
        first = min(own, key=_time)
        yield (
            case[1:],
            [
                record.header.operator,
                f"{case[1]} {case[2]}",
                duration(_time(baseline)) if baseline else "–",
                *(_speedup(best.get(column)) for column in _COLUMNS),
                f"`{first.implementation}`",
                "–" if first.ceiling_share is None else percent(first.ceiling_share),
            ],
        )


def _caption(records: Sequence[Record]) -> str:
    """What was measured, where, with what: every figure's origin in one sentence each."""
    first = records[0].header
    versions = f"torch {first.environment.torch}"
    versions += f", Triton {first.environment.triton}" if first.environment.triton else ""
    versions += f", CuPy {first.environment.cupy}" if first.environment.cupy else ""
    commits = ", ".join(dict.fromkeys(_commit(record) for record in records))
    days = sorted({record.header.started[:10] for record in records})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    device = f"{first.environment.device_name}, driver {first.environment.driver}"
    return (
        f"One {device}, {versions};\n{when}, commit {commits}.\n"
        f"Device time with a cold cache. `{BASELINE}` in time, the fastest implementation of each back end as its\n"
        "speedup over it, paired round by round; the last column is how near the fastest comes to what this GPU\n"
        "reached in the same session (reading and writing the operator's own bytes, or multiplying matrices)."
    )


def _commit(record: Record) -> str:
    return f"`{record.header.commit[:8]}`" + (" with changes" if record.header.dirty else "")


def _column(row: Row) -> str:
    return column_of(row.backend)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _speedup(row: Row | None) -> str:
    return f"{significant(row.speedup.value)}×" if row is not None and row.speedup is not None else "–"


def _time(row: Row) -> float:
    assert row.time is not None
    return row.time.value
