"""README's speed table, generated from records between two marks, so that no figure in it was typed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundspeed.analysis.speedup import BASELINE, Row, fastest, speedup_table
from groundspeed.records import Record
from groundspeed.report.marks import replace_between
from groundspeed.report.units import duration, percent, significant

BEGIN = "<!-- speed table: begin; written by `groundspeed table --readme`, do not edit -->"
END = "<!-- speed table: end -->"

_BACKENDS = (("torch", "other PyTorch"), ("cuda", "CUDA C++"), ("triton", "Triton"), ("cupy", "CuPy"))


def replace_table(readme: str, table: str) -> str:
    """The README with what stands between the marks replaced. Raises UserError when the marks are not there once."""
    return replace_between(readme, BEGIN, END, f"\n{table}", "README.md")


def speed_table(records: Sequence[Record], machine: str) -> str:
    """The Markdown between the marks: a row a case, the fastest of each back end against the baseline."""
    if not records:
        return (
            f"\nThere is no result of a core run on `{machine}` yet; `groundspeed run --tier core` there, then\n"
            "`groundspeed table --readme` here, puts the table in this place.\n\n"
        )
    titles = ["operator", "case", f"`{BASELINE}`", *(title for _, title in _BACKENDS), "fastest", "of ceiling"]
    lines = [_row(titles), _row(["---", "---", *["---:"] * 5, "---", "---:"])]
    for record in records:
        lines += [_row(cells) for cells in _cases(record)]
    return "\n".join(["", _caption(records), "", *lines, "", ""])


def _cases(record: Record) -> Iterable[list[str]]:
    rows = [row for row in speedup_table(record) if row.time is not None]
    for case in dict.fromkeys(row.case for row in rows):
        own = [row for row in rows if row.case == case]
        baseline = next((row for row in own if row.implementation == BASELINE), None)
        others = [row for row in own if row.implementation != BASELINE]
        best = {row.backend: row for row in fastest(others, by=lambda row: row.backend)}
        first = min(own, key=_time)
        yield [
            record.header.operator,
            f"{case[1]} {case[2]}",
            duration(_time(baseline)) if baseline else "–",
            *(_speedup(best.get(backend)) for backend, _ in _BACKENDS),
            f"`{first.implementation}`",
            "–" if first.ceiling_share is None else percent(first.ceiling_share),
        ]


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


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _speedup(row: Row | None) -> str:
    return f"{significant(row.speedup.value)}×" if row is not None and row.speedup is not None else "–"


def _time(row: Row) -> float:
    assert row.time is not None
    return row.time.value
