"""The speed tables of README and docs/speed.md, generated from records between two marks: no figure was typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groundspeed.analysis.speedup import BASELINE, Row, fastest
from groundspeed.records import Record
from groundspeed.report.columns import LIBRARIES, TITLES, column_of
from groundspeed.report.largest import largest_case
from groundspeed.report.marks import replace_between
from groundspeed.report.standing import Standing
from groundspeed.report.units import duration, percent, significant

BEGIN = "<!-- speed table: begin; written by `groundspeed table --readme`, do not edit -->"
END = "<!-- speed table: end -->"

_COLUMNS = TITLES | {"torch": "other PyTorch", LIBRARIES: LIBRARIES}


def replace_table(page: str, table: str, name: str = "README.md") -> str:
    """A page with what stands between the marks replaced. Raises UserError when the marks are not there once."""
    return replace_between(page, BEGIN, END, f"\n{table}", name)


def speed_table(operators: Mapping[str, Sequence[Standing]], machine: str, every: bool = True) -> str:
    """The Markdown between the marks: the fastest of each back end against the baseline, of what stands by operator.

    A row a case, or where not ``every`` case is wanted, a row an operator: its largest.
    """
    if not operators:
        return (
            f"\nThere is no result of a core run on `{machine}` yet; `groundspeed run --tier core` there, then\n"
            "`groundspeed table --readme` here, puts the table in this place.\n\n"
        )
    titles = ["operator", "case", f"`{BASELINE}`", *_COLUMNS.values(), "fastest"]
    lines = [_row([*titles, "of ceiling"]), _row(["---", "---", *["---:"] * (len(titles) - 3), "---", "---:"])]
    sources = []
    for operator, parts in operators.items():
        shown = parts if every else _of_case(parts, largest_case(parts))
        lines += [_row([operator, *cells]) for cells in _cases(shown)]
        sources += [part.record for part in shown]
    return "\n".join(["", _caption(sources), "", *lines, "", ""])


def _of_case(parts: Iterable[Standing], label: str) -> list[Standing]:
    """What stands of one case: a record that has nothing of it is no source of its row."""
    found = ((part.record, tuple(entry for entry in part.entries if entry.case_label == label)) for part in parts)
    return [Standing(record, entries) for record, entries in found if entries]


def _cases(parts: Iterable[Standing]) -> Iterable[list[str]]:
    """The cells of each case's row but the first."""
    rows = [row for part in parts for _, row in part.rows() if row.time is not None]
    for case in dict.fromkeys(row.case for row in rows):
        own = [row for row in rows if row.case == case]
        baseline = next((row for row in own if row.implementation == BASELINE), None)
        others = [row for row in own if row.implementation != BASELINE]
        best = {_column(row): row for row in fastest(others, by=_column)}
        first = min(own, key=_time)
        yield [
            f"{case[1]} {case[2]}",
            duration(_time(baseline)) if baseline else "–",
            *(_speedup(best.get(column)) for column in _COLUMNS),
            f"`{first.implementation}`",
            "–" if first.ceiling_share is None else percent(first.ceiling_share),
        ]


def _caption(records: Sequence[Record]) -> str:
    """What was measured, where, with what: every figure's origin in one sentence each."""
    seen = [record.header.environment for record in records]
    parts = [
        _named("One", (one.device_name for one in seen)),
        _named("driver", (one.driver for one in seen)),
        _named("torch", (one.torch for one in seen)),
        _named("Triton", (one.triton for one in seen)),
        _named("CuPy", (one.cupy for one in seen)),
    ]
    commits = ", ".join(dict.fromkeys(_commit(record) for record in records))
    days = sorted({record.header.started[:10] for record in records})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"{', '.join(filter(None, parts))};\n{when}, commit {commits}.\n"
        f"Device time with a cold cache. `{BASELINE}` in time, the fastest implementation of each back end as its\n"
        "speedup over it in the same run, paired round by round; the last column is how near the fastest comes to\n"
        "what this GPU reached in the same session (reading and writing the operator's own bytes, or multiplying\n"
        "matrices)."
    )


def _named(what: str, values: Iterable[str]) -> str:
    """``torch 2.11.0``, or every version that was there; empty where there was none."""
    found = " and ".join(dict.fromkeys(filter(None, values)))
    return f"{what} {found}" if found else ""


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
