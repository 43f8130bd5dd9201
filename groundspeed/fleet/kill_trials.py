"""Kill any one process of a fleet at any moment, and see that nothing is lost and nothing is there twice.

python -m groundspeed.fleet.kill_trials --trials 50 --seed 0

Each trial runs synthetic operators on a cluster of this machine and kills one process -9 (the driver, a station, a
node's raylet, an agent, the head's server, a log monitor: kinds equally often) at a moment drawn from the seed, most
often while operators are measured. The driver is started again where it ended, on a new cluster where the old one is
broken. Then the store is looked at.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from groundspeed import interrupts
from groundspeed.fleet.ledger import read_ledgers
from groundspeed.fleet.local_cluster import LocalCluster, descendants
from groundspeed.fleet.synthetic import MACHINE
from groundspeed.records import RecordError, read_record, record_path

KINDS = {
    "driver": "groundspeed.fleet.synthetic",
    "station": "ray::Station",
    "raylet": "/raylet/raylet ",
    "head": "/gcs/gcs_server ",
    "environment agent": "ray::RuntimeEnvAgent",
    "dashboard agent": "ray::DashboardAgent",
    "autoscaler": "/_private/monitor.py ",
    "log monitor": "/log_monitor.py ",
}
NODES = 3
OPERATORS = 12
SECONDS = (0.9, 0.5, 0.7)
_RUN = "trial"
_MOST_STARTS = 5
_EARLY = 10.0  # seconds for which a process that is not there yet is waited for
_PATIENCE = 90.0  # seconds for one start of the driver


@dataclass(frozen=True)
class Moment:
    """So many seconds after the driver was started, or after the first operator was begun."""

    from_start: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s after the {'start' if self.from_start else 'first operator'}"


@dataclass(frozen=True)
class Trial:
    """What was killed when, how often the driver was started, and what was wrong afterwards: nothing."""

    number: int
    kind: str
    moment: Moment
    killed: bool
    starts: int
    seconds: float
    moved: int
    faults: tuple[str, ...]


def run_trials(trials: int, seed: int, say: Callable[[str], object], nodes: int = NODES) -> list[Trial]:
    """All of them, one after another; a cluster serves until something of it was killed."""
    random_ = random.Random(seed)
    cluster: LocalCluster | None = None
    found = []
    try:
        for number in range(trials):
            # Kinds in a shuffled order, all of them before any comes again; the rest by chance.
            if number % len(KINDS) == 0:
                order = random_.sample(sorted(KINDS), len(KINDS))
            kind = order[number % len(KINDS)]
            moment = Moment(random_.random() < 0.25, random_.uniform(0.0, 3.0))
            cluster = cluster or _cluster(nodes)
            with tempfile.TemporaryDirectory(prefix="groundspeed-trial-") as folder, contextlib.ExitStack() as ends:
                trial, cluster = _trial(number, kind, moment, random_, Path(folder), cluster, ends)
            found.append(trial)
            say(describe(trial))
    finally:
        if cluster is not None:
            cluster.close()
    return found


def describe(trial: Trial) -> str:
    what = f"{trial.kind} killed {trial.moment}" if trial.killed else f"no {trial.kind} was there to kill"
    ending = "; ".join(trial.faults) or "nothing lost, nothing twice"
    costs = f"driver started {trial.starts}×, {trial.moved} moved, {trial.seconds:.0f} s"
    return f"{trial.number:3}  {what}: {costs}: {ending}"


def faults_in(results: Path) -> list[str]:
    """What is wrong with a store after a trial: an operator missing, torn or twice, or kept twice by the ledger."""
    faults = []
    for number in range(OPERATORS):
        name = f"op_{number:03}"
        path = record_path(results, MACHINE, _RUN, name)
        try:
            if read_record(path).header.operator != name:
                faults.append(f"{name} is another's record")
        except RecordError as error:
            faults.append(f"{name} is lost: {error}")
    files = [path.name for path in (results / MACHINE / "records" / _RUN).glob("*.jsonl.gz")]
    if len(files) != OPERATORS:
        faults.append(f"{len(files)} records of {OPERATORS} operators")
    kept = [line.operator for line in read_ledgers(results) if line.outcome == "kept"]
    faults += [f"{name} was kept {kept.count(name)} times" for name in sorted(set(kept)) if kept.count(name) > 1]
    return faults


def _cluster(nodes: int) -> LocalCluster:
    """A cluster. Ray's own handler of SIGTERM is taken back: it would end the trials with the status of a fault."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        return LocalCluster(nodes)
    finally:
        signal.signal(signal.SIGTERM, before)


def _trial(
    number: int,
    kind: str,
    moment: Moment,
    random_: random.Random,
    folder: Path,
    cluster: LocalCluster,
    ends: contextlib.ExitStack,
) -> tuple[Trial, LocalCluster | None]:
    """One of them; what it starts ends with ``ends``."""
    began = time.monotonic()
    driver = _start(cluster, folder, ends)
    _await(moment, folder / "log")
    victim = _victim(kind, random_)
    if victim is not None:
        os.kill(victim, signal.SIGKILL)
    starts, damaged = 1, victim is not None and kind not in ("driver", "station")
    while _end(driver) != 0 and starts < _MOST_STARTS:
        if damaged:
            nodes = len(cluster.nodes)
            cluster.close()
            cluster, damaged = _cluster(nodes), False
        driver = _start(cluster, folder, ends)
        starts += 1
    lines = read_ledgers(folder)
    moved = sum(line.outcome in ("died", "left", "unfit", "raised") for line in lines)
    faults = faults_in(folder)
    faults += [f"the driver did not end well in {starts} starts"] if driver.returncode else []
    if starts > 1 and kind in ("station", "autoscaler", "log monitor"):
        faults.append(f"the driver ended with the {kind}: {(folder / 'log').read_text()[-300:]}")
    seconds = time.monotonic() - began
    if damaged:
        cluster.close()
    trial = Trial(number, kind, moment, victim is not None, starts, seconds, moved, tuple(faults))
    return trial, None if damaged else cluster


def _start(cluster: LocalCluster, folder: Path, ends: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    words = ["--fleet", cluster.address, "--results", str(folder), "--run", _RUN, "--operators", str(OPERATORS)]
    with (folder / "log").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "groundspeed.fleet.synthetic", *words, "--seconds", *map(str, SECONDS)],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        )
    ends.callback(_kill, driver)  # an interrupt of this process alone would leave it at work
    return driver


def _await(moment: Moment, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not moment.from_start and b"begun on" not in log.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(moment.seconds)


def _victim(kind: str, random_: random.Random) -> int | None:
    """One of these processes, of those that this trial started itself; the first that there is, if it is early."""
    deadline = time.monotonic() + _EARLY
    while time.monotonic() < deadline:
        mine = sorted(pid for pid, line in descendants(os.getpid()).items() if KINDS[kind] in f"{line} ")
        if mine:
            return random_.choice(mine)
        time.sleep(0.05)
    return None


def _end(driver: subprocess.Popen[bytes]) -> int:
    try:
        return driver.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        return _kill(driver)


def _kill(driver: subprocess.Popen[bytes]) -> int:
    driver.kill()
    return driver.wait()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(words)
    trials = run_trials(arguments.trials, arguments.seed, lambda line: print(line, flush=True))
    faulty = [trial for trial in trials if trial.faults]
    killed = sum(trial.killed for trial in trials)
    print(f"{len(trials)} trials, {killed} processes killed, {len(faulty)} with a fault")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(interrupts.status_of(main))
