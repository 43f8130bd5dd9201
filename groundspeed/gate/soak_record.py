"""The tally of whole-gate A/A runs: what is kept of each, and the table of all.

A whole run judges every operator of the project against itself. It may take several sittings: each adds to a file of
its own, ``results/<machine>/soak/<sitting>.jsonl.gz``, one gzip member for each operator that it finished.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from groundspeed.analysis.rule import Verdict
from groundspeed.errors import UserError
from groundspeed.gate.report import Finding, Report
from groundspeed.report.marks import replace_between

FOLDER = "soak"
BEGIN, END = "<!-- soak: begin; written by `make soak-gate`, do not edit -->", "<!-- soak: end -->"
TIMED = ("device_cold", "device_hot")
SPANS = ((0, 3), (3, 10), (10, 100), (100, None))  # µs of device time
COULD_NOT_MEASURE = "could not measure"


class SoakPiece(msgspec.Struct, frozen=True):
    """One operator of a whole run: the gate on identical code.

    run
        The whole run that it belongs to, named from its beginning.
    operators
        All that the whole run consists of.
    part
        Which share of the project's operators those are, as 1/3; empty for all.
    differences
        By device time's metric, of each gateable series: base in ns, and head over base minus 1.
    alarmed
        Each false verdict: series, metric, verdict and ratio.
    """

    run: str
    operators: tuple[str, ...]
    operator: str
    machine: str
    device: str
    commit: str
    result: str
    summary: str
    seconds: float
    compared: int
    alarms: int
    improvements: int
    ambiguous: int
    differences: dict[str, list[tuple[float, float]]]
    alarmed: list[str]
    part: str = ""

    @property
    def measured(self) -> bool:
        return self.result != COULD_NOT_MEASURE


def piece_of(run: str, part: str, operators: Sequence[str], operator: str, machine: str, report: Report) -> SoakPiece:
    """What is kept of one operator's report. On identical code, an improvement is as false as a regression."""
    wrong = [*report.failures, *report.with_verdict(Verdict.IMPROVED)]
    return SoakPiece(
        run=run,
        part=part,
        operators=tuple(operators),
        operator=operator,
        machine=machine,
        device=report.device,
        commit=report.base,
        result=report.result,
        summary=report.summary,
        seconds=report.seconds,
        compared=report.compared,
        alarms=len(report.failures),
        improvements=len(report.with_verdict(Verdict.IMPROVED)),
        ambiguous=len(report.with_verdict(Verdict.AMBIGUOUS)),
        differences={metric: _differences(report.findings, metric) for metric in TIMED},
        alarmed=[_named(finding) for finding in wrong],
    )


def _differences(findings: Iterable[Finding], metric: str) -> list[tuple[float, float]]:
    own = [f for f in findings if f.metric == metric and f.gateable and f.ratio is not None and f.base]
    return [(round(f.base or 0.0), round((f.ratio or 0.0) - 1, 6)) for f in own]


def _named(finding: Finding) -> str:
    ratio = f"{finding.ratio - 1:+.2%}" if finding.ratio is not None else finding.reason
    where = f"{finding.operator}/{finding.implementation} {finding.dtype} {finding.shape}"
    return f"{where} {finding.metric}: {finding.verdict} {ratio}"


def append(results: Path, name: str, piece: SoakPiece) -> Path:
    """Add a piece to a sitting's file."""
    path = results / piece.machine / FOLDER / f"{name}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(gzip.compress(msgspec.json.encode(piece) + b"\n", mtime=0))
    return path


def read(results: Path) -> list[SoakPiece]:
    """Every piece of every machine, oldest file first. Raises UserError naming a file that cannot be read."""
    pieces: list[SoakPiece] = []
    for path in sorted(results.glob(f"*/{FOLDER}/*.jsonl.gz"), key=lambda path: path.name):
        try:
            lines = gzip.decompress(path.read_bytes()).splitlines()
            pieces += [msgspec.json.decode(line, type=SoakPiece) for line in lines]
        except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
            raise UserError(f"{path}: {error}") from error
    return pieces


