"""How long each operator of a run will take: from what the same machine needed before, else from what is usual."""

from __future__ import annotations

from collections.abc import Mapping

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
        implementations, cases = extent(one, operator)
        count = implementations * cases
        found[operator] = count * known[operator] if known.get(operator) else start + count * each
    return found


def extent(opened: Run, operator: str) -> tuple[int, int]:
    """How many implementations can be timed here, and how many cases there are; no case of a broken spec."""
    able = len(able_to_time(opened, operator))
    try:
        return able, len(opened.selection.cases(opened.tree.spec(operator)))
    except SpecError:
        return able, 0


def able_to_time(opened: Run, operator: str) -> list[str]:
    """The selected implementations that this device can time.

    On a GPU all but those of libraries that are not installed, on a CPU PyTorch's own and those of some libraries.
    """
    chosen = [one for one in opened.tree.implementations(operator) if opened.selection.includes(one)]
    return [one.name for one in chosen if _can_time(one.backend, opened.device)]


def _can_time(backend: str, device: str) -> bool:
    library = LIBRARIES.get(backend)
    return library.absent(device) is None if library else device == "cuda" or backend == "torch"
