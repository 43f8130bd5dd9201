"""A run cut into shards by operator: the longest first, each to the shard that has least to do so far."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from groundspeed.errors import UserError

MOST = 10_000


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shard of a run, with all that its sisters must agree on.

    inventory
        operator → the seconds it was expected to take, of every operator of the whole run.
    operators
        Those of this shard, the longest first.
    commit, dirty
        Of the files that are measured.
    """

    index: int
    count: int
    inventory: dict[str, float]
    operators: tuple[str, ...]
    commit: str = ""
    dirty: bool = False

    @property
    def label(self) -> str:
        return f"{self.index}/{self.count}"


def parse_shard(text: str) -> tuple[int, int]:
    """``2/3`` as (2, 3). Raises UserError for anything but a number from 1 to n and n."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text.strip())
    index, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= index <= count <= MOST:
        raise UserError(f"--shard {text}: expected i/n with i from 1 to n, such as 1/4")
    return index, count


def longest_first(expected: Mapping[str, float]) -> list[str]:
    """Names by falling seconds; equal ones by name, so that the order is the same everywhere."""
    return sorted(expected, key=lambda name: (-expected[name], name))


def shares(expected: Mapping[str, float], count: int) -> tuple[tuple[str, ...], ...]:
    """Operators for each of so many shards: Graham's longest processing time first.

    The longest shard takes at most 4/3 - 1/(3 count) of the best possible (R. L. Graham, Bounds on multiprocessing
    timing anomalies, SIAM J. Appl. Math. 17, 1969, theorem 2).
    """
    loads = [0.0] * count
    found: list[list[str]] = [[] for _ in range(count)]
    for name in longest_first(expected):
        least = min(range(count), key=lambda shard: (loads[shard], shard))
        loads[least] += expected[name]
        found[least].append(name)
    return tuple(map(tuple, found))


def cut(expected: Mapping[str, float], index: int, count: int, commit: str, dirty: bool) -> Cut:
    """Shard ``index`` of ``count``, counted from 1."""
    inventory = {name: round(expected[name], 3) for name in sorted(expected)}
    return Cut(index, count, inventory, shares(inventory, count)[index - 1], commit, dirty)
