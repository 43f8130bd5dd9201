"""How long each operator of a run will take: from what the same machine needed before, else from what is usual."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groundspeed.backends.libraries import LIBRARIES
from groundspeed.report.stored import latest_records
from groundspeed.session import Run
from groundspeed.tree import SpecError


def expected(opened: Run, narrowed: Mapping[str, Run], apart_from: str = "") -> dict[str, float]:
    """operator → seconds it will take, from the last run of this machine and tier, else from what is usual.

    ``apart_from`` is a commit whose records do not count: shards of one run, of which some may have stored theirs,
    must all expect the same.
    """
    known = {}
    tier = opened.selection.tier
    records, _ = latest_records(opened.results, opened.machine, [tier], apart_from)  # an estimate needs no more
    for record in records:
        timed = sum(entry.status == "ok" for entry in record.measurements)
        known[record.header.operator] = record.footer.seconds.get("total", 0.0) / max(timed, 1)
    start, each = (15.0, 1.0) if opened.device == "cuda" else (1.0, 2.5)
    found = {}
    for operator, one in narrowed.items():
        # Whatever this host lacks of libraries: runners that share a run out must all cut it alike.
        count = len(_timed(one, operator, _is_for)) * _cases(one, operator)
        found[operator] = count * known[operator] if known.get(operator) else start + count * each
    return found


def extent(opened: Run, operator: str) -> tuple[int, int]:
    """How many implementations can be timed here, and how many cases there are; no case of a broken spec."""
    return len(able_to_time(opened, operator)), _cases(opened, operator)


def _cases(opened: Run, operator: str) -> int:
    try:
        return len(opened.selection.cases(opened.tree.spec(operator)))
    except SpecError:
        return 0


def able_to_time(opened: Run, operator: str) -> list[str]:
    """The selected implementations that can be timed here: not those of libraries that are not installed.

    On a GPU all others, on a CPU PyTorch's own and those of some libraries.
    """
    return _timed(opened, operator, _is_able)


def _timed(opened: Run, operator: str, able: Callable[[str, str], bool]) -> list[str]:
    chosen = [one for one in opened.tree.implementations(operator) if opened.selection.includes(one)]
    return [one.name for one in chosen if able(one.backend, opened.device)]


def _is_for(backend: str, device: str) -> bool:
    """Whether a back end is timed on such a device at all."""
    library = LIBRARIES.get(backend)
    return device in library.devices if library else device == "cuda" or backend == "torch"


def _is_able(backend: str, device: str) -> bool:
    library = LIBRARIES.get(backend)
    return _is_for(backend, device) and (library is None or library.absent(device) is None)
