"""Outputs of the timed calls themselves, kept for the referee."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, overload

from groundspeed.measure.timers.base import Run

_WATCHED_BYTES = {"cuda": 8 << 30, "cpu": 1 << 30}


def watchable(output_bytes: int, count: int, device: str) -> bool:
    """Whether three outputs of each of ``count`` runs can be held at once: a call's, a cold and a hot one."""
    return 3 * output_bytes * count <= _WATCHED_BYTES[device]


class Witnesses(Sequence[Run]):
    """Runs for a timer; of each, the outputs of one round drawn at random are kept.

    A timer asks for a run once a round, outside its intervals. In a round that is kept it gets a run that remembers
    what it returned (twice, where a round calls it cold and hot); in every other one it gets the bare run, so that
    watching costs nothing. Which round is kept is drawn anew in each (reservoir sampling), so all are equally likely
    however many there will be.
    """

    def __init__(self, runs: Sequence[Run], watch: bool = True) -> None:
        self._runs = tuple(runs)
        self._watch = watch
        self._asked = [0] * len(runs)
        self._random = random.Random()
        self.kept: list[list[Any]] = [[] for _ in runs]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        """The bare runs: who only counts them must not draw a round that is never run, and lose what was kept."""
        return iter(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        if isinstance(index, slice):
            return self._runs[index]
        run = self._runs[index]
        if not self._watch:
            return run
        self._asked[index] += 1
        if self._random.randrange(self._asked[index]):
            return run
        outputs = self.kept[index]
        outputs.clear()

        def watched() -> Any:
            output = run()
            outputs.append(output)
            return output

        return watched
