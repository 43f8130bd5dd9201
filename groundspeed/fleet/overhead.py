"""What spreading the suite costs by itself, measured on this machine: ``python -m groundspeed.fleet.overhead``.

Prints the table of docs/fleet.md: synthetic operators over local Ray nodes against the shortest time that they could
take, and cutting a run into shards and merging them for as many operators as the project has.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from groundspeed import interrupts
from groundspeed.fleet.cut import cut, shares
from groundspeed.fleet.local_cluster import local_cluster
from groundspeed.fleet.merging import find_shards, merge
from groundspeed.records import SELECTION_FILE, find_records, read_record, record_path, write_record

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class FleetCost:
    """One synthetic run. Seconds."""

    workers: int
    operators: int
    ideal: float
    makespan: float
    opening: float  # from asking for stations to the first operator handed out
    whole: float  # of the driver's process, its imports too

    @property
    def efficiency(self) -> float:
        return self.ideal / self.makespan


@dataclass(frozen=True)
class ShardCost:
    """Cutting a run and merging its shards. Seconds."""

    operators: int
    megabytes: float
    cutting: float
    merging: float


def fleet_cost(address: str, workers: int, operators: int, seconds: float) -> FleetCost:
    """Run synthetic operators on a cluster. Raises RuntimeError when that fails."""
    with tempfile.TemporaryDirectory(prefix="groundspeed-overhead-") as folder:
        words = ["--fleet", address, "--results", folder, "--run", "r", "--operators", str(operators)]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "groundspeed.fleet.synthetic", *words, "--seconds", str(seconds)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        whole = time.monotonic() - began
        found = re.fullmatch(r"([\d.]+) of ([\d.]+)\n", done.stdout)
        if done.returncode or found is None or len(find_records(Path(folder))) != operators:
            raise RuntimeError(f"the synthetic run failed: {done.stderr[-400:]}")
    ideal = max(sum(seconds for _ in share) for share in shares({str(n): seconds for n in range(operators)}, workers))
    return FleetCost(workers, operators, ideal, float(found[1]), float(found[2]) - float(found[1]), whole)


def shard_cost(count: int, records: list[Path]) -> ShardCost:
    """Cut a run of these records' operators, lay its shards down, and merge them; only cutting and merging is timed."""
    kept = [read_record(path) for path in records]
    expected = {record.header.operator: record.footer.seconds.get("total", 1.0) for record in kept}
    first = kept[0].header
    with tempfile.TemporaryDirectory(prefix="groundspeed-overhead-") as folder:
        results = [Path(folder) / f"shard-{index}" for index in range(count)]
        began = time.monotonic()
        cuts = [cut(expected, index + 1, count, first.commit, False) for index in range(count)]
        cutting = (time.monotonic() - began) / count
        for index, (path, part) in enumerate(zip(results, cuts, strict=True)):
            where = record_path(path, first.machine, f"run-{index}", "x").parent
            where.mkdir(parents=True)
            (where / SELECTION_FILE).write_bytes(msgspec.json.encode({"tier": first.tier, "shard": part}))
            for record in kept:
                if record.header.operator in part.operators:
                    header = msgspec.structs.replace(record.header, run_id=f"run-{index}", commit=first.commit)
                    target = record_path(path, first.machine, header.run_id, header.operator)
                    write_record(target, msgspec.structs.replace(record, header=header))
        began = time.monotonic()
        done = merge([shard for path in results for shard in find_shards(path)], Path(folder) / "all")
        merging = time.monotonic() - began
        size = sum(path.stat().st_size for path in find_records(Path(folder) / "all"))
    return ShardCost(len(done.records), size / 2**20, cutting, merging)


def table(fleet: list[FleetCost], shards: ShardCost) -> str:
    """Markdown."""
    lines = ["| local workers | 1-second operators | ideal | took | of ideal | opening the stations | whole process |"]
    lines.append("|---:|---:|---:|---:|---:|---:|---:|")
    for one in fleet:
        cells = [str(one.workers), str(one.operators), f"{one.ideal:.1f} s", f"{one.makespan:.2f} s"]
        cells += [f"{one.efficiency:.1%}".replace("%", " %"), f"{one.opening:.1f} s", f"{one.whole:.1f} s"]
        lines.append(f"| {' | '.join(cells)} |")
    sharding = (
        f"Cutting a run of {shards.operators} operators took {shards.cutting * 1e6:.0f} µs a shard, and merging its "
        f"shards ({shards.megabytes:.1f} MB of records) {shards.merging:.2f} s."
    )
    return "\n".join([*lines, "", sharding])


def newest_records(results: Path) -> list[Path]:
    """The records of each operator's newest run of one machine, whichever has most."""
    by_machine: dict[str, dict[str, Path]] = {}
    for path in find_records(results):
        by_machine.setdefault(path.parent.parent.parent.name, {})[path.name] = path
    return sorted(max(by_machine.values(), key=len, default={}).values())


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="whose records are cut and merged")
    arguments = parser.parse_args(words)
    with local_cluster(4) as cluster:
        fleet = [fleet_cost(cluster.address, 4, operators, 1.0) for operators in (12, 40)]
    print(table(fleet, shard_cost(4, newest_records(arguments.results))))
    return 0


if __name__ == "__main__":
    sys.exit(interrupts.status_of(main))
