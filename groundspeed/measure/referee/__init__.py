"""The referee: is an output the operator's answer, honestly computed?

Each check is one function from a ``Trial`` (what was seen of a few calls) to a ``Complaint`` or None; ``rules.REFEREE``
lists those of a real run. Everything happens in the implementation's own process, so a determined adversary can still
win: the referee is built against mistakes, shortcuts and the tricks that optimisers, human or not, have been seen to
find. Its gallery of them is ``tests/referee``.
"""

from __future__ import annotations

from groundspeed.measure.referee.bits import clones, same_bits
from groundspeed.measure.referee.kernels import foreign_kernel
from groundspeed.measure.referee.physics import impossible
from groundspeed.measure.referee.rules import REFEREE, Referee, Sitting, briefly, judge, rule
from groundspeed.measure.referee.tools import synchronize
from groundspeed.measure.referee.trial import Complaint, Outputs, Sheet, Trial

__all__ = [
    "REFEREE",
    "Complaint",
    "Outputs",
    "Referee",
    "Sheet",
    "Sitting",
    "Trial",
    "briefly",
    "clones",
    "foreign_kernel",
    "impossible",
    "judge",
    "rule",
    "same_bits",
    "synchronize",
]
