"""Run the whole gate on identical code again and again, and keep count of its false alarms.

python -m groundspeed.gate.soak --runs 10 --tier core

Every run leaves one immutable line, results/<machine>/soak/<run id>.jsonl; all lines together are the table between
the marks in docs/gating.md. Exit status: 0 no alarm, 1 at least one, 2 a run could not measure.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from groundspeed.analysis.rule import Verdict
from groundspeed.errors import UserError
from groundspeed.gate import gate_command
from groundspeed.gate.paired import MeasurePairs
from groundspeed.gate.report import Report, read_report
from groundspeed.project import find_project

BEGIN, END = "<!-- soak: begin; written by `make soak-gate`, do not edit -->", "<!-- soak: end -->"
TIMED = ("device_cold", "device_hot")


class SoakRun(msgspec.Struct, frozen=True):
    """One whole gate on identical code. ``largest`` is the largest |ratio - 1| of each metric's gateable series."""

    run_id: str
    machine: str
    device: str
    commit: str
    result: str
    seconds: float
    compared: int
    alarms: int
    improvements: int
    ambiguous: int
    largest: dict[str, float]


def soak_run(run_id: str, report: Report) -> SoakRun:
    """What is kept of one run's report. On identical code, an improvement is as false as a regression."""
    largest: dict[str, float] = {}
    for finding in report.findings:
        if finding.ratio is not None and finding.gateable:
            largest[finding.metric] = max(largest.get(finding.metric, 0.0), abs(finding.ratio - 1))
    return SoakRun(
        run_id=run_id,
        machine=report.machine,
        device=report.device,
        commit=report.base,
        result=report.result,
        seconds=report.seconds,
        compared=report.compared,
        alarms=len(report.failures),
        improvements=len(report.with_verdict(Verdict.IMPROVED)),
        ambiguous=len(report.with_verdict(Verdict.AMBIGUOUS)),
        largest=largest,
    )


def write_run(results: Path, run: SoakRun) -> Path:
    folder = results / run.machine / "soak"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run.run_id}.jsonl"
    with path.open("xb") as file:
        file.write(msgspec.json.encode(run) + b"\n")
    return path


def read_runs(results: Path) -> list[SoakRun]:
    """Every run of every machine, oldest first. Raises UserError naming a file that cannot be read."""
    runs = []
    for path in sorted(results.glob("*/soak/*.jsonl"), key=lambda path: path.name):
        try:
            runs.append(msgspec.json.decode(path.read_bytes(), type=SoakRun))
        except msgspec.DecodeError as error:
            raise UserError(f"{path}: {error}") from error
    return runs


def table(runs: Iterable[SoakRun]) -> str:
    """The tally in Markdown, a row a machine; runs that could not measure are counted apart and prove nothing."""
    machines: dict[str, list[SoakRun]] = {}
    for run in runs:
        machines.setdefault(run.machine, []).append(run)
    if not machines:
        return "No whole-gate A/A run has been recorded yet."
    head = (
        "| machine | runs | failing | could not measure | comparisons | false alarms | false improvements | largest |"
    )
    lines = [head, "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for machine, members in machines.items():
        done = [run for run in members if run.result != "could not measure"]
        largest = max((run.largest.get(metric, 0.0) for run in done for metric in TIMED), default=0.0)
        cells = [
            machine,
            str(len(done)),
            str(sum(run.result == "regressed" for run in done)),
            str(len(members) - len(done)),
            f"{sum(run.compared for run in done):,}",
            str(sum(run.alarms for run in done)),
            str(sum(run.improvements for run in done)),
            f"{largest:.2%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", "Largest: of |ratio − 1| of device times, cold and hot, over all gateable series."])


def update_page(page: Path, runs: Iterable[SoakRun]) -> None:
    """Write the table between the marks of a page. Raises UserError where the page has no marks."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"{page}: the marks {BEGIN} and {END} are not in it")
    page.write_text(f"{before}{BEGIN}\n\n{table(runs)}\n\n{END}{after}", encoding="utf-8")


def soak(project: Path, count: int, gate_arguments: Sequence[str], engine: Callable[[], MeasurePairs]) -> int:
    """Run the gate so many times, each with other inputs; the tally is on disk after each run."""
    results, worst = project / "results", 0
    for number in range(count):
        run_id = gate_command.now()
        with tempfile.TemporaryDirectory(prefix="groundspeed-soak-") as folder:
            path = Path(folder) / "report.json"
            ours = ["--project", str(project), "--aa", "--seed", str(1000 * number), "--json", str(path)]
            status = gate_command.run_with(_parser().parse_args([*ours, *gate_arguments]), engine)
            run = soak_run(run_id, read_report(path))
        write_run(results, run)
        worst = max(worst, status)
        print(f"run {number + 1} of {count}: {run.compared} compared, {run.alarms} false alarms, {run.seconds:.0f} s")
    update_page(project / "docs" / "gating.md", read_runs(results))
    return worst


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", type=Path)
    gate_command.add_arguments(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path)
    parser.add_argument("--runs", type=int, default=1, metavar="N")
    arguments, rest = parser.parse_known_args(argv)
    try:
        if arguments.runs < 1:
            raise UserError(f"--runs {arguments.runs}: expected at least 1")
        narrowed = [] if any(word.split("=")[0] in ("--all", "--only") for word in rest) else ["--all"]
        return soak(find_project(arguments.project).root, arguments.runs, [*rest, *narrowed], gate_command.engine)
    except UserError as error:
        print(f"groundspeed: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
