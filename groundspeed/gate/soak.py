"""Run the whole gate on identical code again and again, and keep count of its false alarms.

python -m groundspeed.gate.soak --runs 3 --budget 9m --skip 'torch_compile*' --tier core
python -m groundspeed.gate.soak --runs 3 --sample 1 --skip 'torch_compile*' --tier core
python -m groundspeed.gate.soak --part 1/3 --sample 4 --skip 'torch_compile*' --tier core
python -m groundspeed.gate.soak --table

A whole run is every operator of the project, one after the other; a run that its budget cut short goes on in the next
sitting. With --sample a run takes some implementations of each operator, drawn anew for every run. With --part K/N it
takes the K-th of every N operators: N runs, each begun anew, share them all out. What was judged is kept in
results/<machine>/soak/, and the table of all of it stands in docs/gating.md. All other options are the gate's own.
Exit status: 0 no alarm, 1 at least one, 2 an operator could not be measured, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from groundspeed import interrupts
from groundspeed.backends.libraries import LIBRARIES
from groundspeed.errors import UserError
from groundspeed.gate import gate_command, soak_record
from groundspeed.gate.config import parse_duration
from groundspeed.gate.expected import expected_seconds
from groundspeed.gate.paired import MeasurePairs
from groundspeed.gate.report import read_report
from groundspeed.gate.soak_record import SoakPiece, is_whole, piece_of, seconds_of, whole_runs
from groundspeed.machine import chosen_device, machine_name
from groundspeed.project import Project, find_project
from groundspeed.tree import Tree


@dataclass(frozen=True)
class Part:
    """Every ``of``-th operator from the ``number``-th on; by default all."""

    number: int = 1
    of: int = 1

    def of_operators(self, operators: Sequence[str]) -> tuple[str, ...]:
        return tuple(operators[self.number - 1 :: self.of])

    def __str__(self) -> str:
        return f"{self.number}/{self.of}" if self.of > 1 else ""


@dataclass(frozen=True)
class Sitting:
    """What this call of the command does: so many whole runs more, until the deadline."""

    project: Project
    machine: str
    device: str
    runs: int
    skip: tuple[str, ...]
    sample: int | None
    part: Part
    deadline: float
    gate_arguments: tuple[str, ...]
    engine: Callable[[], MeasurePairs]

    def soak(self) -> int:
        """Finish what an earlier sitting left, then begin runs of its own. Returns the worst exit status."""
        name, worst, took = gate_command.now(), 0, list[float]()
        known = soak_record.read(self.project.results)
        for run, operators in self._runs(known, name):
            done = {piece.operator for piece in known if piece.run == run and piece.measured}
            for operator in (each for each in operators if each not in done):
                expected = expected_seconds(seconds_of(known, self.machine, operator), took)
                if time.monotonic() + expected >= self.deadline:
                    print(f"the budget is spent within run {run}, before {operator}: run it again to go on")
                    return worst
                began = time.monotonic()
                status, piece = self._judge(run, operators, operator, known)
                soak_record.append(self.project.results, name, piece)
                known.append(piece)
                worst = max(worst, status)
                took.append(time.monotonic() - began)
                print(_line(piece), flush=True)
        return worst

    def _runs(self, known: Iterable[SoakPiece], name: str) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Name and operators of each run to do: first the last one, where it is of the same operators and not whole."""
        operators = self.part.of_operators(Tree(self.project.root / "impls").operators())
        mine = whole_runs(each for each in known if each.machine == self.machine and each.part == str(self.part))
        last = next(reversed(mine), None)
        left = self.runs
        if last is not None and mine[last][0].operators == operators and not is_whole(mine[last]):
            yield last, operators
            left -= 1
        for number in range(left):
            yield f"{name}-{number}", operators

    def _judge(
        self, run: str, operators: Sequence[str], operator: str, known: Iterable[SoakPiece]
    ) -> tuple[int, SoakPiece]:
        """One operator against itself, on other inputs than in any run before; the gate's own output is not shown."""
        seed = 1000 * len({piece.run for piece in known if piece.machine == self.machine and piece.run != run})
        with tempfile.TemporaryDirectory(prefix="groundspeed-soak-") as folder:
            path = Path(folder) / "report.json"
            words = ["--project", str(self.project.root), "--aa", "--seed", str(seed), "--json", str(path)]
            words += [word for each in self._chosen(run, operator) for word in ("--only", each)]
            with contextlib.redirect_stdout(io.StringIO()):
                status = gate_command.run_with(_gate_parser().parse_args([*words, *self.gate_arguments]), self.engine)
            report = read_report(path)
        return status, piece_of(run, str(self.part), operators, operator, self.machine, report)

    def _chosen(self, run: str, operator: str) -> list[str]:
        """The operator's implementations to judge: a run that goes on in another sitting has drawn the same ones."""
        found = Tree(self.project.root / "impls").implementations(operator)
        kept = [one for one in found if not any(fnmatchcase(one.name, each) for each in self.skip)]
        if self.sample is not None:
            kept = [one for one in kept if not self._lacks(one.backend)]
            kept = random.Random(f"{run} {operator}").sample(kept, min(self.sample, len(kept)))
        return [f"{operator}/{one.name}" for one in kept]

    def _lacks(self, backend: str) -> bool:
        """Whether this is a library that cannot be timed here: a draw of it would be a blank."""
        return backend in LIBRARIES and LIBRARIES[backend].absent(self.device) is not None


