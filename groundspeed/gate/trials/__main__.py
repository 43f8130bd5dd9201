"""Plant slowdowns of known size in real implementations, and count which of them the gate finds.

python -m groundspeed.gate.trials --rounds 2 --budget 9m
python -m groundspeed.gate.trials --table

A scratch clone of the project gets commits that slow down real .cu, Triton, CuPy and PyTorch files by 2, 3, 5 and
10 %; groundspeed gate looks for them through the diff; what each truly adds is measured apart. What was finished is
kept in results/<machine>/gate-trials/, and another run goes on from there. The table in docs/gating.md is written
from all of it. Exit status: 0 also where a budget ended the run early, 2 where something cannot be planted or measured,
130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from groundspeed import interrupts
from groundspeed.errors import UserError
from groundspeed.gate import gate_command
from groundspeed.gate.config import parse_duration
from groundspeed.gate.expected import expected_seconds
from groundspeed.gate.paired import MeasurePairs
from groundspeed.gate.trials import catalog
from groundspeed.gate.trials.record import Done, Line, Point, append, read, trials_folder
from groundspeed.gate.trials.scratch import Scratch, head_of, scratch_clone
from groundspeed.gate.trials.summary import operator_line, update_page
from groundspeed.gate.trials.trial import OperatorTrial
from groundspeed.machine import chosen_device, machine_name
from groundspeed.project import Project, find_project


@dataclass(frozen=True)
class Campaign:
    """A run of the trials: which operators, how many rounds, and until when."""

    project: Project
    machine: str
    device: str
    operators: tuple[str, ...]
    rounds: int
    deadline: float
    engine: Callable[[], MeasurePairs]

    def run(self, path: Path) -> list[tuple[int, str]]:
        """Do what is left as far as the time goes, and keep it in ``path``; returns what is left then."""
        kept: list[Line] = [line for lines in read(self.project.results, self.machine).values() for line in lines]
        left = self._left(kept)
        took: list[float] = []
        with scratch_clone(self.project.root) as scratch:
            while left and time.monotonic() + self._expected(left[0][1], kept, took) < self.deadline:
                began = time.monotonic()
                turn, operator = left[0]
                lines = self._one(scratch, turn, operator, kept)
                append(path, lines)
                kept += lines
                print(operator_line(lines), flush=True)
                took.append(time.monotonic() - began)
                left = left[1:]
        return left

    def _left(self, kept: Iterable[Line]) -> list[tuple[int, str]]:
        done = {(line.round, line.operator) for line in kept if isinstance(line, Done)}
        wanted = [(turn, operator) for turn in range(self.rounds) for operator in self.operators]
        return [each for each in wanted if each not in done]

    @staticmethod
    def _expected(operator: str, kept: Iterable[Line], took: Sequence[float]) -> float:
        before = [line.seconds for line in kept if isinstance(line, Done) and line.operator == operator]
        return expected_seconds(before, took)

    def _one(self, scratch: Scratch, turn: int, operator: str, kept: Iterable[Line]) -> list[Line]:
        with tempfile.TemporaryDirectory(prefix="groundspeed-trial-") as folder:
            return OperatorTrial(
                operator=operator,
                plants=catalog.plants_of(operator),
                round=turn,
                shift=turn + catalog.OPERATORS.index(operator),
                scratch=scratch,
                engine=self.engine,
                device=self.device,
                commit=head_of(self.project.root),
                folder=Path(folder),
                points=[line for line in kept if isinstance(line, Point)],
                say=lambda text: print(text, file=sys.stderr, flush=True),
            ).run()


def main(argv: Sequence[str] | None = None, engine: Callable[[], MeasurePairs] = gate_command.engine) -> int:
    arguments = _parser().parse_args(argv)
    return interrupts.status_of(lambda: _run_or_say_why(arguments, engine), gate_command.KEPT)


def _run_or_say_why(arguments: argparse.Namespace, engine: Callable[[], MeasurePairs]) -> int:
    try:
        with gate_command.one_engine(engine) as found:
            return _run(arguments, found)
    except UserError as error:
        print(f"groundspeed: {error}", file=sys.stderr)
        return 2


def _run(arguments: argparse.Namespace, engine: Callable[[], MeasurePairs]) -> int:
    project = find_project(arguments.project)
    page = project.root / "docs" / "gating.md"
    if arguments.table:
        update_page(page, read(project.results))
        return 0
    device = arguments.device or chosen_device()
    machine = machine_name(device)
    budget = parse_duration(arguments.budget, "--budget")
    campaign = Campaign(
        project, machine, device, _chosen(arguments.only), arguments.rounds, time.monotonic() + budget, engine
    )
    path = trials_folder(project.results, machine) / f"{gate_command.now()}.jsonl.gz"
    try:
        left = campaign.run(path)
    except KeyboardInterrupt:
        update_page(page, read(project.results))
        raise
    update_page(page, read(project.results))
    if left:
        print(f"not done yet: {', '.join(f'{name} of round {turn}' for turn, name in left)}; run it again to go on")
    return 0


def _chosen(only: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in only if name not in catalog.OPERATORS]
    if unknown:
        raise UserError(f"--only {unknown[0]}: nothing is planted there: there are {', '.join(catalog.OPERATORS)}")
    return tuple(name for name in catalog.OPERATORS if not only or name in only)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m groundspeed.gate.trials",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--project", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"))
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="in each, sizes move on to other series")
    parser.add_argument("--only", action="append", default=[], metavar="OPERATOR")
    parser.add_argument("--budget", default="1h", metavar="TIME", help="begin no operator that should end after it")
    parser.add_argument("--table", action="store_true", help="write docs/gating.md's table, measure nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
