"""What a run is narrowed to, and how it measures: from what is typed or, resumed, from what lies beside its records."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

import msgspec

from groundspeed.errors import UserError
from groundspeed.fleet.cut import Cut, parse_shard
from groundspeed.records import SELECTION_FILE, RecordError, find_records, read_record, write_whole
from groundspeed.selection import chosen_energy, chosen_first_call, chosen_timer


class Narrowing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of ``groundspeed run`` of which a run has one value from beginning to end; empty means all.

    ``shard`` is which part of a larger run it is, as that was cut when it began.
    """

    tier: str
    only: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    timer: str = ""
    energy: bool = False
    first_call: str = ""
    shard: Cut | None = None

    def words(self) -> list[str]:
        """What to type for the same."""
        words = ["--tier", self.tier]
        words += [word for text in self.only for word in ("--only", text)]
        words += [word for text in self.dtypes for word in ("--dtype", text)]
        words += ["--timer", self.timer] if self.timer else []
        words += ["--energy"] if self.energy else []
        words += ["--first-call", self.first_call] if self.first_call else []
        return [*words, "--shard", self.shard.label] if self.shard else words


def narrowing(arguments: argparse.Namespace, results: Path) -> Narrowing:
    """Raises UserError when a run is resumed with other options than it began with."""
    typed = {
        "tier": arguments.tier or "",
        "only": tuple(dict.fromkeys(arguments.only)),
        "dtypes": tuple(dict.fromkeys(part for text in arguments.dtype for part in text.split(",") if part)),
        "timer": arguments.timer or "",
        "energy": arguments.energy,
        "first_call": arguments.first_call or "",
    }
    kept = _kept(results, arguments.resume) if arguments.resume else None
    if kept is not None:
        for name, value in typed.items():
            _check_same(arguments.resume, name, value, getattr(kept, name))
        shard = "{}/{}".format(*parse_shard(arguments.shard)) if arguments.shard is not None else ""
        _check_same(arguments.resume, "shard", shard, kept.shard.label if kept.shard else "")
        return kept
    if arguments.resume and arguments.shard is not None:
        raise UserError(f"run {arguments.resume} did not begin as a shard: leave --shard out, or run without --resume")
    was = _tier_of_records(results, arguments.resume) if arguments.resume else None
    if was and typed["tier"]:
        _check_same(arguments.resume, "tier", typed["tier"], was)
    return Narrowing(
        tier=typed["tier"] or was or "small",
        only=typed["only"],
        dtypes=typed["dtypes"],
        timer=typed["timer"] or chosen_timer(),
        energy=typed["energy"] or chosen_energy(),
        first_call=typed["first_call"] or chosen_first_call(),
    )


def keep(folder: Path, chosen: Narrowing) -> None:
    """Write it beside the records of a run that begins. Raises UserError when that cannot be done.

    A folder that is there already is of a run that began without such a file: of it the whole is not known.
    """
    if folder.exists():
        return
    try:
        write_whole(folder / SELECTION_FILE, msgspec.json.encode(chosen) + b"\n")
    except OSError as error:
        raise UserError(f"no records can be kept in {folder}: {error.strerror}; pass --results DIR") from error


def drop(folder: Path) -> None:
    """Remove what ``keep`` wrote for a run of which nothing else is kept."""
    if folder.is_dir() and {path.name for path in folder.iterdir()} == {SELECTION_FILE}:
        (folder / SELECTION_FILE).unlink()
        folder.rmdir()


def _kept(results: Path, run_id: str) -> Narrowing | None:
    for path in results.glob(f"*/records/*/{SELECTION_FILE}"):
        if path.parent.name == run_id:
            try:
                return msgspec.json.decode(path.read_bytes(), type=Narrowing)
            except (OSError, msgspec.DecodeError) as error:
                raise UserError(
                    f"{path} cannot be read: {error}; delete it, and resume with all its options"
                ) from error
    return None


def _tier_of_records(results: Path, run_id: str) -> str | None:
    """The tier of a run that wrote no selection down, from the first of its records that can be read."""
    for path in find_records(results):
        if path.parent.name == run_id:
            with contextlib.suppress(RecordError):  # named at the end of the run, with the table of the others
                return read_record(path).header.tier
    return None


def _check_same(run_id: str, name: str, typed: object, kept: object) -> None:
    """What is not typed is as it was."""
    same = set(typed) == set(kept) if isinstance(typed, tuple) and isinstance(kept, tuple) else typed == kept
    if typed and not same:
        option = {"dtypes": "dtype", "first_call": "first-call"}.get(name, name)
        was = " ".join(kept) if isinstance(kept, tuple) else kept
        began = f"with --{option} {was}" if was else f"without --{option}"
        raise UserError(f"run {run_id} began {began}: leave --{option} out, or run without --resume")
