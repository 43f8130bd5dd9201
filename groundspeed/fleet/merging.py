"""Shards of one run put together: the records that the run would have left had nobody cut it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from groundspeed.errors import UserError
from groundspeed.fleet.cut import Cut
from groundspeed.records import (
    SELECTION_FILE,
    Environment,
    Header,
    Record,
    RecordError,
    read_record,
    record_path,
    write_record,
    write_whole,
)

_ALIKE = ("device_name", "driver", "cuda", "torch", "triton", "cupy", "nvcc", "python", "os", "groundspeed")
_CUT_APART = "they knew other durations, and were cut apart"


@dataclass(frozen=True)
class Shard:
    """A run that was begun with --shard, as it lies in a folder: ``selection`` is all its file of that name holds."""

    folder: Path
    selection: dict[str, object]
    cut: Cut

    @property
    def run_id(self) -> str:
        return self.folder.name

    @property
    def machine(self) -> str:
        return self.folder.parent.parent.name

    def file(self, operator: str) -> Path:
        """An operator that is spread over GPUs is filed under the machine that has them all, in the same run."""
        results = self.folder.parent.parent.parent
        own = record_path(results, self.machine, self.run_id, operator)
        others = sorted(results.glob(f"*/records/{self.run_id}/{own.name}"))
        return own if own.exists() or not others else others[0]


@dataclass(frozen=True)
class Merged:
    """What was put together: the run's folder, how many records are new in it, and what there is to say."""

    folder: Path
    records: tuple[Record, ...]
    added: int
    shards: tuple[Shard, ...]
    remarks: tuple[str, ...]
    missing: tuple[str, ...]


def find_shards(path: Path) -> list[Shard]:
    """The shards that lie in a folder of results, of a run, or anywhere below one. Raises UserError for none."""
    if not path.is_dir():
        raise UserError(f"{path}: no such folder; name the results folders of shards")
    found = []
    for file in sorted(path.rglob(SELECTION_FILE)):
        selection, cut = _read(file)
        if cut is not None:
            found.append(Shard(file.parent.resolve(), selection, cut))
    if not found:
        raise UserError(f"{path}: holds no shard; type: groundspeed run --shard 1/2 --results {path}")
    return found


def merge(shards: Sequence[Shard], into: Path, partial: bool = False) -> Merged:
    """Write their records as those of one run, which has the id of the shard that began first.

    partial
        Go on without what a shard or an operator lacks, and name it.

    A record that is there already is left as it is. Raises UserError, before anything is written, when the shards are
    not of one run, one is missing or there twice, an operator is missing, or another record lies where one would go.
    """
    _check_alike(shards)
    missing = _missing(shards)
    first = min(shards, key=lambda shard: shard.run_id)
    _check_apart(shards, into)
    records, lacking = _records(shards)
    missing += lacking
    if missing and not partial:
        raise UserError(f"{'; '.join(missing)}; to merge what there is all the same, add --partial")
    remarks = _remarks(shards, records)
    renamed = [_of_run(record, first.run_id) for record in records]
    paths = [record_path(into, one.header.machine, first.run_id, one.header.operator) for one in renamed]
    new = [pair for pair in zip(paths, renamed, strict=True) if not _is_there(*pair)]
    folder = record_path(into, first.machine, first.run_id, "x").parent
    selection = msgspec.json.encode({**first.selection, "shard": None}) + b"\n"
    if not (folder / SELECTION_FILE).exists():
        write_whole(folder / SELECTION_FILE, selection)
    for path, record in new:
        write_record(path, record)
    return Merged(folder, tuple(renamed), len(new), tuple(shards), tuple(remarks), tuple(missing))


def _read(file: Path) -> tuple[dict[str, object], Cut | None]:
    try:
        selection = msgspec.json.decode(file.read_bytes(), type=dict[str, object])
        shard = selection.get("shard")
        return selection, None if shard is None else msgspec.convert(shard, Cut)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UserError(f"{file}: cannot be read as the selection of a run: {error}") from error


def _check_alike(shards: Sequence[Shard]) -> None:
    """All must have been cut from one run: the same options, operators, commit and machine."""
    first = shards[0]
    for other in shards[1:]:
        for what, mine, theirs in (
            ("was measured on", first.machine, other.machine),
            ("is of commit", first.cut.commit[:10] or "none", other.cut.commit[:10] or "none"),
            ("is one of", str(first.cut.count), str(other.cut.count)),
            ("was narrowed by", _options(first), _options(other)),
        ):
            if mine != theirs:
                raise UserError(
                    f"no shards of one run: {_label(first)} {what} {mine}, {_label(other)} {what} {theirs}; "
                    "name the folders of one run's shards"
                )
        if first.cut.inventory.keys() != other.cut.inventory.keys():
            apart = sorted(first.cut.inventory.keys() ^ other.cut.inventory.keys())
            raise UserError(f"{_label(first)} and {_label(other)} differ in what there is: {', '.join(apart)}")
    by_index: dict[int, Shard] = {}
    for shard in shards:
        twin = by_index.setdefault(shard.cut.index, shard)
        if twin is not shard:
            raise UserError(
                f"shard {shard.cut.label} is there twice: {twin.folder} and {shard.folder}; name one of them"
            )
    _check_overlap(shards)


