"""All implementations of a case measured together; when that raises, whose fault it was.

The referee and ``prepare`` catch what one implementation raises while it has the floor. In the timed rounds all of
them take turns, so what escapes from there is found by measuring each alone.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from groundspeed.measure.bench import PHASE_LIMITS, Bench, DeviceLost, Fault, as_fault, fault_row
from groundspeed.measure.contender import Contender
from groundspeed.measure.protocol import Teller
from groundspeed.operator import Case, Operator
from groundspeed.records import Measurement

Steps = Callable[[Bench, str, Operator, Case, Sequence[Contender], str], Iterator[Measurement]]


@dataclass(frozen=True)
class Attempt:
    """One case of one operator; ``steps`` yields a measurement for each contender, in their order."""

    steps: Steps
    bench: Bench
    teller: Teller
    operator: str
    spec: Operator
    case: Case
    digest: str

    def rows(self, group: Sequence[Contender]) -> list[Measurement]:
        """A row for each of the group. Raises DeviceLost when the device no longer answers."""
        if len(group) < 2:
            return [row for contender in group for row in self.alone(contender)]
        try:
            return self._measured(group)
        except DeviceLost:
            raise
        except Exception as error:
            shown = self._shown(error, group)
            if self._of_spec():
                return [self._failed(contender, shown) for contender in group]
        trials = {contender.name: self.alone(contender) for contender in group}
        sound = [contender for contender in group if trials[contender.name][0].status == "ok"]
        try:
            together = self._measured(sound) if sound else []
        except DeviceLost:
            raise
        except Exception as error:
            shown = self._shown(error, group)
            together = [self._failed(contender, shown) for contender in sound]
        again = {row.implementation: row for row in together}
        return [again.get(contender.name, trials[contender.name][0]) for contender in group]

    def alone(self, contender: Contender) -> list[Measurement]:
        """The row of one implementation measured by itself: it tells what it can do, and is paired with nothing."""
        self.teller.alone = contender.name
        try:
            return self._measured([contender])
        except DeviceLost:
            raise
        except Exception as error:
            return [self._failed(contender, self._shown(error, [contender]))]
        finally:
            self.teller.alone = ""

    def _measured(self, group: Sequence[Contender]) -> list[Measurement]:
        self.teller.begin("inputs", PHASE_LIMITS["inputs"])
        return list(self.steps(self.bench, self.operator, self.spec, self.case, group, self.digest))

    def _of_spec(self) -> bool:
        return self.teller.phase == "inputs"

    def _shown(self, error: Exception, group: Sequence[Contender]) -> Fault:
        """The log keeps the way there, the row what happened and in which line of whose file."""
        traceback.print_exception(error)
        roots = {root for one in group for root in (one.tree.root, one.tree.spec_tree.root)}
        fault = as_fault(error, self.bench.device, *roots)
        if self._of_spec():
            return Fault(fault.failure, f"spec of {self.operator}, inputs or reference: {fault.reason}")
        return fault

    def _failed(self, contender: Contender, fault: Fault) -> Measurement:
        return fault_row(contender.name, self.case, self.digest, fault, contender.digest)