def seconds_of(pieces: Iterable[SoakPiece], machine: str, operator: str) -> list[float]:
    """What judging an operator took on a machine each time that it could be measured, in the order of the pieces."""
    return [
        piece.seconds for piece in pieces if (piece.machine, piece.operator) == (machine, operator) and piece.measured
    ]


def whole_runs(pieces: Iterable[SoakPiece]) -> dict[str, list[SoakPiece]]:
    """The pieces of each whole run, in the order of their beginning; of an operator taken twice the last counts."""
    runs: dict[str, dict[str, SoakPiece]] = {}
    for piece in pieces:
        runs.setdefault(piece.run, {})[piece.operator] = piece
    return {run: list(members.values()) for run, members in sorted(runs.items())}


def is_whole(members: Sequence[SoakPiece]) -> bool:
    """Whether every operator of the run has been judged."""
    return {piece.operator for piece in members if piece.measured} >= set(members[0].operators)


def table(pieces: Iterable[SoakPiece]) -> str:
    """The tally in Markdown, a row a machine. Operators that could not be measured are counted, and prove nothing."""
    machines: dict[str, list[SoakPiece]] = {}
    for piece in pieces:
        machines.setdefault(piece.machine, []).append(piece)
    if not machines:
        return "No whole-gate A/A run has been recorded yet."
    titles = (
        "machine",
        "whole runs",
        "runs of a part",
        "failing",
        "operators",
        "not measured",
        "comparisons",
        "regressed",
        "improved",
    )
    head = [f"| {' | '.join((*titles, 'ambiguous'))} |", "|---|" + "--:|" * len(titles)]
    rows = [_row(machine, members) for machine, members in sorted(machines.items())]
    parts = ["\n".join([*head, *rows]), _largest(machines)]
    false = [
        f"- {machine}, run {piece.run}: {line}"
        for machine, members in sorted(machines.items())
        for piece in members
        for line in piece.alarmed
    ]
    return "\n\n".join([*parts, *(["\n".join(false)] if false else [])])


def _row(machine: str, members: Sequence[SoakPiece]) -> str:
    runs = whole_runs(members)
    done = [piece for own in runs.values() for piece in own if piece.measured]
    cells = [
        machine,
        _finished(own for own in runs.values() if not own[0].part),
        _finished(own for own in runs.values() if own[0].part),
        str(sum(any(piece.alarms for piece in own) for own in runs.values())),
        str(len({piece.operator for piece in done})),
        str(sum(not piece.measured for own in runs.values() for piece in own)),
        f"{sum(piece.compared for piece in done):,}",
        str(sum(piece.alarms for piece in done)),
        str(sum(piece.improvements for piece in done)),
        str(sum(piece.ambiguous for piece in done)),
    ]
    return f"| {' | '.join(cells)} |"


def _finished(runs: Iterable[list[SoakPiece]]) -> str:
    whole = [is_whole(own) for own in runs]
    begun = f" and {whole.count(False)} begun" if False in whole else ""
    return f"{whole.count(True)}{begun}"


def _largest(machines: dict[str, list[SoakPiece]]) -> str:
    """The largest difference of device times of identical code, by how long they are."""
    spans = [f"{low}–{high} µs" if high else f"over {low} µs" for low, high in SPANS]
    lines = [f"| largest difference | metric | {' | '.join(spans)} |", "|---|---|" + "--:|" * len(SPANS)]
    for machine, members in sorted(machines.items()):
        for metric in TIMED:
            seen = [each for piece in members for each in piece.differences.get(metric, ())]
            cells = [_cell(seen, low, high) for low, high in SPANS]
            lines.append(f"| {machine} | `{metric}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(seen: Iterable[tuple[float, float]], low: int, high: int | None) -> str:
    own = [abs(ratio) for base, ratio in seen if base >= 1000 * low and (high is None or base < 1000 * high)]
    return f"{max(own):.2%} of {len(own)}" if own else "–"


def update_page(page: Path, pieces: Iterable[SoakPiece]) -> None:
    """Write the table between the marks of a page. Raises UserError where the page has no marks."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    page.write_text(replace_between(text, BEGIN, END, f"\n\n{table(pieces)}\n\n", str(page)), encoding="utf-8")