def _check_overlap(shards: Sequence[Shard]) -> None:
    owner: dict[str, Shard] = {}
    for shard in shards:
        for operator in shard.cut.operators:
            other = owner.setdefault(operator, shard)
            if other is not shard:
                why = "" if other.cut.inventory == shard.cut.inventory else f": {_CUT_APART}"
                raise UserError(f"{operator} is in {_label(other)} and in {_label(shard)}{why}; run them again")


def _missing(shards: Sequence[Shard]) -> list[str]:
    """Shards that are not among them; operators that no shard of a whole set has."""
    count = shards[0].cut.count
    absent = [str(index) for index in range(1, count + 1) if index not in {shard.cut.index for shard in shards}]
    if absent:
        return [f"shard {', '.join(absent)} of {count} is missing"]
    nobodys = sorted(set(shards[0].cut.inventory) - {name for shard in shards for name in shard.cut.operators})
    return [f"{', '.join(nobodys)} is in no shard: {_CUT_APART}"] if nobodys else []


def _check_apart(shards: Sequence[Shard], into: Path) -> None:
    """A folder that holds the shards would hold every measurement twice."""
    for shard in shards:
        if shard.folder.parent.parent.parent == into.resolve():
            raise UserError(f"--into {into} holds {_label(shard)} itself; merge into another folder")


def _records(shards: Sequence[Shard]) -> tuple[list[Record], list[str]]:
    """What the shards measured, by operator, and what they lack."""
    found: dict[str, Record] = {}
    lacking = []
    for shard in sorted(shards, key=lambda shard: shard.cut.index):
        absent = [name for name in shard.cut.operators if not shard.file(name).exists()]
        if absent:
            lacking.append(f"{_label(shard)} has no record of {', '.join(absent)}")
        for name in shard.cut.operators:
            if name not in absent:
                found[name] = _record(shard, name)
    return [found[name] for name in sorted(found)], lacking


def _record(shard: Shard, operator: str) -> Record:
    path = shard.file(operator)
    try:
        record = read_record(path)
    except RecordError as error:
        raise UserError(f"{_label(shard)}: {error}") from error
    header = record.header
    said = header.operator, header.machine, header.run_id, header.commit
    expected = operator, path.parent.parent.parent.name, shard.run_id, shard.cut.commit
    if said != expected:
        raise UserError(f"{path}: says it is of {' '.join(said)}, expected {' '.join(expected)}")
    return record


def _of_run(record: Record, run_id: str) -> Record:
    header: Header = msgspec.structs.replace(record.header, run_id=run_id)
    return msgspec.structs.replace(record, header=header)


def _is_there(path: Path, record: Record) -> bool:
    if not path.exists():
        return False
    try:
        same = read_record(path) == record
    except RecordError as error:
        raise UserError(str(error)) from error
    if not same:
        raise UserError(f"{path} is there and holds something else; merge into another folder")
    return True


def _remarks(shards: Sequence[Shard], records: Sequence[Record]) -> list[str]:
    """What is not wrong and yet to be known: runners that differ, and trees that may."""
    remarks = []
    environments = [record.header.environment for record in records]
    for name in _ALIKE:
        values = sorted({_value(environment, name) for environment in environments})
        if len(values) > 1:
            where = [f"{value} ({', '.join(_with(records, name, value))})" for value in values]
            remarks.append(f"runners differ in {name}: {'; '.join(where)}")
    dirty = [str(shard.cut.index) for shard in shards if shard.cut.dirty]
    if dirty:
        remarks.append(
            f"shard {', '.join(dirty)} measured files that differed from the commit; whether alike is not known"
        )
    return remarks


def _value(environment: Environment, name: str) -> str:
    return str(getattr(environment, name)) or "none"


def _with(records: Sequence[Record], name: str, value: str) -> list[str]:
    return [record.header.operator for record in records if _value(record.header.environment, name) == value]


def _options(shard: Shard) -> str:
    kept = {name: value for name, value in shard.selection.items() if name != "shard" and value}
    return ", ".join(f"{name} {_text(value)}" for name, value in sorted(kept.items())) or "nothing"


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _label(shard: Shard) -> str:
    return f"shard {shard.cut.label} ({shard.run_id})"