def _line(piece: SoakPiece) -> str:
    verdicts = f"{piece.alarms} regressed, {piece.improvements} improved, {piece.ambiguous} ambiguous"
    told = verdicts if piece.measured else piece.summary
    return f"{piece.operator}: {piece.compared} compared, {told}, {piece.seconds:.0f} s"


def _gate_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", type=Path)
    gate_command.add_arguments(parser)
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m groundspeed.gate.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--project", type=Path)
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="whole runs, one that was begun included")
    parser.add_argument("--budget", default="24h", metavar="TIME", help="begin no operator that should end after it")
    parser.add_argument("--skip", action="append", default=[], metavar="PATTERN", help="implementations to leave out")
    parser.add_argument("--sample", type=int, metavar="N", help="so many implementations of each operator, drawn a run")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="the K-th of every N operators alone")
    parser.add_argument("--table", action="store_true", help="write docs/gating.md's table, measure nothing")
    return parser


def main(argv: Sequence[str] | None = None, engine: Callable[[], MeasurePairs] = gate_command.engine) -> int:
    arguments, rest = _parser().parse_known_args(argv)
    return interrupts.status_of(lambda: _run(arguments, rest, engine), gate_command.KEPT)


def _run(arguments: argparse.Namespace, rest: Sequence[str], engine: Callable[[], MeasurePairs]) -> int:
    try:
        project = find_project(arguments.project)
        try:
            with gate_command.one_engine(engine) as found:
                status = 0 if arguments.table else _sitting(arguments, project, rest, found).soak()
        except KeyboardInterrupt:
            _write_table(project)
            raise
        _write_table(project)
        return status
    except UserError as error:
        print(f"groundspeed: {error}", file=sys.stderr)
        return 2


def _write_table(project: Project) -> None:
    soak_record.update_page(project.root / "docs" / "gating.md", soak_record.read(project.results))


def _sitting(
    arguments: argparse.Namespace, project: Project, rest: Sequence[str], engine: Callable[[], MeasurePairs]
) -> Sitting:
    if arguments.runs < 1:
        raise UserError(f"--runs {arguments.runs}: expected at least 1")
    if arguments.sample is not None and arguments.sample < 1:
        raise UserError(f"--sample {arguments.sample}: expected at least 1")
    for word in rest:
        if word.split("=")[0] in ("--all", "--only", "--base", "--head", "--aa"):
            raise UserError(f"{word}: every operator is judged against itself here; --skip leaves implementations out")
    given = _gate_parser().parse_args(rest)
    device = given.device or chosen_device()
    return Sitting(
        project=project,
        machine=machine_name(device),
        device=device,
        runs=arguments.runs,
        skip=tuple(arguments.skip),
        sample=arguments.sample,
        part=_part(arguments.part),
        deadline=time.monotonic() + parse_duration(arguments.budget, "--budget"),
        gate_arguments=tuple(rest),
        engine=engine,
    )


def _part(text: str) -> Part:
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise UserError(f"--part {text}: expected K/N with K from 1 to N, as 1/3")
    return Part(int(number), int(of))


if __name__ == "__main__":
    sys.exit(main())
