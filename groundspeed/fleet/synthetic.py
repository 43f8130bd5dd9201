"""A fleet's work that only takes time: what the fleet itself costs, and what it does when parts of it are killed.

python -m groundspeed.fleet.synthetic --fleet ADDRESS --results DIR --run ID --operators 12 --seconds 1

works through Ray as ``groundspeed run --fleet`` does: the same driver, stations, store and ledger. Each operator sleeps
so many seconds and leaves a record of no measurement. Printed are the seconds from the first operator handed out to the
last one kept, and those since the stations were asked for.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec

from groundspeed import interrupts
from groundspeed.errors import UserError
from groundspeed.fleet.connect import connected
from groundspeed.fleet.driver import Driver, Limits
from groundspeed.fleet.ledger import Ledger
from groundspeed.fleet.store import add_once
from groundspeed.fleet.view import view
from groundspeed.fleet.work import About, Piece, Tell, Unfit
from groundspeed.records import Environment, Footer, Header, record_path

MACHINE = "synthetic"


@dataclass(frozen=True)
class Sleep:
    """An operator that takes so many seconds. ``loses`` is a file: the station that finds it there is unfit."""

    operator: str
    run: str
    seconds: float
    loses: str = ""


class SleepingBench:
    """Sleeps, and writes records that hold no measurement."""

    def __init__(self, argument: object, seat: str) -> None:
        self._machine, self._where = str(argument), seat.partition("/")[0]

    def about(self) -> About:
        place = f"{socket.gethostname()} {self._where} {os.environ.get('CUDA_VISIBLE_DEVICES', '')}".strip()
        return About(
            host=socket.gethostname(), machine=self._machine, place=place, label=place, python=platform.python_version()
        )

    def work(self, order: object, tell: Tell) -> bytes:
        """One record file."""
        assert isinstance(order, Sleep)
        began = monotonic()
        while (spent := monotonic() - began) < order.seconds:
            tell("sleeping", spent / order.seconds)
            if order.loses and Path(order.loses).exists():
                os.unlink(order.loses)
                raise Unfit("the GPU has fallen off the bus")
            time.sleep(min(0.05, order.seconds - spent))
        environment = Environment(device="cpu", device_name="none", python=platform.python_version(), os=sys.platform)
        header = Header(
            run_id=order.run,
            operator=order.operator,
            machine=self._machine,
            started=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
            environment=environment,
        )
        lines = [msgspec.json.encode(part) for part in (header, Footer(0, {"total": order.seconds}))]
        return gzip.compress(b"\n".join(lines) + b"\n", mtime=0)


@dataclass(frozen=True)
class Sleeping:
    """The work of a synthetic run."""

    results: Path
    run: str
    seconds: tuple[float, ...]
    loses: str = ""

    def pieces(self, about: About) -> Iterable[Piece]:
        for number, seconds in enumerate(self.seconds):
            name = f"op_{number:03}"
            if not record_path(self.results, about.machine, self.run, name).exists():
                yield Piece(name, about.machine, seconds, Sleep(name, self.run, seconds, self.loses))

    def is_done(self, piece: Piece) -> bool:
        return record_path(self.results, piece.machine, self.run, piece.name).exists()

    def keep(self, piece: Piece, result: object) -> bool:
        assert isinstance(result, bytes)
        return add_once(record_path(self.results, piece.machine, self.run, piece.name), result)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleet", required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--operators", type=int, default=12)
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0], help="of each operator, in turns")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what a station takes of its node")
    parser.add_argument("--loses", default="", help="a file that whichever station finds it first loses its GPU by")
    arguments = parser.parse_args(words)
    seconds = tuple(arguments.seconds[number % len(arguments.seconds)] for number in range(arguments.operators))
    work = Sleeping(arguments.results, arguments.run, seconds, arguments.loses)
    ledger = Ledger(arguments.results, arguments.run, "run", "", "")
    try:
        with connected(arguments.fleet) as connection:
            from groundspeed.fleet.ray_stations import RayStations

            print(f"on {connection.where}", file=sys.stderr)
            stations = RayStations(SleepingBench, MACHINE, arguments.device, arguments.operators, {})
            try:
                began = monotonic()
                done = Driver(stations, work, ledger, view(sys.stderr), Limits(settle=5.0)).run()
                print(f"{done.makespan:.3f} of {monotonic() - began:.3f}")
            finally:
                stations.close()
    except UserError as error:
        print(f"groundspeed: {error}", file=sys.stderr)
        return 2
    for move in done.moves:
        print(f"moved {move.name} from {move.source} to {move.to or 'nowhere'}: {move.why}", file=sys.stderr)
    for problem in done.problems.values():
        print(f"groundspeed: {problem}", file=sys.stderr)
    return connection.leave(2 if done.problems else 0)


if __name__ == "__main__":
    sys.exit(interrupts.status_of(main))
